"""What decisions look ahead at: the forecasts of a world's grids, and the plan."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.kernel.plan import Plan
from greensched_policies.library.grid_table import GridTable, grid_table, in_parts
from greensched_policies.planning.outlook import SLOT_S
from greensched_simulator.policy import USUAL_PAUSE, USUAL_WHEN, Policy
from greensched_simulator.world.world import World, highest_watts
from greensched_simulator.world.zone_grids import relative_pue

_PLAN_MARGIN = 96  # slots of the plan beyond the last deadline


def may_suspend(world: World, policy: Policy) -> bool:
    """Return whether a policy's pause rule may suspend any job of a world."""
    return not policy.is_held and _has_pauses(world, policy)


def green_policy_pauses(world: World, policy: Policy) -> bool:
    """Return whether a policy lets its GreenPolicy pause any job of a world."""
    return policy.is_held and _has_pauses(world, policy)


def _has_pauses(world: World, policy: Policy) -> bool:
    return policy.pause != USUAL_PAUSE and bool(np.isfinite(world.jobs.save_every_s).any())


def forecast_of(world: World, *, in_slots: bool) -> GridTable:
    """Return the forecasts of a world's grids; a forecast is right about the step it is made in.

    The forecast made at 0 is corrected by the present step: carbon by the ratio of the true value
    to the forecast one, price by their difference.

    Values are per kWh that nodes draw at their mean PUE. If the PUE depends on the weather, which
    is known, they are multiplied by the PUE relative to its mean. In a zone with panels they are
    multiplied by the share imported when all nodes draw the most they can and the battery is not
    used; the true share is never more. `in_slots` cuts steps into parts as long as a slot, for
    rules that compare one start after the other.
    """
    grids = world.grids
    seen = relative_pue(grids) * _imports_at_most(world)
    forecast = grids.forecast_carbon_g_per_kwh
    usable = np.isfinite(forecast) & (forecast != 0.0) & np.isfinite(grids.carbon_g_per_kwh)
    factor = np.divide(grids.carbon_g_per_kwh, forecast, out=np.ones(forecast.size), where=usable)
    offset = np.nan_to_num((grids.price_per_mwh - grids.forecast_price_per_mwh) * seen)
    table = grid_table(
        grids.starts,
        grids.times_s,
        forecast * seen,
        grids.forecast_price_per_mwh * seen,
        factors=np.stack([factor, np.ones(forecast.size)]),
        offsets=np.stack([np.zeros(forecast.size), offset]),
    )
    return in_parts(table, SLOT_S) if in_slots else table


def _imports_at_most(world: World) -> Floats:
    """Return the share of a zone's highest watts that it imports in each step, [T]."""
    grids, nodes = world.grids, world.nodes
    if not world.batteries:
        return np.ones(grids.times_s.size)
    zones = len(world.zones)
    most_w = np.bincount(nodes.zone, highest_watts(world) * nodes.pue, zones)
    drawn_w = np.repeat(most_w, np.diff(grids.starts)) * relative_pue(grids)
    share: Floats = 1.0 - np.minimum(grids.solar_w / np.maximum(drawn_w, 1e-9), 1.0)
    return share


def looks_ahead(world: World, policy: Policy) -> bool:
    """Return whether any rule of a policy reads later starts, and the plan."""
    return policy.when != USUAL_WHEN or may_suspend(world, policy)


def empty_plan(world: World, *, is_looked_at: bool = True) -> Plan:
    """Return a plan in which nothing runs, until after the last deadline of a world.

    It has no slots if no decision reads it.
    """
    jobs, zones = world.jobs, len(world.zones)
    finite_s = jobs.deadline_s[np.isfinite(jobs.deadline_s)]
    end_s = max(world.length_s, float(finite_s.max(initial=0.0)))
    slots = int(end_s // SLOT_S) + _PLAN_MARGIN if is_looked_at else 0
    nodes = world.nodes
    capacity: Floats = np.bincount(nodes.zone, nodes.cpu_capacity, zones).astype(float)
    return Plan(np.zeros((zones, slots)), capacity)
