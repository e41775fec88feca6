"""What the compiled library shows a `where` policy of nodes that are given as columns."""

import numpy as np

from greensched_policies.costs.cost import CostModel, NodeColumns, WorkloadColumns, ZoneColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.node_table import NodeTable
from greensched_policies.library.seeing_nodes import CostRatios, NodesSeen, NodesToSee, PodNeeds


def seen_by_library(
    nodes: NodeColumns,
    workload: WorkloadColumns,
    zones: ZoneColumns,
    model: CostModel,
    weights: Weights,
) -> NodesSeen:
    """Return what a policy sees of all nodes of one decision; each is a zone of its own."""
    fixed = np.concatenate([
        nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity, nodes.gpu_idle_w,
        nodes.gpu_peak_w, nodes.curve_class, nodes.speed, nodes.pue,
    ]).T.copy()  # fmt: skip
    moving = np.concatenate([nodes.cpu_before, nodes.memory_free, nodes.gpu_free, nodes.is_empty])
    count = nodes.speed.size
    table = NodeTable(fixed, moving.T.copy(), np.arange(count, dtype=np.int32), np.empty(0))
    needs = PodNeeds(*(float(each.flat[0]) for each in workload))
    signals = np.array([np.ravel(each) for each in zones])
    ratios = CostRatios(model.utilisation_ratio, model.gpu_ratio, model.empty_nodes_sleep)
    nodes_to_see = NodesToSee(table, model.curve_watts)
    return nodes_to_see.see(np.arange(count), needs, signals, ratios, weights)
