"""A job's candidate starts, and the plan of the cores that run in each zone."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import FULL, SlotColumns, with_overload
from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.moving import Data, transfer_surcharges
from greensched_simulator.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet
from greensched_simulator.engine.state.forecast_window import fill_gaps, watch_run
from greensched_simulator.engine.state.terms import RunConfig

MOST_SLOTS = 672  # a week of quarter hours
_LEAST_MAGNITUDE = 1e-30

# What is seen of each zone and start, in the order of SlotColumns: carbon at the start and over the
# run, price at the start and over the run, their weighted sum over the run, and the load.
SEEN, _WEIGHTED, _BUSIEST = 6, 4, 5

_with_overload = compiled(with_overload, inlined)


class Plan(NamedTuple):
    """The cores that run or are to run in each zone, slot by slot from time 0.

    A run counts fully in each slot that it touches. The plan ends with its last slot. It has no
    slots if jobs start on arrival and no rule looks ahead.
    """

    cores: Floats  # [Z,S]
    capacity: Floats  # [Z] cores of the zone's nodes


class Start(NamedTuple):
    """A job's planned start, and its best zone then; NaN if it is rejected."""

    start_s: float
    zone: int  # NOWHERE if it is rejected
    runtime_s: float  # expected there


class UnstartedJob(NamedTuple):
    """A job, or the rest of one, that may start now or later."""

    now_s: float
    runtime_s: Floats  # [Z] expected in each zone, infinite where no node can take it
    cpu_cores: float
    data: Data
    run_j: Floats  # [Z] joules of such a run, over which the cost of its data transfer is spread


@inlined
def is_kept(plan: Plan) -> bool:
    """Return whether the plan has any slots."""
    return plan.cores.shape[1] > 0


@fast
def choose_start(
    grid: GridTable,
    plan: Plan,
    terms: RunConfig,
    rules: RuleSet,
    work: UnstartedJob,
    latest_s: float,
) -> Start:
    """Return the start up to `latest_s` with the least cost by the `when` rule.

    A rule that may reject jobs is also called for a single candidate.
    """
    count = starts_between(work.now_s, latest_s, terms)
    slots, zones = slot_columns(grid, plan, terms, work, count)
    best = 0
    if count > 1 or terms.may_reject:
        cost = rules.when[0](slots)[0]
        best = int(np.argmin(cost))
        if np.isposinf(cost[best]):
            return Start(np.nan, NOWHERE, np.nan)
    zone = zones[best]
    return Start(work.now_s + best * terms.slot_s, zone, work.runtime_s[zone])


@inlined
def starts_between(now_s: float, latest_s: float, terms: RunConfig) -> int:
    """Return the number of candidate starts, at least one: now."""
    return min(max(int((latest_s - now_s) // terms.slot_s), 0) + 1, MOST_SLOTS)


@fast
def slot_columns(
    grid: GridTable, plan: Plan, terms: RunConfig, work: UnstartedJob, count: int
) -> tuple[SlotColumns, Integers]:
    """Return `count` candidate starts of one job, and the best zone of each, [S]."""
    runtime_s, slot_s = work.runtime_s, terms.slot_s
    seen = np.empty((SEEN, runtime_s.size, count))
    room = np.empty((2, count + most_slots(runtime_s, slot_s)))
    columns, best = np.empty((2 + SEEN, 1, count)), np.empty(count, np.int64)
    surcharge = transfer_surcharges(terms.links, work.data, work.run_j)
    watch(grid, plan, slot_s, work, surcharge, seen, room)
    choose_zones(runtime_s, terms, seen, room, best)
    take_best(runtime_s, slot_s, seen, best, columns)
    return as_slots(columns), best


@fast
def as_slots(columns: Floats) -> SlotColumns:
    """Return a table whose rows are the fields of SlotColumns, [8,…], as a rule takes it."""
    return SlotColumns(
        columns[0], columns[1], columns[2], columns[3],
        columns[4], columns[5], columns[6], columns[7],
    )  # fmt: skip


@borrowing
def watch(
    grid: GridTable,
    plan: Plan,
    slot_s: float,
    work: UnstartedJob,
    surcharge: Floats,
    seen: Floats,
    room: Floats,
) -> None:
    """Fill in `seen`, [6,Z,S], except the weighted sum; missing data is replaced by a mean.

    `surcharge` is the effect of the data transfer to each zone: see `transfer_surcharges`.
    """
    now_s, has_gaps = work.now_s, False
    for zone in range(work.runtime_s.size):
        runtime_s = work.runtime_s[zone]
        if np.isinf(runtime_s):
            seen[:, zone], seen[_BUSIEST, zone], has_gaps = np.nan, 0.0, True
            continue
        has_gaps |= watch_run(grid, zone, slot_s, now_s, runtime_s, seen)
        if surcharge.shape[1] > 0:
            for place in range(seen.shape[2]):
                seen[1, zone, place] *= surcharge[0, zone]
                seen[3, zone, place] += surcharge[1, zone]
        touched = slots_of(now_s, now_s + runtime_s, slot_s, plan.cores.shape[1])
        watch_plan(plan, zone, touched, work.cpu_cores, room, seen[_BUSIEST, zone])
    if has_gaps:
        for signal in range(_WEIGHTED):
            fill_gaps(seen[signal])


@borrowing
def choose_zones(
    runtime_s: Floats, terms: RunConfig, seen: Floats, room: Floats, best: Integers
) -> None:
    """Fill in the weighted sum in `seen`, and the best zone of each start, [S]."""
    flat = seen.reshape((SEEN, seen[0].size))
    weigh(flat, terms.weights.carbon, terms.weights.cost)
    spread = _spread(flat[_WEIGHTED], flat[_BUSIEST])
    least = room[0]
    for place in range(best.size):
        best[place], least[place] = 0, np.inf
    for zone in range(runtime_s.size):
        if not np.isinf(runtime_s[zone]):
            weighted, busiest = seen[_WEIGHTED, zone], seen[_BUSIEST, zone]
            for place in range(best.size):
                cost = _with_overload(weighted[place], busiest[place], spread)
                is_better = cost < least[place]
                best[place] = zone if is_better else best[place]
                least[place] = cost if is_better else least[place]


@borrowing
def take_best(
    runtime_s: Floats, slot_s: float, seen: Floats, best: Integers, columns: Floats
) -> None:
    """Fill in the fields of SlotColumns, [8,1,S], from the best zones."""
    waits_s, runtimes_s = columns[0, 0], columns[1, 0]
    for place in range(best.size):
        waits_s[place], runtimes_s[place] = place * slot_s, runtime_s[np.uintp(best[place])]
    for kind in range(SEEN):
        column, of_zones = columns[2 + kind, 0], seen[kind]
        for place in range(best.size):
            column[place] = of_zones[np.uintp(best[place]), np.uintp(place)]


@inlined
def most_slots(runtime_s: Floats, slot_s: float) -> int:
    """Return the most slots that a run in any zone touches."""
    longest_s = 0.0
    for zone in range(runtime_s.size):
        if not np.isinf(runtime_s[zone]):
            longest_s = max(longest_s, runtime_s[zone])
    return int(longest_s / slot_s) + 2


@borrowing
def watch_plan(
    plan: Plan,
    zone: int,
    touched: tuple[int, int],
    cpu_cores: float,
    room: Floats,
    busiest: Floats,
) -> None:
    """Fill in the zone's busiest share of cores over a run from each start, [S].

    `touched` are the slots of a run that begins now, from `slots_of`. `room`, at least
    [2, S + slots of the run], is working memory for the maxima over 1, 2, 4, 8 … slots from each
    slot on; two of them cover any run.
    """
    cores, capacity = plan.cores[zone], max(plan.capacity[zone], 1e-9)
    first, end = touched
    width = end - first
    count = busiest.size + width - 1
    most, into = cores[first:], 0
    if most.size < count:
        most, into = room[0], 1
        for at in range(count):
            most[at] = cores[min(first + at, cores.size - 1)]
    span = 1
    while 2 * span <= width:
        shorter, later, most = most, most[span:], room[into]
        for at in range(count + 1 - 2 * span):
            most[at] = max(shorter[at], later[at])
        into = 1 - into
        span *= 2
    later = most[width - span :]
    for place in range(busiest.size):
        busiest[place] = (max(most[place], later[place]) + cpu_cores) / capacity


@borrowing
def keep(
    plan: Plan, zone: int, slot_s: float, begin_s: float, end_s: float, cpu_cores: float
) -> None:
    """Add cores to the plan from `begin_s` to `end_s`; negative ones remove them."""
    if not is_kept(plan):
        return
    cores = plan.cores[zone]
    first, last = slots_of(begin_s, end_s, slot_s, cores.size)
    for at in range(first, last):
        cores[at] += cpu_cores


@inlined
def slots_of(begin_s: float, end_s: float, slot_s: float, slots: int) -> tuple[int, int]:
    """Return the range of slots that an interval touches: the first, and the one after the last."""
    first = min(int(begin_s // slot_s), slots - 1)
    last = min(int(np.ceil(end_s / slot_s)), slots)
    return first, max(last, first + 1)


@borrowing
def weigh(seen: Floats, by_carbon: float, by_price: float) -> None:
    """Fill in the weighted sum of carbon and price over the run in `seen`, [6,Z·S].

    Carbon and price are first divided by their mean magnitudes.
    """
    carbon, price, weighted = seen[1], seen[3], seen[_WEIGHTED]
    by_carbon /= max(_mean_magnitude(carbon), _LEAST_MAGNITUDE)
    by_price /= max(_mean_magnitude(price), _LEAST_MAGNITUDE)
    for place in range(weighted.size):
        weighted[place] = by_carbon * carbon[place] + by_price * price[place]


@inlined
def _mean_magnitude(values: Floats) -> float:
    """Return the mean magnitude; four independent sums let additions run in parallel."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = values.size - values.size % 4
    for place in range(0, whole, 4):
        one += abs(values[place])
        two += abs(values[place + 1])
        three += abs(values[place + 2])
        four += abs(values[place + 3])
    for place in range(whole, values.size):
        one += abs(values[place])
    return (one + two + three + four) / values.size


@inlined
def _spread(weighted: Floats, busiest: Floats) -> float:
    """Return the range of the weighted costs; 0 if no start exceeds the capacity."""
    is_over = False
    for place in range(busiest.size):
        is_over |= busiest[place] > FULL
    if not is_over:
        return 0.0
    least, most = np.inf, -np.inf
    for place in range(weighted.size):
        least, most = min(least, weighted[place]), max(most, weighted[place])
    return most - least
