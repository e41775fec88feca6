"""Measures the energy, carbon and cost above idle of a run with each available meter.

Runs are compared by one meter: the best that measured all of them (`meter_of_all`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from greensched_core.errors import SignalUnavailable
from greensched_core.ledger_records import Amounts
from greensched_core.metering.energy_pieces import Piece
from greensched_core.metering.meters.catalogue import ESTIMATING, POD_METERS
from greensched_core.metering.pod_energy import measured_pods
from greensched_core.metering.prometheus import PrometheusApi
from greensched_operator.ledger.measured_amounts import measured_amounts
from greensched_operator.ledger.pod_runs import RanPod
from greensched_operator.planning.cluster_state import NodeSite
from greensched_policies.billing.accounting import bill_placements
from greensched_policies.billing.timelines import Placements
from greensched_policies.costs.cost import CostModel, curve_table
from greensched_testbed.billed_nodes import billed_nodes
from greensched_testbed.stress.ground import Ground
from greensched_testbed.stress.job_log import JobRun
from greensched_testbed.stress.kubelet_meter import KubeletMeter

KUBELET_API, CURVE = "kubelet-api", "curve"
METERS = (*(meter.name for meter in POD_METERS), KUBELET_API, CURVE)  # best first
MEANING = {
    **{meter.name: meter.meaning for meter in POD_METERS},
    KUBELET_API: "the kubelet's CPU time and the nodes' power curves: estimated",
    CURVE: "requested cores, taken as used, and the nodes' power curves: estimated",
}
SEEN_TOO_LITTLE = (
    "kubelets saw less than half of the pods' time; they sample every ten to twenty seconds, so "
    "Jobs need to run for about a minute"
)


def is_estimated(meter: str) -> bool:
    """Return whether energy was estimated, not measured."""
    return meter in {*ESTIMATING, KUBELET_API, CURVE}


@dataclass(frozen=True, slots=True)
class ShippedAssumptions:
    """GreenSched's default values for what the cluster does not state."""

    default_pue: float
    gpu_ratio: float


@dataclass(frozen=True, slots=True)
class MeterSources:
    """The sources from which the meters read."""

    ground: Ground
    assumed: ShippedAssumptions
    kubelet: KubeletMeter | None = None
    prometheus: PrometheusApi | None = None


async def amounts_by_meter(
    meters: MeterSources, namespace: str, runs: Sequence[JobRun]
) -> tuple[dict[str, Amounts], tuple[str, ...]]:
    """Return what a run's pods took by each meter that measured them, and the others' faults."""
    ran = [each for run in runs if (each := _ran(run, namespace, meters.ground)) is not None]
    found: dict[str, Amounts] = {}
    faults: list[str] = []
    if not ran:
        return found, ("no pod was seen to run and end",)
    if lost := _lost(runs, meters.ground):  # a sum without these pods would be too small
        return found, (f"energy is not known: {lost}",)
    if never_ran := ", ".join(run.job.name for run in runs if run.never_ran):
        faults.append(f"{never_ran} failed and never ran: the energy is that of the other Jobs")
    by_uid = {run.pod_uid: run for run in runs}
    with_gpus = any(by_uid[each.uid].job.gpus for each in ran)
    for meter in METERS:
        try:
            pieces = await _pieces(meters, meter, ran, by_uid, with_gpus=with_gpus)
        except SignalUnavailable as fault:
            faults.append(f"{meter}: {fault}")
            continue
        if pieces is None and meter == KUBELET_API and meters.kubelet is not None and not with_gpus:
            faults.append(f"{meter}: {SEEN_TOO_LITTLE}")
        if pieces is not None:
            pue, mean = meters.assumed.default_pue, meters.ground.history.mean
            found[meter] = measured_amounts(pieces, ran, pue, mean)
    return found, tuple(faults)


async def _pieces(
    meters: MeterSources,
    meter: str,
    ran: Sequence[RanPod],
    by_uid: Mapping[str, JobRun],
    *,
    with_gpus: bool,
) -> Mapping[str, Sequence[Piece]] | None:
    pod_runs = [run for each in ran if (run := each.run) is not None]
    if meter == CURVE:
        return curve_pieces(ran, by_uid, meters.assumed)
    if meter == KUBELET_API:
        return None if with_gpus or meters.kubelet is None else meters.kubelet.pieces(pod_runs)
    if meters.prometheus is None:
        return None
    chosen = [each for each in POD_METERS if each.name == meter]
    measured = await measured_pods(meters.prometheus, pod_runs, with_gpus=with_gpus, meters=chosen)
    return None if measured is None else measured.pieces


def _lost(runs: Sequence[JobRun], ground: Ground) -> str:
    """Return which ended Jobs may have used energy that no meter can find, and why; "" if none."""
    ended = [run for run in runs if run.end and not run.never_ran]
    unseen = ", ".join(run.job.name for run in ended if run.started_at is None)
    if unseen:
        return f"{unseen} failed, may have run, and was not seen to start"
    elsewhere = ", ".join(run.job.name for run in ended if run.node not in ground.nodes)
    return f"{elsewhere} ended on an unknown node" if elsewhere else ""


def _ran(run: JobRun, namespace: str, ground: Ground) -> RanPod | None:
    """Return the run of a Job's pod; None if the pod did not run or has not ended."""
    node = ground.nodes.get(run.node)
    if node is None or run.started_at is None or run.finished_at is None:
        return None
    site = NodeSite(node.zone, node.pue, node)
    return RanPod(run.pod_uid, namespace, run.pod_name, site, run.started_at, run.finished_at)


def curve_pieces(
    ran: Sequence[RanPod], by_uid: Mapping[str, JobRun], assumed: ShippedAssumptions
) -> dict[str, list[Piece]]:
    """Return the energy of pods by the cores they requested, as the bills of schedules do.

    Only these pods are known, so their nodes count as otherwise empty. Watts exclude the PUE.
    """
    known = [each.site.node for each in ran if each.site is not None and each.site.node is not None]
    nodes = list({node.name: node for node in known}.values())
    rows = {node.name: row for row, node in enumerate(nodes)}
    curves = sorted({node.curve.watts for node in nodes})
    first_s = min(each.begin_s or 0.0 for each in ran)
    begins = np.array([(each.begin_s or 0.0) - first_s for each in ran])
    ends = np.array([(each.until_s or 0.0) - first_s for each in ran])
    jobs = [by_uid[each.uid].job for each in ran]
    placements = Placements(
        node=np.array([rows[by_uid[each.uid].node] for each in ran], dtype=np.int64),
        start_s=begins,
        end_s=ends,
        cpu_cores=np.array([job.cores for job in jobs]),
        gpus=np.array([float(job.gpus) for job in jobs]),
    )
    own_watts = [replace(node, pue=1.0) for node in nodes]
    bill = bill_placements(
        billed_nodes(own_watts, curves, (), 1.0),
        placements,
        (),
        (0.0, float(ends.max())),
        CostModel(curve_table(curves), 1.0, assumed.gpu_ratio, empty_nodes_sleep=False),
    )
    return {
        each.uid: [Piece(each.begin_s or 0.0, each.until_s or 0.0, float(taken_j))]
        for each, taken_j in zip(ran, bill.energy_active_j, strict=True)
    }


def meter_of_all(runs: Sequence[Mapping[str, Amounts]]) -> str | None:
    """Return the best meter that measured every run, so that runs are comparable."""
    return next((meter for meter in METERS if runs and all(meter in each for each in runs)), None)
