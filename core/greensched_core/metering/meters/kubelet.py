"""The kubelet counts only CPU seconds, so the energy of pods is an estimate.

Names and labels: kubelet's /metrics/resource (pkg/kubelet/metrics/collectors/resource_metrics.go):
`node_cpu_usage_seconds_total`, `pod_cpu_usage_seconds_total{namespace,pod}`. Without these,
its /metrics/cadvisor: `container_cpu_usage_seconds_total{namespace,pod,container}`, with id `/` for
the machine. `cpu_energy` has the formula.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from greensched_core.metering.cpu_energy import joules_counter
from greensched_core.metering.energy_pieces import EnergyPoint, Piece, counter_pieces
from greensched_core.metering.meters.meter import (
    BY_NODE,
    NODE_LABELS,
    Meter,
    PodMeter,
    node_named,
)
from greensched_core.metering.pod_runs import PodRun, any_of
from greensched_core.metering.prometheus import PrometheusApi, Track

_MARGIN_S = 60.0  # around the runs: a node's counter is read between its points
_PORT = "(:[0-9]+)?"  # the label instance may end with a port


async def _pieces(
    prometheus: PrometheusApi, runs: Sequence[PodRun], step_s: float, with_gpus: bool
) -> dict[str, list[Piece]]:
    """Return the energy of each run by UID; empty if its node or counter is unknown."""
    known = [run for run in runs if run.node is not None]
    found: dict[str, list[Piece]] = {run.uid: [] for run in runs}
    if not known:
        return found
    begin_s = min(run.begin_s for run in known) - _MARGIN_S
    until_s = max(run.until_s for run in known) + _MARGIN_S

    async def first_answer(questions: Iterator[str]) -> list[Track]:
        for query in questions:
            if tracks := await prometheus.over(query, begin_s, until_s, step_s):
                return tracks
        return []

    pods = await first_answer(pod_questions(known, step_s))
    if not pods:
        return found
    nodes = _by_node(await first_answer(node_questions(known, step_s)))
    for run in known:
        found[run.uid] = _of_run(run, pods, nodes)
    return found


def pod_questions(runs: Sequence[PodRun], step_s: float) -> Iterator[str]:
    """Yield the PromQL of the CPU seconds of pods of one namespace at each step, best first."""
    of = f'namespace="{runs[0].namespace}",pod=~"{any_of(run.name for run in runs)}"'
    whole = f"pod_cpu_usage_seconds_total{{{of}}}"
    parts = f'container_cpu_usage_seconds_total{{{of},container!="",container!="POD"}}'
    yield f"max by (pod) (last_over_time({whole}[{step_s:g}s]))"
    yield f"max by (pod, container, id) (last_over_time({parts}[{step_s:g}s]))"


def node_questions(runs: Sequence[PodRun], step_s: float) -> Iterator[str]:
    """Yield the PromQL of the CPU seconds of the runs' nodes at each step, best first."""
    names = any_of(sorted({run.node.name for run in runs if run.node is not None}))
    for metric, also in (
        ("node_cpu_usage_seconds_total", ""),
        ("container_cpu_usage_seconds_total", ',id="/"'),
    ):
        yield " or ".join(
            f"max by ({BY_NODE}) (last_over_time("
            f'{metric}{{{label}=~"({names}){_PORT}"{also}}}[{step_s:g}s]))'
            for label in NODE_LABELS
        )


def _by_node(tracks: Sequence[Track]) -> Mapping[str, Sequence[EnergyPoint]]:
    """Return the longest track of each node, since a kubelet may be scraped twice."""
    found: dict[str, Sequence[EnergyPoint]] = defaultdict(tuple)
    for track in tracks:
        found[node_named(track.labels)] = max(
            found[node_named(track.labels)], track.points, key=len
        )
    return found


def _of_run(
    run: PodRun, pods: Sequence[Track], nodes: Mapping[str, Sequence[EnergyPoint]]
) -> list[Piece]:
    if run.node is None or run.node.name not in nodes:
        return []
    pieces = []
    for track in pods:
        if track.labels.get("pod") == run.name:
            points = [point for point in track.points if point[0] > run.begin_s]
            counter = joules_counter(
                points, nodes[run.node.name], run.begin_s, run.node.curve, run.node.cpu_cores
            )
            pieces += counter_pieces(counter, run.begin_s, run.until_s)
    return pieces


KUBELET = Meter(
    pods=PodMeter(
        "kubelet",
        "the kubelet, **an estimate**: `pod_cpu_usage_seconds_total` of /metrics/resource, else "
        "cadvisor's `container_cpu_usage_seconds_total`, with the same of the node. Active power "
        "by [CPU time and the node's curve](power.md#by-cpu-time)",
        "the kubelet's CPU time and the nodes' power curves, by Prometheus: estimated",
        _pieces,
        sees_gpus=False,
        is_estimate=True,
    )
)
