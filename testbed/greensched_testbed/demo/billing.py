"""Bills one run from what the watch recorded, by the accounting that all parts share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np

from greensched_core.state import Node
from greensched_policies.billing.accounting import Bill as NodeBills
from greensched_policies.billing.accounting import bill_schedule
from greensched_policies.billing.timelines import Placements, ZoneSeries
from greensched_policies.costs.cost import CostModel, curve_table
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_testbed.billed_nodes import billed_nodes
from greensched_testbed.demo.results import BillSums, DemoResult, GroupSums


@dataclass(frozen=True, slots=True)
class BilledPod:
    """One pod of a run; times in seconds of the workload, None if it was not placed."""

    cpu_cores: float
    gpus: float
    runtime_s: float
    node: str | None
    bound_at_s: float | None
    waited_s: float | None  # created → bound, in real seconds


@dataclass(frozen=True, slots=True)
class BillAssumptions:
    """The assumptions of all bills of the demo; the extender runs with the same values."""

    utilisation_ratio: float
    gpu_ratio: float
    default_pue: float
    empty_nodes_sleep: bool = False  # empty nodes draw nothing; the first pod wakes them


def bill_run(
    scheduler: str,
    pods: Sequence[BilledPod],
    nodes: Sequence[Node],
    generation_of: Mapping[str, str],
    grid: Mapping[str, Sequence[SyntheticSlot]],
    window_s: float,
    assumed: BillAssumptions,
) -> DemoResult:
    """Return the run's result from 0 to `window_s` seconds of the workload."""
    placed = [pod for pod in pods if pod.node is not None]
    bills = _bills(placed, nodes, grid, window_s, assumed)
    zones = {node.name: node.zone for node in nodes}
    waits = [pod.waited_s for pod in placed if pod.waited_s is not None] or [math.nan]
    return DemoResult(
        scheduler=scheduler,
        pods=len(pods),
        unplaced=frozenset(place for place, pod in enumerate(pods) if pod.node is None),
        place_median_s=median(waits),
        place_p95_s=quantiles(waits, n=20)[-1] if len(waits) > 1 else waits[0],
        nodes_used=int(bills.is_used.sum()),
        bill=_sum(bills, np.ones(len(nodes), dtype=np.bool_)),
        by_generation=_groups(bills, placed, nodes, generation_of),
        by_zone=_groups(bills, placed, nodes, zones),
        placed_at=tuple(sorted((pod.bound_at_s or 0.0, zones[pod.node or ""]) for pod in placed)),
    )


def _bills(
    placed: Sequence[BilledPod],
    nodes: Sequence[Node],
    grid: Mapping[str, Sequence[SyntheticSlot]],
    window_s: float,
    assumed: BillAssumptions,
) -> NodeBills:
    curves = sorted({node.curve.watts for node in nodes})
    zone_names = list(grid)
    row = {node.name: number for number, node in enumerate(nodes)}
    billed = billed_nodes(nodes, curves, zone_names, assumed.default_pue)
    starts = np.array([pod.bound_at_s or 0.0 for pod in placed], dtype=np.float64)
    schedule = Placements(
        node=np.array([row[pod.node or ""] for pod in placed], dtype=np.int64),
        start_s=starts,
        end_s=starts + np.array([pod.runtime_s for pod in placed], dtype=np.float64),
        cpu_cores=np.array([pod.cpu_cores for pod in placed], dtype=np.float64),
        gpus=np.array([pod.gpus for pod in placed], dtype=np.float64),
    )
    model = CostModel(
        curve_table(curves),
        assumed.utilisation_ratio,
        assumed.gpu_ratio,
        assumed.empty_nodes_sleep,
    )
    series = [_series(grid[name]) for name in zone_names]
    return bill_schedule(billed, schedule, series, (0.0, window_s), model)


def _series(slots: Sequence[SyntheticSlot]) -> ZoneSeries:
    return ZoneSeries(
        np.array([slot.start_s for slot in slots]),
        np.array([slot.carbon_g_per_kwh for slot in slots]),
        np.array([slot.price_per_mwh for slot in slots]),
    )


def _groups(
    bills: NodeBills,
    placed: Sequence[BilledPod],
    nodes: Sequence[Node],
    group_of: Mapping[str, str],
) -> Mapping[str, GroupSums]:
    groups = {}
    for name in dict.fromkeys(group_of[node.name] for node in nodes):
        mine = np.array([group_of[node.name] == name for node in nodes])
        groups[name] = GroupSums(
            nodes=int(mine.sum()),
            nodes_used=int((bills.is_used & mine).sum()),
            pods=sum(group_of[pod.node or ""] == name for pod in placed),
            bill=_sum(bills, mine),
        )
    return groups


def _sum(bills: NodeBills, mine: np.typing.NDArray[np.bool_]) -> BillSums:
    return BillSums(
        energy_active_j=float(bills.energy_active_j[mine].sum()),
        energy_idle_j=float(bills.energy_idle_j[mine].sum()),
        cost_active=float(bills.cost_active[mine].sum()),
        cost_idle=float(bills.cost_idle[mine].sum()),
        carbon_active_g=float(bills.carbon_active_g[mine].sum()),
        carbon_idle_g=float(bills.carbon_idle_g[mine].sum()),
    )
