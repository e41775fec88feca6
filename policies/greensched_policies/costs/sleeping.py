"""Nodes that sleep while empty: the input of sleep rules, and a workload's cost of waking."""

from typing import NamedTuple

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.costs.cost import (
    JOULES_PER_MWH,
    Floats,
    NodeColumns,
    PlacementCost,
    ZoneColumns,
)


class SleepColumns(NamedTuple):
    """Savings and costs of sleep for each node, float64 [B,N]; watts and joules are without PUE.

    A node that cannot sleep saves 0 W.
    """

    saved_w: Floats  # idle watts minus those asleep
    wake_s: Floats  # from asleep until work can run
    wake_j: Floats  # for waking, above those of continued sleep


def with_waking(
    cost: PlacementCost, nodes: NodeColumns, sleep: SleepColumns, zones: ZoneColumns
) -> PlacementCost:
    """Return the marginal cost plus the cost of keeping an empty candidate awake.

    An empty node would sleep, now or soon. So the workload pays the node's idle watts above those
    asleep for its whole run. It pays the seconds and joules of waking only if the node sleeps now;
    the caller puts 0 for others. Takes numbers as well as arrays, as `placement_cost` does.
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
