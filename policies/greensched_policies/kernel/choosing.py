"""The choice among candidate starts: least cost within the carbon limit, if it is worth the wait.

The thresholds are for people who wait: no start is delayed for a tiny saving, no plan is changed
for a tiny gain, and nothing waits for dirtier power unless a policy allows it.
"""

from typing import NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH, KWH_PER_MWH
from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding import carbon_limit
from greensched_policies.encoding.slots import FULL, SlotColumns
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, CarbonLimit
from greensched_policies.library.functions import (
    CARBON_LIMIT,
    KEPT,
    NO_CHOICE,
    NO_ROOM,
    NOW_IS_BEST,
    PLANNED,
    SAVES_TOO_LITTLE,
)

_ROUNDING = 1e-9  # as a share of a cost: within an hour of the forecast, starts often cost the same

_is_within = compiled(carbon_limit.is_within, inlined)
_is_above = compiled(carbon_limit.is_above, inlined)


class StartTerms(NamedTuple):
    """What a policy asks of the start of one workload."""

    run_j: Floats  # [S] joules of the run from each start, with the site's PUE
    limit: CarbonLimit
    kept_place: float  # the start planned before, in slots from now; NaN: none
    least_saving: float  # share of the weighted cost that makes a wait worth it; NaN: any wait is
    least_change: float  # share of its cost by which another start must be better than the kept one
    waits_for_room: bool  # whether it is held while the plan has no room for it


class Choice(NamedTuple):
    """The chosen start; places are slots from now on."""

    place: int
    why: int
    expected: int  # when it should run, later than `place` if there is no room yet
    soonest: int  # the counterfactual: now, or the first start with room
    saving: float  # share of the weighted cost saved against the soonest start
    lacks_room: bool  # it starts now, because starts worth the wait have no room


class _Best(NamedTuple):
    place: int
    why: int
    is_now_too_dirty: bool  # so it waits even if that saves nothing


@fast
def choose(slots: SlotColumns, cost: Floats, terms: StartTerms) -> Choice:
    """Return the best of the candidate starts of one workload, [1,S], by their costs, [S]."""
    busiest, weighted = slots.busiest_over_run[0], slots.weighted_over_run[0]
    has_thresholds = not np.isnan(terms.least_saving)
    best = _within_limit(slots, cost, terms)
    soonest = soonest_of(busiest)
    place, why = best.place, best.why
    saving = saved_share(weighted, soonest, place) if place > 0 else 0.0
    if place > 0 and not best.is_now_too_dirty and has_thresholds and not _is_worth(saving, terms):
        place, why, saving = 0, SAVES_TOO_LITTLE, 0.0
    # Work that starts now runs when there is room.
    expected = soonest if place == 0 and has_thresholds else place
    if terms.waits_for_room and expected > place and _starts_differ(weighted, terms):
        place, why = expected, NO_ROOM
    lacks_room = place == 0 and has_thresholds and _lacks_room(busiest, weighted, terms)
    return Choice(place, why, expected, soonest, saving, lacks_room)


@fast
def _within_limit(slots: SlotColumns, cost: Floats, terms: StartTerms) -> _Best:
    """Return the best start by the costs among those that the carbon limit allows."""
    busiest, count = slots.busiest_over_run[0], cost.size
    if count == 1:
        return _Best(0, NO_CHOICE, False)
    place, why = _best(cost, busiest, terms)
    if terms.limit.price_per_g == NO_CARBON_LIMIT:
        return _Best(place, why, False)
    grams, money, allowed = np.empty(count), np.empty(count), np.empty(count)
    for at in range(count):
        run_kwh = terms.run_j[at] / JOULES_PER_KWH
        grams[at] = slots.carbon_over_run[0, at] * run_kwh
        money[at] = slots.price_over_run[0, at] * run_kwh / KWH_PER_MWH
    soonest = soonest_of(busiest)
    runs = place if place > 0 else soonest  # work that starts now runs when there is room
    if _is_within(grams[runs], money[soonest] - money[runs], grams[soonest], terms.limit):
        return _Best(place, why, False)
    limit = CarbonLimit(terms.limit.price_per_g, np.inf)
    most_g = _most_grams(grams, busiest, terms.limit.at_arrival_g)
    for at in range(count):
        runs = at if at > 0 else soonest
        is_allowed = _is_within(grams[runs], money[soonest] - money[runs], most_g, limit)
        allowed[at] = cost[at] if is_allowed else np.inf
    within, why = _best(allowed, busiest, terms)
    if place > 0 and within == 0:
        why = CARBON_LIMIT
    return _Best(within, why, bool(np.isinf(allowed[0]) and not np.isinf(cost[0])))


@inlined
def _most_grams(grams: Floats, busiest: Floats, at_arrival_g: float) -> float:
    """Return the grams above which money must decide: those of now, or of a run on arrival.

    Those on arrival count only if some start with room emits no more. Else nothing would be
    allowed.
    """
    soonest = soonest_of(busiest)
    now_g = grams[soonest]
    if at_arrival_g < now_g:
        for at in range(grams.size):
            runs = at if at > 0 else soonest
            if busiest[at] <= FULL and not _is_above(grams[runs], at_arrival_g):
                return at_arrival_g
    return now_g


@inlined
def _best(cost: Floats, busiest: Floats, terms: StartTerms) -> tuple[int, int]:
    """Return the place of the cheapest start, or of the earlier plan if that is about as good."""
    best = _earliest_least(cost)
    if not np.isfinite(cost[best]):
        return 0, NO_CHOICE  # rejected, or a fault: left to the cluster's queue
    why = PLANNED if best > 0 else NOW_IS_BEST
    if np.isnan(terms.least_saving) or np.isnan(terms.kept_place):
        return best, why
    if terms.kept_place >= cost.size:
        return best, why
    kept = int(terms.kept_place)
    if kept == best:
        return best, KEPT if best > 0 else why
    if busiest[kept] > FULL >= busiest[best] or not np.isfinite(cost[kept]):
        return best, why
    if cost[kept] - cost[best] > terms.least_change * abs(cost[kept]):
        return best, why
    return kept, KEPT if kept > 0 else NOW_IS_BEST


@inlined
def _earliest_least(cost: Floats) -> int:
    """Return the first start whose cost is the least but for rounding."""
    least = cost[0]
    for at in range(cost.size):
        if cost[at] < least:
            least = cost[at]
    for at in range(cost.size):
        if cost[at] <= least + _ROUNDING * abs(least):
            return at
    return 0  # the first cost is not a number


@inlined
def soonest_of(busiest: Floats) -> int:
    """Return the first start with room, at which a workload would start if it were released now.

    If no start has room, return now.
    """
    for at in range(busiest.size):
        if busiest[at] <= FULL:
            return at
    return 0


@inlined
def saved_share(weighted: Floats, soonest: int, place: int) -> float:
    """Return the share of the weighted cost that a start saves against the soonest one."""
    magnitude = abs(weighted[soonest])
    return (weighted[soonest] - weighted[place]) / magnitude if magnitude > 0.0 else 0.0


@inlined
def _is_worth(saving: float, terms: StartTerms) -> bool:
    return bool(saving > 0.0 and saving >= terms.least_saving)


@inlined
def _starts_differ(weighted: Floats, terms: StartTerms) -> bool:
    """Return whether it matters when work starts; else nothing is held, not even for room."""
    least, most = 0, 0
    for at in range(weighted.size):
        least = at if weighted[at] < weighted[least] else least
        most = at if weighted[at] > weighted[most] else most
    return _is_worth(saved_share(weighted, most, least), terms)


@inlined
def _lacks_room(busiest: Floats, weighted: Floats, terms: StartTerms) -> bool:
    """Return whether some start would be worth the wait if the plan had room for it."""
    least = -1
    for at in range(busiest.size):
        if busiest[at] > FULL and (least < 0 or weighted[at] < weighted[least]):
            least = at
    return least >= 0 and _is_worth(saved_share(weighted, soonest_of(busiest), least), terms)
