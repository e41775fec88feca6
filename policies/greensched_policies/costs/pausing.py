"""Work that may be suspended: what a pause rule sees, and which slots the work then runs in."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats

Slots = npt.NDArray[np.bool_]  # [S] whether work runs in each
# Where work stands before a slot: its first run segment is still to come, it runs, or it is
# suspended.
BEFORE, RUNNING, SUSPENDED = 0, 1, 2
ROUNDING = 1e-9  # of a slot, and of the greatest cost
_TINY = 1e-300


class PauseColumns(NamedTuple):
    """What suspending takes each workload, float64 [B,N], on the nodes it may expect."""

    restart_s: Floats  # starting up again, and saving what a checkpoint would not save anyway
    runtime_s: Floats  # expected, of all that is left to do
    slot_s: Floats  # work is suspended and resumed so far apart


def cheapest_slots(
    cost: Floats, needed: int, restart: float, is_running: bool
) -> tuple[Slots, float]:
    """Return in which slots work of `needed` slots runs for the least, [S], and what that costs.

    `cost`, [S], is what a when rule says of each slot; `needed` is 1 to S. Each run segment but the
    first costs `restart` times the magnitude of the cost of its first slot more: infinity, and
    there is one run segment only. Work that is running goes on in the first slot for nothing. Of
    equal choices the earliest is taken.

    Exact, by Bellman's recursion over slots: O(S · needed) time, three bytes of memory for each.
    Costs count to a billionth of the greatest, so that equal ones are not told apart by rounding.
    """
    slots, unit = cost.size, unit_of(cost)
    units = np.round(cost / unit)  # whole numbers: their sums are exact
    # What the slots from here on cost, [3, needed + 1]: by where the work stands, and what is left.
    to_go = np.full((3, needed + 1), np.inf)
    to_go[:, 0] = 0.0
    runs = np.zeros((slots, 3, needed + 1), np.bool_)
    for slot in range(slots - 1, -1, -1):
        again = np.inf if np.isinf(restart) else restart * abs(units[slot])
        for left in range(min(needed, slots - slot), 0, -1):
            run = units[slot] + to_go[RUNNING, left - 1]
            rest = to_go[SUSPENDED, left]
            runs[slot, BEFORE, left] = run <= to_go[BEFORE, left]
            runs[slot, RUNNING, left] = run <= rest
            runs[slot, SUSPENDED, left] = run + again <= rest
            to_go[BEFORE, left] = min(run, to_go[BEFORE, left])
            to_go[RUNNING, left] = min(run, rest)
            to_go[SUSPENDED, left] = min(run + again, rest)
    total = to_go[RUNNING if is_running else BEFORE, needed] * unit
    return walked(runs, needed, is_running), total


def unit_of(cost: Floats) -> float:
    """Return a billionth of the greatest cost, by which all are counted."""
    unit: float = max(np.max(np.abs(cost)) * ROUNDING, _TINY)
    return unit


def walked(runs: npt.NDArray[np.bool_], needed: int, is_running: bool) -> Slots:
    """Return the slots in which work runs, [S], once it is known whether it does in each of them.

    `runs` tells that by slot, by where the work stands, and by how many slots are left to run.
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
    """Return how often work that runs in those slots is resumed; [S]."""
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
    """Return in which slots work runs, [S], and what that costs: time for its restarts included.

    `runtime_s` is what is left of one workload, `restart_s` what each restart takes beside it, and
    `restart` what it costs, as a pause rule says. The last slot of all has as much time to spare as
    in a run without a pause. Such a run is returned where it costs no more, where there are not
    slots enough for so many restarts, or they are more than `most_restarts`.
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
    """Return what running for so many slots costs in those chosen; the last may take less."""
    left, total = slots, 0.0
    for slot in range(chosen.size):
        if chosen[slot]:
            total += cost[slot] * max(min(left, 1.0), 0.0)
            left -= 1.0
    return total


def _slots_for(time_s: float, slot_s: float) -> int:
    return int(np.ceil(time_s / slot_s - ROUNDING))
