"""What the compiled library shows a `where` policy of nodes that are given as columns."""

import numpy as np

from greensched_policies.costs.cost import CostModel, NodeColumns, WorkloadColumns, ZoneColumns
from greensched_policies.encoding.timing import Timing
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.node_table import NodeTable
from greensched_policies.library.seeing_nodes import (
    NO_PLANNED_ZONE,
    CostRatios,
    NodesSeen,
    NodesToSee,
    PodDecision,
    PodNeeds,
)

# About three in the afternoon of a Tuesday, with two hours until the deadline.
TIMING = Timing(1_700_000_000.0, 7200.0, 0.3, 0.99)


def decision(*weights: float, planned_zone: int = NO_PLANNED_ZONE) -> PodDecision:
    """Return a decision by the weights of money, carbon and performance."""
    return PodDecision(Weights(*weights), TIMING, planned_zone)


def seen_by_library(
    nodes: NodeColumns,
    workload: WorkloadColumns,
    zones: ZoneColumns,
    model: CostModel,
    asked: PodDecision,
    day: ZoneColumns | None = None,
) -> NodesSeen:
    """Return what a policy sees of all nodes of one decision; each is a zone of its own.

    `day` are the zones' carbon and price over the coming day; by default those over the run.
    """
    fixed = np.concatenate([
        nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity, nodes.gpu_idle_w,
        nodes.gpu_peak_w, nodes.curve_class, nodes.speed, nodes.pue,
    ]).T.copy()  # fmt: skip
    moving = np.concatenate([nodes.cpu_before, nodes.memory_free, nodes.gpu_free, nodes.is_empty])
    count = nodes.speed.size
    table = NodeTable(fixed, moving.T.copy(), np.arange(count, dtype=np.int32), np.empty(0))
    needs = PodNeeds(*(float(each.flat[0]) for each in workload))
    signals = np.array([np.ravel(each) for each in (*zones, *(day or zones))])
    ratios = CostRatios(model.utilisation_ratio, model.gpu_ratio, model.empty_nodes_sleep)
    nodes_to_see = NodesToSee(table, model.curve_watts)
    return nodes_to_see.see(np.arange(count), needs, signals, ratios, asked)
