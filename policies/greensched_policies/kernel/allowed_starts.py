"""The choice among the starts that are allowed: from a time on, and not in quiet spans.

A window or a budget says from when, quiet hours of a policy say when not.
"""

import numpy as np

from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs import quiet_spans
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.kernel.choosing import (
    Choice,
    StartTerms,
    choose,
    saved_share,
    soonest_of,
)
from greensched_policies.kernel.starts import as_slots
from greensched_policies.library.functions import NEVER_QUIET, NOT_BEFORE

_may_start = compiled(quiet_spans.may_start, inlined)


@fast
def allowed_starts(
    now_s: float, slot_s: float, count: int, from_s: float, quiet_s: Floats, row: int
) -> Integers:
    """Return the places of the allowed starts among so many, at least one: else of the last one.

    `quiet_s`, [2,P,Q], are begins and ends of the quiet spans; `row` says which, or NEVER_QUIET.
    """
    found, size, spans = np.empty(count, np.int64), 0, quiet_s.shape[2]
    if row == NEVER_QUIET:
        row, spans = 0, 0
    for at in range(count):
        begin_s = now_s + at * slot_s
        if _may_start(begin_s, slot_s, from_s, quiet_s[0, row, :spans], quiet_s[1, row, :spans]):
            found[size] = at
            size += 1
    if size == 0:
        found[0], size = count - 1, 1
    return found[:size]


@fast
def choose_allowed(allowed: Integers, columns: Floats, cost: Floats, terms: StartTerms) -> Choice:
    """Return the best of the allowed starts of one workload, [A], as `choose` does of all.

    Waits are judged against the first of them. What the choice saves is told against the soonest
    start of all, allowed or not. `columns`, [9,1,S], are the fields of SlotColumns.
    """
    slots = as_slots(columns)
    if allowed.size == cost.size:
        return choose(slots, cost, terms)
    among = StartTerms(
        terms.run_j[allowed], terms.limit, _place_of(terms.kept_place, allowed),
        terms.least_saving, terms.least_change, terms.waits_for_room,
    )  # fmt: skip
    found = choose(as_slots(columns[:, :, allowed]), cost[allowed], among)
    soonest, place = soonest_of(slots.busiest_over_run[0]), allowed[found.place]
    saving = saved_share(slots.weighted_over_run[0], soonest, place) if place > 0 else 0.0
    why = NOT_BEFORE if place > 0 and found.place == 0 else found.why
    lacks_room = found.lacks_room and place == 0
    return Choice(place, why, allowed[found.expected], soonest, saving, lacks_room)


@inlined
def _place_of(start: float, allowed: Integers) -> float:
    """Return the place of a start among the allowed ones; NaN if it is not there."""
    for place in range(allowed.size):
        if allowed[place] == start:
            return float(place)
    return np.nan
