"""A zone's carbon and price over time as running sums: the mean over any interval in one step.

Each value holds from its time until the next, the last one for ever. Where data is missing, the
mean over an interval that touches the gap is NaN, never a made-up value.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.cost import Floats
from greensched_simulator.compiled import fast


class GridTable(NamedTuple):
    """One signal of all zones; zone z's steps are `starts[z]` to `starts[z + 1]` of the rest."""

    starts: npt.NDArray[np.int64]  # [Z+1]
    step_s: Floats  # [Z] the steps' even length; 0 where it varies
    times_s: Floats  # [T]
    values: Floats  # [T] NaN: no data
    sums: Floats  # [T] integral from the zone's first time, in value times seconds
    gaps_s: Floats  # [T] seconds without data so far


def grid_table(starts: npt.NDArray[np.int64], times_s: Floats, values: Floats) -> GridTable:
    """Return the table of one signal; `times_s` rise within each zone."""
    step_s = np.zeros(starts.size - 1)
    sums, gaps_s = np.zeros(times_s.size), np.zeros(times_s.size)
    for zone in range(starts.size - 1):
        own = slice(starts[zone], starts[zone + 1])
        widths = np.diff(times_s[own])
        if widths.size and np.ptp(widths) == 0.0:
            step_s[zone] = widths[0]
        missing = np.isnan(values[own][:-1])
        held = np.where(missing, 0.0, values[own][:-1])
        sums[own] = np.concatenate(([0.0], np.cumsum(held * widths)))
        gaps_s[own] = np.concatenate(([0.0], np.cumsum(widths * missing)))
    return GridTable(starts, step_s, times_s, values, sums, gaps_s)


@fast
def step_at(table: GridTable, zone: int, time_s: float) -> int:
    """Return the place of the step that holds at `time_s`; the first one before them all."""
    first, last = table.starts[zone], table.starts[zone + 1] - 1
    if table.step_s[zone] > 0.0:
        place = first + int((time_s - table.times_s[first]) // table.step_s[zone])
        place = min(max(place, first), last)
        # Division rounds: a time a hair before a step's start may land on it.
        if place < last and table.times_s[place + 1] <= time_s:
            place += 1
        elif place > first and table.times_s[place] > time_s:
            place -= 1
        return place
    place = first + np.searchsorted(table.times_s[first : last + 1], time_s, side="right") - 1
    return max(place, first)


@fast
def value_at(table: GridTable, zone: int, time_s: float) -> float:
    """Return the value that holds at `time_s`; NaN where there is no data."""
    return table.values[step_at(table, zone, time_s)]


@fast
def mean_over(table: GridTable, zone: int, begin_s: float, end_s: float) -> float:
    """Return the time-weighted mean over [begin, end); the value at `begin_s` if it is empty."""
    if not end_s > begin_s:
        return value_at(table, zone, begin_s)
    first, last = step_at(table, zone, begin_s), step_at(table, zone, end_s)
    if first == last:
        return table.values[first]
    head_s, tail_s = begin_s - table.times_s[first], end_s - table.times_s[last]
    gap_s = table.gaps_s[last] - table.gaps_s[first]
    if gap_s > 0.0 or np.isnan(table.values[first]):
        return np.nan
    total = table.sums[last] - table.sums[first] - head_s * table.values[first]
    if tail_s > 0.0:
        total += tail_s * table.values[last]  # NaN stays NaN
    return total / (end_s - begin_s)
