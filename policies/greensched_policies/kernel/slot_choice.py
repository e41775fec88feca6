"""The slots in which work that may be suspended runs: the cheapest, if they save enough.

Times are in seconds. Slots are counted from now on.
"""

from typing import NamedTuple

import numpy as np

from greensched_core.units import KWH_PER_MWH
from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs import pausing, run_energy, slot_window
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.pausing import ROUNDING, PauseColumns, Slots
from greensched_policies.costs.slot_window import NOT_RUNNING
from greensched_policies.encoding import carbon_limit
from greensched_policies.encoding.slots import FULL
from greensched_policies.encoding.weights import CarbonLimit, Weights
from greensched_policies.kernel.planning import Basis
from greensched_policies.kernel.starts import (
    NO_TRANSFER,
    SLOT_COLUMNS,
    PendingWork,
    complete_slots,
    watch_slots,
)
from greensched_policies.library.functions import (
    KEPT,
    NO_ROOM,
    NOW_IS_BEST,
    PLANNED,
    SAVES_TOO_LITTLE,
)
from greensched_policies.rules import pause

RUN_S, CARBON, PRICE, MERIT = range(4)  # of the means over a run

_planned_slots = compiled(pausing.planned_slots)
_restarts = compiled(pausing.restarts)
_pause_if_worth = compiled(pause.pause_if_worth)
_is_within = compiled(carbon_limit.is_within, inlined)
_run_kwh = compiled(run_energy.run_kwh, inlined)
_slots_needed = compiled(slot_window.slots_needed)


class SlotWork(NamedTuple):
    """The rest of a workload that may be suspended."""

    runtime_s: Floats  # [Z] expected; infinite where no node can take it
    power_w: Floats  # [Z]
    restart_s: float  # the time that one suspension costs
    most_restarts: float
    running_in: int  # the zone in which it runs now; NOT_RUNNING
    first: int  # the first slot in which it may run, unless it continues now
    kept: float  # the slot of the start planned before; NaN: none
    least_saving: float  # NaN: any
    least_change: float
    limit: CarbonLimit
    waits_for_room: bool  # whether it is held while the plan has no room for it


class SeenSlots(NamedTuple):
    """What is seen of the coming slots in each zone."""

    cost: Floats  # [Z,S] by the rule
    weighted: Floats  # [Z,S] money and carbon only
    busiest: Floats  # [Z,S]
    raw: Floats  # [3,Z,S] carbon, price and merit; NaN where data is missing
    counts: Integers  # [Z] by `slot_counts`


class SlotChoice(NamedTuple):
    """The chosen slots, the reason, and the counterfactual."""

    zone: int  # NOT_RUNNING: there is no choice, or the carbon limit forbids it
    zone_now: int  # of the run without a pause
    why: int
    saving: float
    has_room: bool
    chosen: Slots  # [S]
    run: Floats  # [4] means over it, restarts included
    run_now: Floats  # [4] of a run without a pause, as soon as possible


@fast
def see_all_slots(
    basis: Basis, work: PendingWork, weights: Weights, columns: Floats, raw: Floats
) -> None:
    """Fill in what a `when` rule sees of the next slots, [9,Z,S], and what choices need, [3,Z,S].

    The latter are carbon, price and merit, NaN where data is missing.
    """
    has_gaps = watch_slots(basis.grid, basis.plan, basis.slot_s, work, NO_TRANSFER, columns)
    for zone in range(raw.shape[1]):
        for place in range(raw.shape[2]):
            raw[0, zone, place] = columns[3, zone, place]
            raw[1, zone, place] = columns[5, zone, place]
            raw[2, zone, place] = columns[SLOT_COLUMNS - 1, zone, place]
    complete_slots(work, basis.slot_s, weights, has_gaps, columns)


@fast
def choose_slots(seen: SeenSlots, work: SlotWork, slot_s: float) -> SlotChoice:
    """Return the cheapest slots in the best zone, or a run without a pause if they save little."""
    needed, running_in = _slots_needed(work.runtime_s, slot_s), work.running_in
    best, least, chosen = NOT_RUNNING, np.inf, np.zeros(0, np.bool_)
    for zone in range(needed.size):
        count, is_able = seen.counts[zone], np.isfinite(work.runtime_s[zone])
        is_allowed = running_in == NOT_RUNNING or running_in == zone
        if count <= needed[zone] or not is_able or not is_allowed:
            continue
        found, total = _cheapest(seen.cost[zone, :count], work.runtime_s[zone], work, slot_s)
        if total < least or best == NOT_RUNNING:
            best, least, chosen = zone, total, found
    if best == NOT_RUNNING:
        return SlotChoice(best, best, 0, 0.0, False, chosen, np.zeros(4), np.zeros(4))
    choice = _judged(best, chosen, least, seen, work, slot_s)
    if _is_allowed(choice, work):
        return choice
    return SlotChoice(
        NOT_RUNNING, NOT_RUNNING, choice.why, 0.0, False, choice.chosen, choice.run, choice.run_now
    )


@fast
def _cheapest(cost: Floats, runtime_s: float, work: SlotWork, slot_s: float) -> tuple[Slots, float]:
    """Return the cheapest slots and their cost; only continued work runs before `work.first`."""
    is_running, first = work.running_in != NOT_RUNNING, work.first
    chosen, total = _chosen_from(0, cost, runtime_s, work, slot_s, is_running)
    if (is_running and chosen[0]) or (not is_running and first == 0):
        return chosen, total
    if np.argmax(chosen) >= first:
        return chosen, total
    now = _at_once(cost.size, runtime_s, work, slot_s)
    through = _cost_of_slots(now, cost, runtime_s / slot_s)
    restart_s = work.restart_s if is_running else 0.0
    if cost.size - first < _whole_slots(runtime_s + restart_s, slot_s):
        return now, through
    later, total = _chosen_from(first, cost, runtime_s + restart_s, work, slot_s, False)
    if is_running and through <= total:
        return now, through
    return later, total


@fast
def _chosen_from(
    first: int, cost: Floats, runtime_s: float, work: SlotWork, slot_s: float, is_running: bool
) -> tuple[Slots, float]:
    """Return the cheapest slots from `first` on, and their cost."""
    one = PauseColumns(
        np.full((1, 1), work.restart_s), np.full((1, 1), runtime_s), np.full((1, 1), slot_s)
    )
    restart = _pause_if_worth(one)[0, 0]
    found, total = _planned_slots(
        cost[first:].copy(), runtime_s, slot_s, work.restart_s, restart, work.most_restarts,
        is_running,
    )  # fmt: skip
    chosen = np.zeros(cost.size, np.bool_)
    chosen[first:] = found
    return chosen, total


@fast
def _at_once(count: int, runtime_s: float, work: SlotWork, slot_s: float) -> Slots:
    """Return the slots of a run without a pause, as soon as possible, [S]."""
    first = 0 if work.running_in != NOT_RUNNING else min(work.first, count - 1)
    return _slots_from(first, count, _whole_slots(runtime_s, slot_s))


@fast
def _soonest(best: int, seen: SeenSlots, work: SlotWork, slot_s: float) -> tuple[int, Slots]:
    """Return zone and slots of a run without a pause: the first that has room.

    Of runs that begin together it is the one that costs least money and carbon. Work that runs goes
    on where it is. Work that does not wait for room, or will find none, runs at once, in the `best`
    zone for slots if none has room.
    """
    found, earliest, least = best, seen.cost.shape[1], np.inf
    waits_for_room = work.waits_for_room and _slots_differ(seen, work)
    for zone in range(work.runtime_s.size):
        count, runtime_s = seen.counts[zone], work.runtime_s[zone]
        if work.running_in != NOT_RUNNING or np.isinf(runtime_s):
            continue
        needed = _whole_slots(runtime_s, slot_s)
        if count < needed:
            continue
        begin = _first_room(seen.busiest[zone, :count], work.first, needed)
        if begin > earliest or begin == count or (begin > work.first and not waits_for_room):
            continue
        run = _slots_from(begin, count, needed)
        total = _cost_of_slots(run, seen.weighted[zone, :count], runtime_s / slot_s)
        if begin < earliest or total < least:
            found, earliest, least = zone, begin, total
    count, runtime_s = seen.counts[found], work.runtime_s[found]
    if np.isinf(least):
        return found, _at_once(count, runtime_s, work, slot_s)
    return found, _slots_from(earliest, count, _whole_slots(runtime_s, slot_s))


@inlined
def _slots_differ(seen: SeenSlots, work: SlotWork) -> bool:
    """Return whether it matters when work runs; else nothing is held, not even for room."""
    least, most = np.inf, -np.inf
    for place in range(work.first, seen.weighted.shape[1]):
        best = np.inf
        for zone in range(work.runtime_s.size):
            if place < seen.counts[zone] and not np.isinf(work.runtime_s[zone]):
                best = min(best, seen.weighted[zone, place])
        if best < np.inf:
            least, most = min(least, best), max(most, best)
    return bool(most > least and most - least >= work.least_saving * abs(most))


@inlined
def _first_room(busiest: Floats, first: int, needed: int) -> int:
    """Return the first of so many slots in a row with room; the number of slots: there are none."""
    free = 0
    for place in range(first, busiest.size):
        free = free + 1 if busiest[place] <= FULL else 0
        if free == needed:
            return place + 1 - needed
    return int(busiest.size)


@fast
def _slots_from(begin: int, count: int, needed: int) -> Slots:
    """Return so many slots in a row, [S]."""
    chosen = np.zeros(count, np.bool_)
    chosen[begin : begin + needed] = True
    return chosen


@inlined
def _has_room(chosen: Slots, busiest: Floats) -> bool:
    """Return whether a zone has room in all chosen slots."""
    has_room = True
    for place in range(chosen.size):
        has_room &= not chosen[place] or busiest[place] <= FULL
    return has_room


@fast
def _judged(
    zone: int, chosen: Slots, total: float, seen: SeenSlots, work: SlotWork, slot_s: float
) -> SlotChoice:
    """Return the choice, or another one if it saves or changes too little."""
    count, runtime_s = chosen.size, work.runtime_s[zone]
    cost, is_running = seen.cost[zone, :count], work.running_in != NOT_RUNNING
    (zone_now, now), why = _soonest(zone, seen, work, slot_s), PLANNED
    now_s, first = work.runtime_s[zone_now], 0 if is_running else work.first
    has_least = not np.isnan(work.least_saving)
    if has_least and not np.isnan(work.kept) and not is_running:
        chosen, why = _kept(cost, chosen, total, runtime_s, work, slot_s)
    if np.argmax(chosen) == np.argmax(now):
        why = NOW_IS_BEST
    run_s = runtime_s + _restarts(chosen, is_running) * work.restart_s
    spent = _cost_of_slots(chosen, seen.weighted[zone, :count], run_s / slot_s)
    at_once = _cost_of_slots(now, seen.weighted[zone_now, : now.size], now_s / slot_s)
    saving = (at_once - spent) / abs(at_once) if at_once != 0.0 else 0.0
    if has_least and not (saving > 0.0 and saving >= work.least_saving):
        zone, chosen, saving, run_s = zone_now, now, 0.0, now_s
        why = why if why == NOW_IS_BEST else SAVES_TOO_LITTLE
    if has_least and np.argmax(now) > first and np.argmax(chosen) == np.argmax(now):
        why = NO_ROOM
    has_room = _has_room(chosen, seen.busiest[zone])
    means = _means(chosen, run_s, seen.raw[:, zone, : chosen.size], slot_s)
    means_now = _means(now, now_s, seen.raw[:, zone_now, : now.size], slot_s)
    return SlotChoice(zone, zone_now, why, saving, has_room, chosen, means, means_now)


@fast
def _kept(
    cost: Floats, chosen: Slots, total: float, runtime_s: float, work: SlotWork, slot_s: float
) -> tuple[Slots, int]:
    """Return the choice, or slots from the earlier planned start if they are about as good."""
    place, needed = int(work.kept), _whole_slots(runtime_s, slot_s)
    if place == np.argmax(chosen):
        return chosen, KEPT
    if not work.first <= place <= cost.size - needed:
        return chosen, PLANNED
    kept, spent, left_s = np.zeros(cost.size, np.bool_), cost[place], runtime_s - slot_s
    if left_s > 0.0:
        kept, more = _chosen_from(place + 1, cost, left_s, work, slot_s, True)
        spent += more
    kept[place] = True
    if spent - total > work.least_change * abs(spent):
        return chosen, PLANNED
    return kept, KEPT


@fast
def _means(chosen: Slots, run_s: float, raw: Floats, slot_s: float) -> Floats:
    """Return the runtime, and the means of carbon, price and merit over the chosen slots, [4]."""
    found, left, used, energy = np.zeros(4), run_s / slot_s, 0.0, 0.0
    for place in range(chosen.size):
        if chosen[place]:
            share = max(min(left, 1.0), 0.0)
            by_energy = share * raw[2, place]
            found[CARBON] += raw[0, place] * by_energy
            found[PRICE] += raw[1, place] * by_energy
            used, energy, left = used + share, energy + by_energy, left - 1.0
    found[RUN_S], found[MERIT] = run_s, energy / used
    found[CARBON] /= energy
    found[PRICE] /= energy
    return found


@fast
def _is_allowed(choice: SlotChoice, work: SlotWork) -> bool:
    """Return whether the carbon limit allows the slots; what is unknown counts as equal."""
    run, now = choice.run, choice.run_now
    kwh = _run_kwh(work.power_w[choice.zone], run[RUN_S], run[MERIT])
    kwh_now = _run_kwh(work.power_w[choice.zone_now], now[RUN_S], now[MERIT])
    carbon_g, now_g = run[CARBON] * kwh, now[CARBON] * kwh_now
    if np.isnan(carbon_g) or np.isnan(now_g):
        return True
    saved = (now[PRICE] * kwh_now - run[PRICE] * kwh) / KWH_PER_MWH
    return bool(_is_within(carbon_g, 0.0 if np.isnan(saved) else saved, now_g, work.limit))


@inlined
def _cost_of_slots(chosen: Slots, cost: Floats, slots: float) -> float:
    """Return the cost of running for `slots` in the chosen ones; the last may be used in part."""
    total = 0.0
    for place in range(chosen.size):
        if chosen[place]:
            total += cost[place] * max(min(slots, 1.0), 0.0)
            slots -= 1.0
    return total


@inlined
def _whole_slots(time_s: float, slot_s: float) -> int:
    return max(int(np.ceil(time_s / slot_s - ROUNDING)), 1)
