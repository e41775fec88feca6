"""The zones' carbon and price as running sums, which give the mean over any interval in O(1).

Each value holds from its time until the next, the last one for ever. `grid_means` has the means.
`in_parts` splits steps into several rows; all integrals stay equal to the last digit.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats

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
    known_until_s: Floats  # [Z] the forecast's end: no later start is considered


def grid_table(
    starts: npt.NDArray[np.int64],
    times_s: Floats,
    carbon_g_per_kwh: Floats,
    price_per_mwh: Floats,
    factors: Floats | None = None,
    offsets: Floats | None = None,
    known_until_s: Floats | None = None,
) -> GridTable:
    """Return the table of zones whose steps are stored zone after zone; times rise in each zone.

    Without factors and offsets the forecast is perfect; without its end it has none.
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
    if known_until_s is None:
        known_until_s = np.full(per_step.size, np.inf)
    return GridTable(
        starts, per_step, times_s, times_s, values, sums, gaps_s, factors, offsets, known_until_s
    )


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
    part = np.arange(first[-1]) - np.repeat(first[:-1], parts)
    return GridTable(
        starts=first[table.starts],
        per_step=per_step,
        times_s=np.repeat(table.times_s, parts) + part * part_s,
        since_s=np.repeat(table.since_s, parts),
        values=np.repeat(table.values, parts, axis=1),
        sums=np.repeat(table.sums, parts, axis=1),
        gaps_s=np.repeat(table.gaps_s, parts, axis=1),
        factors=np.repeat(table.factors, parts, axis=1),
        offsets=np.repeat(table.offsets, parts, axis=1),
        known_until_s=table.known_until_s,
    )
