"""Chooses the slots of work that may be suspended: `pausing.planned_slots` in plain numpy.

The operator's image has no compiler, and Bellman's recursion in plain Python takes a second for a
job of a day. Here one step of it covers all numbers of slots left at once; a test compares both.
"""

import math

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.pausing import (
    BEFORE,
    ROUNDING,
    RUNNING,
    SUSPENDED,
    Slots,
    restarts,
    unit_of,
    walked,
)


def choose_slots(
    cost: Floats,
    runtime_s: float,
    slot_s: float,
    restart_s: float,
    restart: float,
    most_restarts: float,
    *,
    is_running: bool,
) -> tuple[Slots, float]:
    """Return the slots in which work runs, and their cost, as `planned_slots` does."""
    in_one = min(max(_slots_for(runtime_s, slot_s), 1), cost.size)
    through = _without_a_pause(cost, in_one, is_running=is_running)
    least = cost_of(through, cost, runtime_s / slot_s)
    needed, again = in_one, 0
    while needed <= cost.size and again <= most_restarts:
        chosen = cheapest_slots(cost, needed, restart, is_running=is_running)
        again = restarts(chosen, is_running)
        if again == 0:
            break
        spent_s = in_one * slot_s if chosen[-1] else runtime_s
        asked = _slots_for(spent_s + again * restart_s, slot_s)
        if asked <= needed and again <= most_restarts:
            total = cost_of(chosen, cost, (runtime_s + again * restart_s) / slot_s)
            if total < least - ROUNDING * abs(least):
                return chosen, total
            break
        needed = max(asked, needed + 1)
    return through, least


def cheapest_slots(cost: Floats, needed: int, restart: float, *, is_running: bool) -> Slots:
    """Return the slots that `pausing.cheapest_slots` chooses."""
    slots, units = cost.size, _whole(cost)
    resuming = np.full(slots, np.inf) if math.isinf(restart) else restart * np.abs(units)
    before, running, suspended = (np.full(needed + 1, np.inf) for _ in range(3))
    before[0] = running[0] = suspended[0] = 0.0
    runs = np.zeros((slots, 3, needed + 1), np.bool_)
    for slot in range(slots - 1, -1, -1):
        most = min(needed, slots - slot)
        run = units[slot] + running[:most]
        resumed = run + resuming[slot]
        left = slice(1, most + 1)
        runs[slot, BEFORE, left] = run <= before[left]
        runs[slot, RUNNING, left] = run <= suspended[left]
        runs[slot, SUSPENDED, left] = resumed <= suspended[left]
        np.minimum(run, before[left], out=before[left])
        np.minimum(run, suspended[left], out=running[left])
        np.minimum(resumed, suspended[left], out=suspended[left])
    return walked(runs, needed, is_running)


def cost_of(chosen: Slots, cost: Floats, slots: float) -> float:
    """Return the cost of running for `slots` in the chosen ones; the last may be used in part."""
    return float(cost[chosen] @ shares(chosen, slots))


def shares(chosen: Slots, slots: float) -> Floats:
    """Return the used share of each chosen slot: 1, or less for the last of `slots`."""
    used: Floats = np.clip(slots - np.arange(int(chosen.sum())), 0.0, 1.0)
    return used


def _without_a_pause(cost: Floats, needed: int, *, is_running: bool) -> Slots:
    """Return the slots of the cheapest run without a pause, the earliest of equal ones."""
    first = 0
    if not is_running:
        sums = np.concatenate(([0.0], np.cumsum(_whole(cost))))
        first = int((sums[needed:] - sums[:-needed]).argmin())
    chosen = np.zeros(cost.size, np.bool_)
    chosen[first : first + needed] = True
    return chosen


def _whole(cost: Floats) -> Floats:
    """Return costs as whole numbers, in billionths of the greatest, so that sums are exact."""
    units: Floats = np.round(cost / unit_of(cost))
    return units


def _slots_for(time_s: float, slot_s: float) -> int:
    return math.ceil(time_s / slot_s - ROUNDING)
