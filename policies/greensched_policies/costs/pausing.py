"""Work that may be suspended: the input of pause rules, and the slots in which the work runs."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats

Slots = npt.NDArray[np.bool_]  # [S] whether work runs in each
# State of work before a slot: it has not started yet, it runs, or it is suspended.
BEFORE, RUNNING, SUSPENDED = 0, 1, 2
ROUNDING = 1e-9  # of a slot, and of the greatest cost
_TINY = 1e-300


class PauseColumns(NamedTuple):
    """What suspending costs each workload, float64 [B,N], on the nodes that it may get."""

    restart_s: Floats  # to start up again, and to save what no checkpoint saves anyway
    runtime_s: Floats  # expected for all remaining work
    slot_s: Floats  # the unit of time in which work is suspended and resumed


def cheapest_slots(
    cost: Floats, needed: int, restart: float, is_running: bool
) -> tuple[Slots, float]:
    """Return the cheapest slots for work of `needed` slots, [S], and their cost.

    `cost`, [S], is a when rule's cost of each slot; `needed` is 1 to S. Each run segment after the
    first adds `restart` times the magnitude of its first slot's cost; infinity allows one run
    segment only. Running work continues in the first slot without this cost. Of equal choices the
    earliest is taken.

    Exact, by Bellman's recursion over slots: O(S · needed) time, three bytes of memory for each.
    Costs are rounded to a billionth of the greatest, so that equal ones stay equal.
    """
    slots, unit = cost.size, unit_of(cost)
    units = np.round(cost / unit)  # whole numbers: their sums are exact
    # The least cost of the slots from here on, [3, needed + 1], by state and slots left to run.
    to_go = np.full((3, needed + 1), np.inf)
    to_go[:, 0] = 0.0
    runs = np.zeros((slots, 3, needed + 1), np.bool_)
    for slot in range(slots - 1, -1, -1):
        resuming = np.inf if np.isinf(restart) else restart * abs(units[slot])
        for left in range(min(needed, slots - slot), 0, -1):
            run = units[slot] + to_go[RUNNING, left - 1]
            rest = to_go[SUSPENDED, left]
            runs[slot, BEFORE, left] = run <= to_go[BEFORE, left]
            runs[slot, RUNNING, left] = run <= rest
            runs[slot, SUSPENDED, left] = run + resuming <= rest
            to_go[BEFORE, left] = min(run, to_go[BEFORE, left])
            to_go[RUNNING, left] = min(run, rest)
            to_go[SUSPENDED, left] = min(run + resuming, rest)
    total = to_go[RUNNING if is_running else BEFORE, needed] * unit
    return walked(runs, needed, is_running), total


def unit_of(cost: Floats) -> float:
    """Return a billionth of the greatest cost, the unit to which costs are rounded."""
    unit: float = max(np.max(np.abs(cost)) * ROUNDING, _TINY)
    return unit


def walked(runs: npt.NDArray[np.bool_], needed: int, is_running: bool) -> Slots:
    """Return the slots in which work runs, [S], by following the best choices from the first on.

    `runs` is whether work runs, by slot, by its state, and by the number of slots left to run.
    """
    chosen = np.zeros(runs.shape[0], np.bool_)
    state, left = RUNNING if is_running else BEFORE, needed
    for slot in range(chosen.size):
        if left == 0:
            break
        chosen[slot] = runs[slot, state, left]
        if chosen[slot]:
            state, left = RUNNING, left - 1
        elif state == RUNNING:
            state = SUSPENDED
    return chosen


def restarts(chosen: Slots, is_running: bool) -> int:
    """Return how often work that runs in the chosen slots, [S], is resumed."""
    count, was_running, has_run = 0, is_running, is_running
    for runs in chosen:
        if runs and not was_running and has_run:
            count += 1
        was_running, has_run = runs, has_run or runs
    return count


def planned_slots(
    cost: Floats,
    runtime_s: float,
    slot_s: float,
    restart_s: float,
    restart: float,
    most_restarts: float,
    is_running: bool,
) -> tuple[Slots, float]:
    """Return the slots in which work runs, [S], and their cost, with time for its restarts.

    `runtime_s` is the remaining runtime of one workload, `restart_s` the additional time of each
    restart, and `restart` its cost by a pause rule. The last slot has as much spare time as in a
    run without a pause. Such a run is returned if it costs no more, if there are too few slots for
    the restarts, or if more than `most_restarts` are needed.
    """
    in_one = min(max(_slots_for(runtime_s, slot_s), 1), cost.size)
    through, _ = cheapest_slots(cost, in_one, np.inf, is_running)
    least = _cost_of(through, cost, runtime_s / slot_s)
    needed, again = in_one, 0
    while needed <= cost.size and again <= most_restarts:
        chosen, _ = cheapest_slots(cost, needed, restart, is_running)
        again = restarts(chosen, is_running)
        if again == 0:
            break
        spent_s = in_one * slot_s if chosen[-1] else runtime_s
        asked = _slots_for(spent_s + again * restart_s, slot_s)
        if asked <= needed and again <= most_restarts:
            total = _cost_of(chosen, cost, (runtime_s + again * restart_s) / slot_s)
            if total < least - ROUNDING * abs(least):
                return chosen, total
            break
        needed = max(asked, needed + 1)
    return through, least


def _cost_of(chosen: Slots, cost: Floats, slots: float) -> float:
    """Return the cost of running for `slots` in the chosen ones; the last may be used in part."""
    left, total = slots, 0.0
    for slot in range(chosen.size):
        if chosen[slot]:
            total += cost[slot] * max(min(left, 1.0), 0.0)
            left -= 1.0
    return total


def _slots_for(time_s: float, slot_s: float) -> int:
    return int(np.ceil(time_s / slot_s - ROUNDING))
