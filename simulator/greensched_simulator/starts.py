"""When a job starts: its candidate starts, and the plan of what runs when, zone by zone."""

from typing import NamedTuple

import numpy as np

from greensched_policies.cost import Floats
from greensched_policies.courses import Integers
from greensched_policies.slots import SlotColumns, with_overload
from greensched_simulator.choices import NOWHERE, Rules, Terms
from greensched_simulator.compiled import compiled, fast, inlined
from greensched_simulator.grid_table import CARBON, PRICE, GridTable, integral_at, step_at

MOST_SLOTS = 672  # a week of quarter hours
_LEAST_MAGNITUDE = 1e-30

_with_overload = compiled(with_overload, inlined)


class Plan(NamedTuple):
    """The cores that run or are to run in each zone, slot by slot from time 0.

    Whatever touches a slot counts in all of it. What lies beyond the last slot is not kept.
    """

    cores: Floats  # [Z,S]
    capacity: Floats  # [Z] cores of the zone's nodes


class Start(NamedTuple):
    """When a job is to start, and in which zone it then is best; NaN if it is rejected."""

    start_s: float
    zone: int  # NOWHERE if it is rejected
    runtime_s: float  # expected there


@fast
def choose_start(
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
    now_s: float,
    runtime_s: Floats,
    latest_s: float,
    cpu_cores: float,
) -> Start:
    """Return the start from `now_s` to `latest_s` that the `when` rule likes best.

    `runtime_s` is what is expected in each zone, [Z], infinite where no node can take the job. A
    rule that may reject is asked also where there is but one choice.
    """
    count = starts_between(now_s, latest_s, terms)
    slots, zones = slot_columns(grid, plan, terms, now_s, runtime_s, count, cpu_cores)
    best = 0
    if count > 1 or terms.may_reject:
        cost = rules.when[0](slots)[0]
        best = int(np.argmin(cost))
        if np.isposinf(cost[best]):
            return Start(np.nan, NOWHERE, np.nan)
    zone = zones[best]
    return Start(now_s + best * terms.slot_s, zone, runtime_s[zone])


@inlined
def starts_between(now_s: float, latest_s: float, terms: Terms) -> int:
    """Return how many starts there are to choose from, at least one: now."""
    return min(max(int((latest_s - now_s) // terms.slot_s), 0) + 1, MOST_SLOTS)


@fast
def slot_columns(
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    now_s: float,
    runtime_s: Floats,
    count: int,
    cpu_cores: float,
) -> tuple[SlotColumns, Integers]:
    """Return the candidate starts of one workload, and the best zone of each, [S]."""
    seen, weighted, busiest, spread = watch_zones(
        grid, plan, terms, now_s, runtime_s, count, cpu_cores
    )
    zones = runtime_s.size
    best, at_best = np.empty(count, np.int64), np.empty((8, 1, count))
    for place in range(count):
        chosen, least = 0, np.inf
        for zone in range(zones):
            cost = _with_overload(weighted[zone, place], busiest[zone, place], spread)
            if cost < least and not np.isinf(runtime_s[zone]):
                chosen, least = zone, cost
        best[place] = chosen
        at_best[0, 0, place] = place * terms.slot_s
        at_best[1, 0, place] = runtime_s[chosen]
        for signal in range(4):
            at_best[2 + signal, 0, place] = seen[signal, chosen, place]
        at_best[6, 0, place] = weighted[chosen, place]
        at_best[7, 0, place] = busiest[chosen, place]
    columns = SlotColumns(
        at_best[0], at_best[1], at_best[2], at_best[3],
        at_best[4], at_best[5], at_best[6], at_best[7],
    )  # fmt: skip
    return columns, best


@fast
def watch_zones(
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    now_s: float,
    runtime_s: Floats,
    count: int,
    cpu_cores: float,
) -> tuple[Floats, Floats, Floats, float]:
    """Return what the slots from now on are like in each zone, for runs of so long from each.

    That is carbon and price, at the start and over the run, [4,Z,S], both in one figure and the
    zone's busiest share, [Z,S], and how far such figures lie apart at most. A zone that cannot take
    the run, whose time is infinite, has the means of the others.
    """
    zones, has_gaps = grid.starts.size - 1, False
    seen, busiest = np.empty((4, zones, count)), np.empty((zones, count))
    for zone in range(zones):
        if np.isinf(runtime_s[zone]):
            seen[:, zone], busiest[zone], has_gaps = np.nan, 0.0, True
            continue
        has_gaps |= watch_run(grid, zone, terms.slot_s, now_s, runtime_s[zone], seen)
        watch_plan(plan, zone, terms.slot_s, now_s, runtime_s[zone], cpu_cores, busiest[zone])
    if has_gaps:
        for signal in range(4):
            fill_gaps(seen[signal])
    weighted, spread = weighted_costs(seen[1], seen[3], terms.weights.carbon, terms.weights.energy)
    return seen, weighted, busiest, spread


@fast
def watch_plan(
    plan: Plan,
    zone: int,
    slot_s: float,
    now_s: float,
    runtime_s: float,
    cpu_cores: float,
    busiest: Floats,
) -> None:
    """Fill in the zone's busiest share of cores over a run from each start, [slots].

    The maximum over a window that moves on slot by slot: places that can still become one are kept
    in falling order, so that each is looked at once.
    """
    cores, capacity = plan.cores[zone], max(plan.capacity[zone], 1e-9)
    first, width = slots_of(now_s, now_s + runtime_s, slot_s, cores.size)
    width -= first
    candidates = np.empty(busiest.size + width, np.int64)
    begin = end = 0
    for at in range(first, first + busiest.size + width - 1):
        value = cores[min(at, cores.size - 1)]
        while end > begin and cores[min(candidates[end - 1], cores.size - 1)] <= value:
            end -= 1
        candidates[end] = at
        end += 1
        place = at - first - width + 1
        if place >= 0:
            if candidates[begin] < first + place:
                begin += 1
            most = cores[min(candidates[begin], cores.size - 1)]
            busiest[place] = (most + cpu_cores) / capacity


@fast
def keep(
    plan: Plan, zone: int, slot_s: float, begin_s: float, end_s: float, cpu_cores: float
) -> None:
    """Add cores to the plan from `begin_s` to `end_s`; negative ones take them out again."""
    cores = plan.cores[zone]
    first, last = slots_of(begin_s, end_s, slot_s, cores.size)
    for at in range(first, last):
        cores[at] += cpu_cores


@fast
def slots_of(begin_s: float, end_s: float, slot_s: float, slots: int) -> tuple[int, int]:
    """Return the first slot that an interval touches and the one after its last, at least one."""
    first = min(int(begin_s // slot_s), slots - 1)
    last = min(int(np.ceil(end_s / slot_s)), slots)
    return first, max(last, first + 1)


@fast
def watch_run(
    grid: GridTable, zone: int, slot_s: float, now_s: float, runtime_s: float, seen: Floats
) -> bool:
    """Fill in `seen`, [4,zones,slots], for one zone: carbon at the start and over the run, price.

    The steps that hold at a run's begin and end only move on from slot to slot. Tells whether data
    is missing.
    """
    begin, end = step_at(grid, zone, now_s), step_at(grid, zone, now_s + runtime_s)
    last, times_s, has_gaps = grid.starts[zone + 1] - 1, grid.times_s, False
    for signal in (CARBON, PRICE):
        values, sums, gaps_s = grid.values[signal], grid.sums[signal], grid.gaps_s[signal]
        at_start, over_run = seen[2 * signal, zone], seen[2 * signal + 1, zone]
        factor, offset = grid.factors[signal, begin], grid.offsets[signal, begin]
        at, until, scale = begin, end, factor / runtime_s
        for place in range(at_start.size):
            begin_s = now_s + place * slot_s
            end_s = begin_s + runtime_s
            while at < last and times_s[at + 1] <= begin_s:
                at += 1
            while until < last and times_s[until + 1] <= end_s:
                until += 1
            at_start[place] = values[at] * factor + offset
            has_gaps |= np.isnan(at_start[place])
            if at == until:
                over_run[place] = at_start[place]
            elif gaps_s[until] > gaps_s[at]:
                over_run[place], has_gaps = np.nan, True
            else:
                whole = integral_at(times_s, values, sums, until, end_s)
                whole -= integral_at(times_s, values, sums, at, begin_s)
                over_run[place] = whole * scale + offset
                has_gaps |= np.isnan(over_run[place])  # the gap begins within the last step
    return has_gaps


@fast
def weighted_costs(
    carbon: Floats, price: Floats, by_carbon: float, by_price: float
) -> tuple[Floats, float]:
    """Return carbon and price in one figure, [zones, slots], and how far such lie apart at most.

    Each is relative to the mean of its magnitudes, and weighted.
    """
    carbon_sum, price_sum = 0.0, 0.0
    for zone in range(carbon.shape[0]):
        for place in range(carbon.shape[1]):
            carbon_sum += abs(carbon[zone, place])
            price_sum += abs(price[zone, place])
    by_carbon /= max(carbon_sum / carbon.size, _LEAST_MAGNITUDE)
    by_price /= max(price_sum / carbon.size, _LEAST_MAGNITUDE)
    weighted, least, most = np.empty(carbon.shape), np.inf, -np.inf
    for zone in range(carbon.shape[0]):
        for place in range(carbon.shape[1]):
            value = by_carbon * carbon[zone, place] + by_price * price[zone, place]
            weighted[zone, place] = value
            least, most = min(least, value), max(most, value)
    return weighted, most - least


@fast
def fill_gaps(values: Floats) -> None:
    """Put the mean of what is known where [zones, slots] have no data; 1 if nothing is known."""
    known, count = 0.0, 0
    for zone in range(values.shape[0]):
        for place in range(values.shape[1]):
            if not np.isnan(values[zone, place]):
                known += values[zone, place]
                count += 1
    if count == values.size:
        return
    mean = known / count if count else 1.0
    for zone in range(values.shape[0]):
        for place in range(values.shape[1]):
            if np.isnan(values[zone, place]):
                values[zone, place] = mean
