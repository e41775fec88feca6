"""The mean of a zone's carbon or price over any interval, in O(1), by the sums of a `GridTable`.

The mean over an interval that touches a gap is NaN, never a substitute.
"""

import numpy as np

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slot_observation import ComingDay
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable


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


@fast
def coming_day_of(table: GridTable, begin_s: float) -> ComingDay:
    """Return the means over a day of the zones with data.

    As `planning.outlook.coming_day`, which has the forecast in slots.
    """
    means = means_over(table, begin_s, begin_s + SECONDS_PER_DAY)
    return ComingDay(np.nanmean(means[CARBON]), np.nanmean(means[PRICE]))


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
