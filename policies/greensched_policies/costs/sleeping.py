"""Nodes that sleep while empty: what a sleep rule sees, and what waking costs a workload."""

from typing import NamedTuple

from greensched_policies.costs.cost import (
    JOULES_PER_KWH,
    JOULES_PER_MWH,
    Floats,
    NodeColumns,
    PlacementCost,
    ZoneColumns,
)


class SleepColumns(NamedTuple):
    """What sleep does to each node, float64 [B,N]; watts and joules are the machine's, without PUE.

    A node that cannot sleep saves 0 W.
    """

    saved_w: Floats  # idle watts less those asleep
    wake_s: Floats  # from asleep until work can run
    wake_j: Floats  # for that, above what sleeping on would take


def with_waking(
    cost: PlacementCost, nodes: NodeColumns, sleep: SleepColumns, zones: ZoneColumns
) -> PlacementCost:
    """Return the marginal cost with what it takes that an empty candidate is awake.

    An empty node would sleep, soon if not now, so the workload pays its idle watts above those
    asleep for as long as it runs; waking, seconds and joules, is paid where it sleeps now: the
    caller puts 0 where a node is awake. Takes numbers as well as arrays, as `placement_cost` does.
    """
    kept_awake_w = sleep.saved_w * nodes.is_empty * nodes.pue
    added_j = kept_awake_w * cost.runtime_s + sleep.wake_j * nodes.pue
    added_kwh = added_j * (1.0 / JOULES_PER_KWH)
    return PlacementCost(
        power_w=cost.power_w + kept_awake_w,
        runtime_s=cost.runtime_s + sleep.wake_s,
        energy_j=cost.energy_j + added_j,
        cost=cost.cost + added_kwh * zones.price_per_mwh * (JOULES_PER_KWH / JOULES_PER_MWH),
        carbon_g=cost.carbon_g + added_kwh * zones.carbon_g_per_kwh,
        cpu_after=cost.cpu_after,
    )
