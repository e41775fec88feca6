"""The encoding of nodes once more, by whole arrays: compiled code must see the same."""

import numpy as np

from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    PlacementCost,
    WorkloadColumns,
    ZoneColumns,
)
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    MEMORY_SIZE,
    NODE_FEATURES,
    RELATIVE_FEATURES,
    RELATIVE_MEMORY_SIZE,
    RELATIVE_ZONE_CARBON,
    ROOM_FEATURES,
    SLOWDOWN,
    ZONE_CARBON,
    Observation,
    context_columns,
    leave_out_unknown,
    make_relative,
    relative_columns,
    room_columns,
)
from greensched_policies.encoding.weights import Weights


def encode_where(
    nodes: NodeColumns,
    workload: WorkloadColumns,
    zones: ZoneColumns,
    cost: PlacementCost,
    model: CostModel,
    weights: Weights,
) -> Observation:
    """Encode B decisions over N candidates each."""
    batch, count = nodes.cpu_capacity.shape
    features = np.empty((batch, len(NODE_FEATURES), count), dtype=np.float32)
    values = np.empty((batch, len(RELATIVE_FEATURES), count))
    for place, column in enumerate(relative_columns(nodes, zones, cost)):
        values[:, place] = column
    for place, column in zip(
        ROOM_FEATURES, room_columns(nodes, workload, cost, model), strict=True
    ):
        features[:, place] = column
    mean = make_relative(values)
    features[:, : SLOWDOWN + 1] = values[:, : SLOWDOWN + 1]
    features[:, ZONE_CARBON : MEMORY_SIZE + 1] = values[:, RELATIVE_ZONE_CARBON:]
    is_known = np.isfinite(mean)
    if not is_known.all():
        leave_out_unknown(features, is_known)
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    request = WorkloadColumns(*(column[:, 0] for column in workload))
    has_carbon, memory = is_known[:, RELATIVE_ZONE_CARBON], mean[:, RELATIVE_MEMORY_SIZE]
    for place, shared in enumerate(context_columns(request, weights, has_carbon, memory, count)):
        context[:, place] = shared
    return Observation(features.transpose((0, 2, 1)), context)
