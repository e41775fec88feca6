"""The forecast of a grid at the start of a run and over the run, for each candidate start.

If no data is missing and the grid's steps are as long as the slots, loops take several starts at a
time. Else the steps at a run's begin and end advance start by start.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import borrowing, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.kernel.grid_means import has_all, integral_between, is_one_step, step_at
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable


class RunToShift(NamedTuple):
    """A run with a row of candidate starts."""

    now_s: float  # the first start
    slot_s: float  # distance of the starts
    runtime_s: float
    at: int  # the grid's step in which the first run begins
    until: int  # the grid's step in which the first run ends


@borrowing
def watch_run(
    grid: GridTable, zone: int, slot_s: float, now_s: float, runtime_s: float, seen: Floats
) -> bool:
    """Fill in `seen` for one zone: carbon at the start and over the run, then price.

    Return whether data is missing.
    """
    at, until = step_at(grid, zone, now_s), step_at(grid, zone, now_s + runtime_s)
    run, later = RunToShift(now_s, slot_s, runtime_s, at, until), seen.shape[2] - 1
    final, last_s = until + later, now_s + later * slot_s
    is_even = grid.per_step[zone] == 1.0 / slot_s and grid.times_s[at] <= now_s
    is_even = is_even and final < grid.starts[zone + 1]
    # If the first start is just before a step's begin, later starts may round to the next step.
    is_even = is_even and step_at(grid, zone, last_s) == at + later
    is_even = is_even and step_at(grid, zone, last_s + runtime_s) == final
    if is_even and has_all(grid, CARBON, at, final) and has_all(grid, PRICE, at, final):
        for signal in (CARBON, PRICE):
            at_start, over_run = seen[2 * signal, zone], seen[2 * signal + 1, zone]
            _watch_evenly(grid, signal, run, at_start, over_run)
        return False
    return _watch_step_by_step(grid, zone, run, seen)


@borrowing
def _watch_evenly(
    grid: GridTable, signal: int, run: RunToShift, at_start: Floats, over_run: Floats
) -> None:
    """Fill in one signal, [S], where each slot advances a run's begin and end by one step."""
    now_s, slot_s, runtime_s, at, until = run
    factor, factor_per_s, offset = _forecast_at(grid, signal, at, runtime_s)
    values, ended_values = grid.values[signal, at:], grid.values[signal, until:]
    sums, ended_sums = grid.sums[signal, at:], grid.sums[signal, until:]
    since_s, ended_since_s = grid.since_s[at:], grid.since_s[until:]
    # The compiler vectorises loops of few arrays without branches.
    for place in range(at_start.size):
        at_start[place] = values[place] * factor + offset
    for place in range(over_run.size):
        begun_s = now_s + place * slot_s - since_s[place]
        over_run[place] = sums[place] + begun_s * values[place]
    for place in range(over_run.size):
        passed_s = now_s + place * slot_s + runtime_s - ended_since_s[place]
        whole = ended_sums[place] + passed_s * ended_values[place] - over_run[place]
        over_run[place] = whole * factor_per_s + offset
    for place in range(over_run.size):
        in_one, mean = at_start[place], over_run[place]
        over_run[place] = in_one if since_s[place] == ended_since_s[place] else mean


@borrowing
def _watch_step_by_step(grid: GridTable, zone: int, run: RunToShift, seen: Floats) -> bool:
    """Fill in `seen` for one zone where data is missing, steps are uneven, or the grid ends.

    The steps at a run's begin and end only advance from slot to slot. Return whether data is
    missing.
    """
    now_s, slot_s, runtime_s, at, until = run
    last, times_s, has_gaps = grid.starts[zone + 1] - 1, grid.times_s, False
    carbon = _forecast_at(grid, CARBON, at, runtime_s)
    price = _forecast_at(grid, PRICE, at, runtime_s)
    carbon_at_start, carbon_over_run = seen[0, zone], seen[1, zone]
    price_at_start, price_over_run = seen[2, zone], seen[3, zone]
    for place in range(seen.shape[2]):
        begin_s = now_s + place * slot_s
        end_s = begin_s + runtime_s
        while at < last and times_s[at + 1] <= begin_s:
            at += 1
        while until < last and times_s[until + 1] <= end_s:
            until += 1
        carbon_at_start[place], carbon_over_run[place] = _run_seen(
            grid, CARBON, carbon, at, until, begin_s, end_s
        )
        price_at_start[place], price_over_run[place] = _run_seen(
            grid, PRICE, price, at, until, begin_s, end_s
        )
        # Missing data at the start is also missing over the run.
        has_gaps |= np.isnan(carbon_over_run[place]) or np.isnan(price_over_run[place])
    return has_gaps


@inlined
def _forecast_at(
    grid: GridTable, signal: int, step: int, runtime_s: float
) -> tuple[float, float, float]:
    """Return a forecast's factor, its factor per second of the run, and its offset.

    The forecast, made in `step`, is the signal times the factor plus the offset. The factor per
    second applies to the integral over the run.
    """
    factor = grid.factors[signal, step]
    return factor, factor / runtime_s, grid.offsets[signal, step]


@inlined
def _run_seen(
    grid: GridTable,
    signal: int,
    forecast: tuple[float, float, float],
    at: int,
    until: int,
    begin_s: float,
    end_s: float,
) -> tuple[float, float]:
    """Return a signal at a run's begin, which lies in step `at`, and its mean over the run."""
    factor, factor_per_s, offset = forecast
    at_start = grid.values[signal, at] * factor + offset
    if is_one_step(grid, at, until):
        return at_start, at_start
    whole = integral_between(grid, signal, at, until, begin_s, end_s)
    return at_start, whole * factor_per_s + offset


@borrowing
def fill_gaps(values: Floats) -> None:
    """Replace missing values of [zones, slots] by the mean of the others; 1 if all are missing."""
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
