"""Reads one zone's series of carbon, price, temperature or sun from a CSV file, plain or gzipped.

Times are UTC: they carry an offset, or the column's name ends in `utc`, or the caller says so.
Nothing is repaired: faults are told by row, and where hours are missing there is NaN.
"""

import math
from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.formats.trace_rows import (
    Row,
    read_table,
    refusal,
    require_columns,
    rows_of,
)
from greensched_simulator.formats.workload import RowFault

# Power from lignite or oil shale alone stays below 1,500 g/kWh (IPCC AR5 WG3 annex III).
CARBON_LIMITS_G_PER_KWH = (0.0, 2_000.0)
# Per MWh in any currency: the dearest market, KRW, has cleared at 360,000.
PRICE_LIMITS_PER_MWH = (-1e6, 1e6)
TEMPERATURE_LIMITS_C = (-90.0, 60.0)  # a little beyond the records of the World Meteorological Org.
YIELD_LIMITS = (0.0, 1.5)  # kW/kWp: at the edge of clouds the sun is brighter than 1,000 W/m2
_ESTIMATED, _YES = "estimated", {"1", "true", "yes"}  # a column, and what marks a row in it
_SHARE_OF_A_STEP = 0.1  # of the rows: hours may turn to quarters within a file


class WantedColumn(NamedTuple):
    """Which figures of a file are wanted, and what they may be."""

    time: str  # name of the column of times
    value: str  # name of the column of values
    limits: tuple[float, float]  # least and most, after `factor`
    factor: float = 1.0  # of the file's unit in ours
    is_utc: bool = False  # times without an offset are UTC, whatever the column is called


class Series(NamedTuple):
    """What a file says: each value holds from its time until the next, NaN where it says nothing.

    The last time is where the file ends, with NaN.
    """

    times_s: Floats  # [T] seconds since the epoch, rising
    values: Floats  # [T]
    gaps: tuple[RowFault, ...]  # each with the row before which time is missing, or that is empty
    rows: int  # of the file, without the header
    estimated_share: float  # of the rows: those that a column `estimated` marks
    repeated_share: float  # of the rows: those with the value of the row before

    def has_any(self, begin_s: float, end_s: float) -> bool:
        """Return whether any value is known between two times in seconds since the epoch."""
        first = max(int(np.searchsorted(self.times_s, begin_s, side="right")) - 1, 0)
        last = int(np.searchsorted(self.times_s, end_s))
        return bool(np.isfinite(self.values[first:last]).any())


def read_series(path: Path, column: WantedColumn) -> Series:
    """Return a file's series; a file that did not change is read once, its arrays are read-only.

    Raises BadInput that lists rows at fault (up to 20): times that are no times, have no time zone,
    are not later than the row before, values that are no numbers or beyond the limits.
    """
    try:
        state = path.stat()
    except OSError as fault:
        raise BadInput(f"{path} cannot be read: {fault.strerror}") from fault
    return _read(path, column, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)  # a few dozen zones with two files each
def _read(path: Path, column: WantedColumn, changed_ns: int, size: int) -> Series:
    table = read_table(path)
    require_columns(table, (column.time, column.value))
    times: list[float] = []
    values: list[float] = []
    numbers: list[int] = []
    gaps: list[RowFault] = []
    marked = 0
    faults: list[RowFault] = []
    for row in rows_of(table):
        time_s = _time_s(row, column)
        if times and time_s <= times[-1]:
            told = "the same time as" if time_s == times[-1] else "earlier than"
            row.fault(f"{column.time} {row.text(column.time)} is {told} the row before")
        value = _value(row, column, gaps)
        faults.extend(row.faults)
        marked += row.text(_ESTIMATED).lower() in _YES
        if not row.faults:
            times.append(time_s)
            values.append(value)
            numbers.append(row.number)
    if faults:
        raise refusal(path, faults, "correct the file")
    if len(times) < 2:
        raise BadInput(f"{path} holds {len(times)} rows; a series needs at least two")
    return _series(times, values, numbers, gaps, marked / len(times))


def _time_s(row: Row, column: WantedColumn) -> float:
    text = row.text(column.time)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        row.fault(f"{column.time} {text!r} is not a time such as 2023-06-01T00:00:00Z")
        return math.nan
    if moment.tzinfo is None:
        if not (column.is_utc or column.time.lower().endswith("utc")):
            row.fault(f"{column.time} {text} has no time zone; if it is UTC, say time_zone: UTC")
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _value(row: Row, column: WantedColumn, gaps: list[RowFault]) -> float:
    if not row.text(column.value):
        gaps.append(RowFault(row.number, f"{column.value} is empty"))
        return math.nan
    value = row.figure(column.value) * column.factor
    low, high = column.limits
    if not (low <= value <= high or math.isnan(value)):  # no number at all is a fault already
        row.fault(f"{column.value} is {value:g}, not within {low:g} to {high:g}")
    return value


def _series(
    times: list[float],
    values: list[float],
    numbers: list[int],
    gaps: list[RowFault],
    estimated_share: float,
) -> Series:
    """Put NaN, step by step, where rows are missing, and where the file ends."""
    widths = Counter(np.diff(times).tolist())
    steps = {width for width, count in widths.items() if count >= _SHARE_OF_A_STEP * len(times)}
    step_s = widths.most_common(1)[0][0]
    whole_times, whole_values = [], []
    for place, (time_s, value) in enumerate(zip(times, values, strict=True)):
        whole_times.append(time_s)
        whole_values.append(value)
        after_s = times[place + 1] if place + 1 < len(times) else time_s
        if after_s - time_s in steps:
            step_s = after_s - time_s
        elif after_s - time_s > step_s:
            missing = np.arange(time_s + step_s, after_s, step_s).tolist()
            whole_times.extend(missing)
            whole_values.extend([math.nan] * len(missing))
            hours = (after_s - time_s - step_s) / 3600.0
            gaps.append(RowFault(numbers[place + 1], f"{hours:g} h are missing before it"))
    whole_times.append(times[-1] + step_s)
    whole_values.append(math.nan)
    found = np.array(whole_times), np.array(whole_values)
    for array in found:
        array.flags.writeable = False
    repeated_share = float(np.mean(np.diff(values) == 0.0))
    told = tuple(sorted(gaps, key=lambda gap: gap.row))
    return Series(*found, told, len(times), estimated_share, repeated_share)
