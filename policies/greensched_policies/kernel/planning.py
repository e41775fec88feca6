"""The starts of many workloads on one forecast: each is chosen, and keeps its room in the plan."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs import late_runs
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import FULL, has_gpus, has_room
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, CarbonLimit, Weights
from greensched_policies.kernel.allowed_starts import allowed_starts, choose_allowed
from greensched_policies.kernel.choosing import Choice, StartTerms, soonest_of
from greensched_policies.kernel.forecast_window import watch_run
from greensched_policies.kernel.later_room import ALL_ROOM, LaterRoom, most_later
from greensched_policies.kernel.plan import Plan, keep, keep_more, slots_of
from greensched_policies.kernel.rules import ask, cost_by
from greensched_policies.kernel.starts import (
    NO_TRANSFER,
    SEEN,
    SLOT_COLUMNS,
    PendingWork,
    as_slots,
    choose_zones,
    fill_all_gaps,
    most_slots,
    starts_known,
    take_best,
    take_merit,
    watch,
    watch_room,
)
from greensched_policies.library import functions as rows
from greensched_policies.library.functions import (
    MOST_STARTS,
    NO_RULE,
    NO_ZONE,
    NO_ZONE_YET,
    QUEUED,
    STAYS,
)
from greensched_policies.library.grid_table import GridTable

# Starts of a queued workload that are looked at first: mostly one of them has room.
_FIRST_STARTS = 8

_has_room = compiled(has_room)
_late_share = compiled(late_runs.late_share, inlined)
_never_late_ratio = compiled(late_runs.never_late_ratio, inlined)
_has_gpus = compiled(has_gpus)


class Basis(NamedTuple):
    """The forecast and the plan on which all is decided."""

    grid: GridTable
    plan: Plan
    now_s: float
    slot_s: float
    busy_share: float  # of the cluster's cores, in the mean over the last day


class Many(NamedTuple):
    """The workloads."""

    asked: Floats  # [ASKED,N]
    runtime_s: Floats  # [N,Z]
    power_w: Floats  # [N,Z]
    quiet_s: Floats  # [2,P,Q] begins and ends of quiet spans


class SeenStarts(NamedTuple):
    """The candidate starts of one workload."""

    columns: Floats  # [9,1,S] the fields of SlotColumns
    zones: Integers  # [S] the best zone of each
    merit: Floats  # [S] joules on the nodes that come next there, relative to the mean node's
    has_carbon: bool  # whether any carbon is forecast


@fast
def plan_starts(basis: Basis, many: Many, order: Integers, ask_at: int, found: Floats) -> None:
    """Fill in `found`, [FOUND,N], for the workloads of `order`, one by one.

    `order`, [2,M], has the place of each, and that of its rule, or NO_RULE: then the function at
    the address `ask_at` gives the costs; or QUEUED.

    Work that may move keeps the room of its earlier plan until its turn comes, so that no other
    work takes it away: a better forecast for one would else move many.
    """
    has_kept = np.zeros(order.shape[1], np.bool_)
    for at in range(order.shape[1]):
        has_kept[at] = may_move(many, order[0, at]) and stays(basis, many, order[0, at])
    for at in range(order.shape[1]):
        place, rule = order[0, at], order[1, at]
        if rule == QUEUED:
            take_soonest(basis, many, place, found)
            continue
        if has_kept[at]:
            free_kept(basis, many, place)
        elif not may_move(many, place) and stays(basis, many, place):
            found[rows.WHY, place] = STAYS
            continue
        count = starts_of(basis, many, place)
        seen = see(basis, many, place, pending_work_of(basis, many, place), count)
        cost = np.zeros(count)
        if count > 1 and rule == NO_RULE:
            ask(ask_at, place, count, seen.columns.ctypes.data, cost.ctypes.data)
        elif count > 1:
            cost = cost_by(rule, as_slots(seen.columns))[0]
        take(basis, many, place, seen, cost, found)


@inlined
def starts_of(basis: Basis, many: Many, place: int) -> int:
    """Return the number of candidate starts of a workload: at least one, now.

    They end with its latest start, and with the forecast of the zones that can take it.
    """
    slack_s = many.asked[rows.LATEST_S, place] - basis.now_s
    slack_s = min(slack_s, MOST_STARTS * basis.slot_s)
    by_deadline, known = max(int(slack_s // basis.slot_s), 0) + 1, 1
    for zone in range(many.runtime_s.shape[1]):
        if not np.isinf(many.runtime_s[place, zone]):
            known = max(known, starts_known(basis.grid, zone, basis.now_s, basis.slot_s))
    return min(by_deadline, known, MOST_STARTS)


@fast
def pending_work_of(basis: Basis, many: Many, place: int) -> PendingWork:
    """Return a workload as a `PendingWork`."""
    cores, gpus = many.asked[rows.CPU_CORES, place], many.asked[rows.GPUS, place]
    memory_bytes = many.asked[rows.MEMORY_BYTES, place]
    most = most_later(many.asked[rows.NODE_SHARE, place], basis.busy_share)
    later = LaterRoom(many.asked[rows.LATEST_S, place], many.asked[rows.SPARE_S, place], most)
    runtime_s = many.runtime_s[place]
    run_j = many.power_w[place] * runtime_s
    return PendingWork(basis.now_s, runtime_s, cores, gpus, memory_bytes, later, run_j)


@fast
def with_all_room(work: PendingWork) -> PendingWork:
    """Return a workload whose later starts may take all room too."""
    return PendingWork(
        work.now_s, work.runtime_s, work.cpu_cores, work.gpus, work.memory_bytes, ALL_ROOM,
        work.run_j,
    )  # fmt: skip


@fast
def see(basis: Basis, many: Many, place: int, work: PendingWork, count: int) -> SeenStarts:
    """Return `count` candidate starts of a workload."""
    slot_s, asked = basis.slot_s, many.asked
    weights = Weights(
        asked[rows.BY_PRICE, place], asked[rows.BY_CARBON, place], asked[rows.BY_TIME, place]
    )
    seen = np.empty((SEEN, work.runtime_s.size, count))
    room = np.empty((2, count + most_slots(work.runtime_s, slot_s)))
    columns, zones = np.empty((SLOT_COLUMNS, 1, count)), np.empty(count, np.int64)
    merit, has_carbon = np.empty(count), True
    if watch(basis.grid, basis.plan, slot_s, work, NO_TRANSFER, seen, room):
        has_carbon = _is_any_known(seen[1])
        fill_all_gaps(seen)
    each_s = choose_zones(basis.grid, work, slot_s, weights, seen, room, zones)
    take_best(work.runtime_s, slot_s, each_s, seen, zones, columns)
    take_merit(seen, zones, merit)
    return SeenStarts(columns, zones, merit, has_carbon)


@borrowing
def stays(basis: Basis, many: Many, place: int) -> bool:
    """Return whether an earlier plan of a workload still has room, and keep that room again.

    One that waits for room does not stay if an earlier start has room now.
    """
    zone, from_s = int(many.asked[rows.STAYS_IN, place]), many.asked[rows.STAYS_FROM_S, place]
    if zone == NO_ZONE_YET or from_s < basis.now_s or np.isinf(many.runtime_s[place, zone]):
        return False
    expected = int(np.rint((from_s - basis.now_s) / basis.slot_s))
    if not _has_room_at(basis, many, place, zone, expected):
        return False
    if many.asked[rows.SEEKS_ROOM, place] != 0.0 and _has_room_before(basis, many, place, expected):
        return False
    _keep_room(basis, many, place, zone, expected)
    return True


@inlined
def may_move(many: Many, place: int) -> bool:
    """Return whether a workload with an earlier plan is planned anew, in the room of all others."""
    return bool(many.asked[rows.MAY_MOVE, place] != 0.0)


@borrowing
def free_kept(basis: Basis, many: Many, place: int) -> None:
    """Take back the room that `stays` has kept for a workload."""
    zone, from_s = int(many.asked[rows.STAYS_IN, place]), many.asked[rows.STAYS_FROM_S, place]
    expected = np.rint((from_s - basis.now_s) / basis.slot_s)
    begin_s = basis.now_s + expected * basis.slot_s
    end_s = begin_s + many.runtime_s[place, zone]
    cores, gpus = many.asked[rows.CPU_CORES, place], many.asked[rows.GPUS, place]
    memory_bytes = many.asked[rows.MEMORY_BYTES, place]
    keep(basis.plan, zone, basis.slot_s, begin_s, end_s, -cores)
    keep_more(basis.plan, zone, basis.slot_s, begin_s, end_s, -gpus, -memory_bytes)


@borrowing
def _has_room_at(basis: Basis, many: Many, place: int, zone: int, expected: int) -> bool:
    """Return whether a zone has room for a run that begins with a slot."""
    plan, slot_s, asked = basis.plan, basis.slot_s, many.asked
    begin_s = basis.now_s + expected * slot_s
    end_s = begin_s + many.runtime_s[place, zone]
    first, last = slots_of(begin_s, end_s, slot_s, plan.cores.shape[1])
    gpus = plan.gpus[zone, first : last if asked[rows.GPUS, place] > 0.0 else first]
    memory, most_bytes = plan.memory[zone, first:last], plan.memory_capacity[zone]
    cores, most = plan.cores[zone, first:last], plan.capacity[zone]
    return bool(
        _has_room(cores, most, asked[rows.CPU_CORES, place])
        and _has_room(memory, most_bytes, asked[rows.MEMORY_BYTES, place])
        and _has_gpus(gpus, plan.gpu_capacity[zone], asked[rows.GPUS, place])
    )


@fast
def _has_room_before(basis: Basis, many: Many, place: int, expected: int) -> bool:
    """Return whether any zone has room for a run that begins before a slot."""
    work = with_all_room(pending_work_of(basis, many, place))
    busiest = np.empty(expected)
    room = np.empty((2, expected + most_slots(work.runtime_s, basis.slot_s)))
    for zone in range(work.runtime_s.size):
        if not np.isinf(work.runtime_s[zone]):
            watch_room(basis.plan, basis.slot_s, work, zone, room, busiest)
            for place in range(expected):
                if busiest[place] <= FULL:
                    return True
    return False


@inlined
def _is_any_known(values: Floats) -> bool:
    for zone in range(values.shape[0]):
        for place in range(values.shape[1]):
            if not np.isnan(values[zone, place]):
                return True
    return False


@fast
def take(
    basis: Basis,
    many: Many,
    place: int,
    seen: SeenStarts,
    cost: Floats,
    found: Floats,
) -> None:
    """Choose the start of a workload by the costs, [S], note it, and keep its room in the plan."""
    work, asked, zones = pending_work_of(basis, many, place), many.asked, seen.zones
    if np.isinf(work.runtime_s[zones[0]]):
        found[:, place] = np.nan
        found[rows.WHY, place] = NO_ZONE
        return
    price_per_g = asked[rows.PRICE_PER_G, place] if seen.has_carbon else NO_CARBON_LIMIT
    kept = max(np.rint((asked[rows.KEPT_S, place] - basis.now_s) / basis.slot_s), 0.0)
    terms = StartTerms(
        _joules(work, seen),
        CarbonLimit(price_per_g, asked[rows.AT_ARRIVAL_G, place]),
        kept if not np.isnan(asked[rows.KEPT_S, place]) else np.nan,
        asked[rows.LEAST_SAVING, place],
        asked[rows.LEAST_CHANGE, place],
        asked[rows.WAITS_FOR_ROOM, place] != 0.0,
    )
    slots = as_slots(seen.columns)
    allowed = allowed_starts(
        basis.now_s, basis.slot_s, cost.size, asked[rows.FROM_S, place], many.quiet_s,
        int(asked[rows.QUIET, place]),
    )  # fmt: skip
    _price_lateness(basis, many, place, seen, cost)
    choice = choose_allowed(allowed, seen.columns, cost, terms)
    _keep_room(basis, many, place, zones[choice.expected], choice.expected)
    _note(choice, zones, slots.busiest_over_run[0], found[:, place])
    _note_means(basis, work, zones, choice, found[:, place])
    found[rows.MERIT, place] = seen.merit[choice.place]
    found[rows.MERIT_NOW, place] = seen.merit[choice.soonest]


@fast
def _price_lateness(basis: Basis, many: Many, place: int, seen: SeenStarts, cost: Floats) -> None:
    """Add to the costs of a workload's starts, [S], what the chance to end late costs.

    It counts relative to the cost of the soonest start, in whatever unit the rule gives costs.
    Where a start now costs nothing, as by a rule of savings, the greatest cost takes its place.
    """
    due_s, error = many.asked[rows.DUE_S, place], many.asked[rows.RUNTIME_ERROR, place]
    soonest = soonest_of(as_slots(seen.columns).busiest_over_run[0])
    if np.isinf(due_s) or not np.isfinite(cost[soonest]):
        return
    whole = abs(cost[soonest])
    if cost[0] == 0.0:
        for at in range(cost.size):
            whole = max(whole, abs(cost[at]) if np.isfinite(cost[at]) else 0.0)
    price = many.asked[rows.LATE_PRICE, place] * whole
    ratio = _never_late_ratio(error)
    for at in range(cost.size):
        runs = at if at > 0 else soonest  # work that starts now runs when there is room
        left_s = due_s - (basis.now_s + runs * basis.slot_s)
        runtime_s = many.runtime_s[place, np.uintp(seen.zones[runs])]
        if left_s < runtime_s * ratio:
            cost[at] += price * _late_share(left_s, runtime_s, error)


@fast
def _joules(work: PendingWork, seen: SeenStarts) -> Floats:
    """Return the joules of the run from each start, [S]."""
    found = np.empty(seen.zones.size)
    for at in range(found.size):
        found[at] = work.run_j[np.uintp(seen.zones[at])] * seen.merit[at]
    return found


@fast
def take_soonest(basis: Basis, many: Many, place: int, found: Floats) -> None:
    """Keep room in the plan for work that starts as soon as there is room; note where and when.

    It is what waits for a node already. Where no node can take it, nothing is kept.
    """
    work = with_all_room(pending_work_of(basis, many, place))
    most = starts_of(basis, many, place)
    count = min(_FIRST_STARTS, most)
    seen = see(basis, many, place, work, count)
    expected = soonest_of(as_slots(seen.columns).busiest_over_run[0])
    while count < most and as_slots(seen.columns).busiest_over_run[0, expected] > FULL:
        count = min(2 * count, most)
        seen = see(basis, many, place, work, count)
        expected = soonest_of(as_slots(seen.columns).busiest_over_run[0])
    zones = seen.zones
    if np.isinf(work.runtime_s[zones[0]]):
        found[rows.WHY, place] = NO_ZONE
        return
    _keep_room(basis, many, place, zones[expected], expected)
    found[rows.WHY, place] = rows.NO_CHOICE
    found[rows.EXPECTED, place], found[rows.ZONE_EXPECTED, place] = expected, zones[expected]


@borrowing
def _keep_room(basis: Basis, many: Many, place: int, zone: int, expected: int) -> None:
    asked, begin_s = many.asked, basis.now_s + expected * basis.slot_s
    end_s = begin_s + many.runtime_s[place, zone]
    gpus, memory_bytes = asked[rows.GPUS, place], asked[rows.MEMORY_BYTES, place]
    keep(basis.plan, zone, basis.slot_s, begin_s, end_s, asked[rows.CPU_CORES, place])
    keep_more(basis.plan, zone, basis.slot_s, begin_s, end_s, gpus, memory_bytes)


@inlined
def _note(choice: Choice, zones: Integers, busiest: Floats, found: Floats) -> None:
    found[rows.PLACE], found[rows.WHY] = choice.place, choice.why
    found[rows.EXPECTED], found[rows.SAVING] = choice.expected, choice.saving
    found[rows.ZONE], found[rows.ZONE_NOW] = zones[choice.place], zones[choice.soonest]
    found[rows.ZONE_EXPECTED] = zones[choice.expected]
    found[rows.LACKS_ROOM], found[rows.SOONEST] = choice.lacks_room, choice.soonest
    found[rows.HAS_ROOM] = busiest[choice.place] <= FULL


@fast
def _note_means(
    basis: Basis, work: PendingWork, zones: Integers, choice: Choice, found: Floats
) -> None:
    """Note the forecast means of carbon and price over the run, and over the soonest run."""
    seen = np.empty((SEEN, work.runtime_s.size, 1))
    for place, row in ((choice.place, rows.CARBON), (choice.soonest, rows.CARBON_NOW)):
        zone, begin_s = zones[place], basis.now_s + place * basis.slot_s
        watch_run(basis.grid, zone, basis.slot_s, begin_s, work.runtime_s[zone], seen)
        found[row], found[row + 1] = seen[1, zone, 0], seen[3, zone, 0]
