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
    CARBON_OF_DAY,
    CONTEXT_FEATURES,
    IS_MEASURED,
    IS_PLANNED_ZONE,
    MEMORY_SIZE,
    NODE_FEATURES,
    POWER_CAP,
    PRICE_OF_DAY,
    RELATIVE_FEATURES,
    RELATIVE_MEMORY_SIZE,
    RELATIVE_ZONE_CARBON,
    ROOM_FEATURES,
    SLOWDOWN,
    SPEED,
    ZONE_CARBON,
    Observation,
    fill_context,
    leave_out_unknown,
    make_relative,
    relative_columns,
    room_columns,
    work_columns,
)
from greensched_policies.library.seeing_nodes import PodDecision


def encode_where(
    nodes: NodeColumns,
    workload: WorkloadColumns,
    zones: ZoneColumns,
    cost: PlacementCost,
    model: CostModel,
    asked: PodDecision,
) -> Observation:
    """Encode B decisions over N candidates, each a zone of its own, on a day like the run."""
    batch, count = nodes.cpu_capacity.shape
    features = np.empty((batch, len(NODE_FEATURES), count), dtype=np.float32)
    values = np.empty((batch, len(RELATIVE_FEATURES), count))
    for place, column in enumerate(relative_columns(nodes, zones, cost)):
        values[:, place] = column
    for place, column in zip(
        ROOM_FEATURES, room_columns(nodes, workload, cost, model), strict=True
    ):
        features[:, place] = column
    features[:, SPEED], features[:, POWER_CAP], features[:, IS_MEASURED] = nodes.speed, 1.0, 0.0
    for place, signal in (
        (CARBON_OF_DAY, zones.carbon_g_per_kwh),
        (PRICE_OF_DAY, zones.price_per_mwh),
    ):
        features[:, place] = np.where(np.isnan(signal) | (signal == 0.0), 1.0, np.sign(signal))
    features[:, IS_PLANNED_ZONE] = np.arange(count) == asked.planned_zone
    mean = make_relative(values)
    features[:, : SLOWDOWN + 1] = values[:, : SLOWDOWN + 1]
    features[:, ZONE_CARBON : MEMORY_SIZE + 1] = values[:, RELATIVE_ZONE_CARBON:]
    is_known = np.isfinite(mean)
    if not is_known.all():
        leave_out_unknown(features, is_known)
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    request = WorkloadColumns(*(column[:, 0] for column in workload))
    has_carbon, memory = is_known[:, RELATIVE_ZONE_CARBON], mean[:, RELATIVE_MEMORY_SIZE]
    shared = work_columns(request, asked.weights, has_carbon, memory, count)
    fill_context(shared, asked.timing, request.runtime_s, context)
    return Observation(features.transpose((0, 2, 1)), context)
