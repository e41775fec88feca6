"""The zones' carbon and price as running sums, which give the mean over any interval in O(1).

Each value holds from its time until the next, the last one for ever. The mean over an interval that
touches a gap is NaN, never a substitute. `in_parts` splits steps into several rows; all integrals
stay equal to the last digit.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_simulator.compiling.compiled import borrowing, fast, inlined

CARBON, PRICE = 0, 1  # rows of the values


class GridTable(NamedTuple):
    """The signals of all zones; zone z's steps are rows `starts[z]` to `starts[z + 1]`."""

    starts: npt.NDArray[np.int64]  # [Z+1]
    per_step: Floats  # [Z] 1 / length of its even steps, in 1/s; 0 where they are uneven
    times_s: Floats  # [T]
    since_s: Floats  # [T] begin of the whole step to which this part belongs
    values: Floats  # [2,T] g/kWh and money per MWh; NaN: no data
    sums: Floats  # [2,T] integral of each from the zone's first time to `since_s`; gaps add nothing
    gaps_s: Floats  # [2,T] seconds without data from the zone's first time to `since_s`
    # [2,T] a forecast made in a step is each value times the factor plus the offset
    factors: Floats
    offsets: Floats


def grid_table(
    starts: npt.NDArray[np.int64],
    times_s: Floats,
    carbon_g_per_kwh: Floats,
    price_per_mwh: Floats,
    factors: Floats | None = None,
    offsets: Floats | None = None,
) -> GridTable:
    """Return the table of zones whose steps are stored zone after zone; times rise in each zone.

    Without factors and offsets the forecast is perfect.
    """
    per_step = np.zeros(starts.size - 1)
    values = np.stack([carbon_g_per_kwh, price_per_mwh])
    sums, gaps_s = np.zeros(values.shape), np.zeros(values.shape)
    for zone in range(starts.size - 1):
        own = slice(starts[zone], starts[zone + 1])
        widths = np.diff(times_s[own])
        if widths.size and np.ptp(widths) == 0.0:
            per_step[zone] = 1.0 / widths[0]
        missing = np.isnan(values[:, own][:, :-1])
        held = np.where(missing, 0.0, values[:, own][:, :-1])
        sums[:, own][:, 1:] = np.cumsum(held * widths, axis=1)
        gaps_s[:, own][:, 1:] = np.cumsum(missing * widths, axis=1)
    if factors is None or offsets is None:
        factors, offsets = np.ones(values.shape), np.zeros(values.shape)
    return GridTable(starts, per_step, times_s, times_s, values, sums, gaps_s, factors, offsets)


def in_parts(table: GridTable, part_s: float) -> GridTable:
    """Return the table with even steps split into parts of `part_s`, if that divides them.

    Candidate starts `part_s` apart then advance by one part each.
    """
    parts, per_step = np.ones(table.times_s.size, np.int64), table.per_step.copy()
    for zone in np.flatnonzero(table.per_step):
        begin, end = table.starts[zone : zone + 2]
        length_s = table.times_s[begin + 1] - table.times_s[begin]
        if length_s % part_s == 0.0:
            parts[begin:end], per_step[zone] = int(length_s / part_s), 1.0 / part_s
    first = np.concatenate([[0], np.cumsum(parts)])
    step = np.repeat(np.arange(table.times_s.size), parts)
    part = np.arange(step.size) - first[step]
    return GridTable(
        starts=first[table.starts],
        per_step=per_step,
        times_s=table.times_s[step] + part * part_s,
        since_s=table.since_s[step],
        values=table.values.take(step, axis=1),
        sums=table.sums.take(step, axis=1),
        gaps_s=table.gaps_s.take(step, axis=1),
        factors=table.factors.take(step, axis=1),
        offsets=table.offsets.take(step, axis=1),
    )


@inlined
def step_at(table: GridTable, zone: int, time_s: float) -> int:
    """Return the row of the step that holds at `time_s`; before the first step, the first one."""
    first, last = table.starts[zone], table.starts[zone + 1] - 1
    if table.per_step[zone] == 0.0:
        return max(
            first + np.searchsorted(table.times_s[first : last + 1], time_s, side="right") - 1,
            first,
        )
    place = first + int((time_s - table.times_s[first]) * table.per_step[zone])
    place = min(max(place, first), last)
    # The product rounds: a time just before a step's start may become the start.
    if place < last and table.times_s[place + 1] <= time_s:
        return place + 1
    if place > first and table.times_s[place] > time_s:
        return place - 1
    return place


@inlined
def is_one_step(table: GridTable, begin: int, end: int) -> bool:
    """Return whether two rows of one zone are parts of the same step, with the same value."""
    return bool(table.since_s[begin] == table.since_s[end])


@inlined
def integral_at(table: GridTable, signal: int, step: int, time_s: float) -> float:
    """Return the integral of one signal up to `time_s`, which lies in the row `step`."""
    part_s = time_s - table.since_s[step]
    whole = table.sums[signal, step]
    # At the begin of a gap the value is NaN, but the integral is known.
    return whole + part_s * table.values[signal, step] if part_s != 0.0 else whole


@inlined
def integral_between(
    table: GridTable, signal: int, begin: int, end: int, begin_s: float, end_s: float
) -> float:
    """Return the integral of one signal between two times in the rows `begin` and `end`.

    NaN if data is missing between them.
    """
    if table.gaps_s[signal, end] > table.gaps_s[signal, begin]:
        return np.nan
    return integral_at(table, signal, end, end_s) - integral_at(table, signal, begin, begin_s)


@inlined
def has_all(table: GridTable, signal: int, begin: int, end: int) -> bool:
    """Return whether a signal has data in all steps of a zone from `begin` to `end` inclusive."""
    has_gap = table.gaps_s[signal, end] > table.gaps_s[signal, begin]
    return not (has_gap or np.isnan(table.values[signal, end]))


@fast
def means_over(table: GridTable, begin_s: float, end_s: float) -> Floats:
    """Return the time-weighted means over [begin_s, end_s), [2,Z]; NaN where data is missing.

    They are forecast at the interval's begin. The mean of an empty interval is the value then.
    """
    means = np.empty((2, table.starts.size - 1))
    fill_means(table, begin_s, end_s, means)
    return means


@borrowing
def fill_means(table: GridTable, begin_s: float, end_s: float, means: Floats) -> None:
    """Write the result of `means_over` to `means`."""
    for zone in range(table.per_step.size):
        begin, end = step_at(table, zone, begin_s), step_at(table, zone, end_s)
        for signal in (CARBON, PRICE):
            if is_one_step(table, begin, end) or not end_s > begin_s:
                mean = table.values[signal, begin]
            else:
                mean = integral_between(table, signal, begin, end, begin_s, end_s)
                mean /= end_s - begin_s
            means[signal, zone] = mean * table.factors[signal, begin] + table.offsets[signal, begin]
