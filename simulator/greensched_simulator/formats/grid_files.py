"""Reads one zone's carbon, price, temperature or solar series from a CSV file, plain or gzipped.

Times have an offset, or are UTC if the column's name ends in `utc` or the caller says so. Nothing
is repaired: faults are reported by row, and missing hours are NaN.
"""

import math
from collections import Counter
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
# Per MWh in any currency: the highest known clearing price is 360,000 KRW.
PRICE_LIMITS_PER_MWH = (-1e6, 1e6)
TEMPERATURE_LIMITS_C = (-90.0, 60.0)  # a little beyond the records of the World Meteorological Org.
YIELD_LIMITS = (0.0, 1.5)  # kW/kWp: at the edge of clouds, irradiance exceeds 1,000 W/m2
_ESTIMATED, _YES = "estimated", {"1", "true", "yes"}  # a column, and its values that mark a row
_SHARE_OF_A_STEP = 0.1  # of the rows: a file may change from hours to quarters of an hour


class WantedColumn(NamedTuple):
    """The columns to read from a file, and the limits of their values."""

    time: str  # name of the column of times
    value: str  # name of the column of values
    limits: tuple[float, float]  # least and most, after `factor`
    factor: float = 1.0  # converts the file's unit into ours
    is_utc: bool = False  # times without an offset are UTC, whatever the column's name


class Series(NamedTuple):
    """A file's series: each value holds from its time until the next; NaN means no data.

    The last time is the file's end, with NaN.
    """

    times_s: Floats  # [T] seconds since the epoch, rising
    values: Floats  # [T]
    gaps: tuple[RowFault, ...]  # rows that are empty, or before which rows are missing
    rows: int  # of the file, without the header
    estimated_share: float  # of the rows that a column `estimated` marks
    repeated_share: float  # of the rows with the value of the row before

    def has_any(self, begin_s: float, end_s: float) -> bool:
        """Return whether there is a value between two times, in seconds since the epoch."""
        first = max(int(np.searchsorted(self.times_s, begin_s, side="right")) - 1, 0)
        last = int(np.searchsorted(self.times_s, end_s))
        return bool(np.isfinite(self.values[first:last]).any())


def read_series(path: Path, column: WantedColumn) -> Series:
    """Return a file's series; an unchanged file is read only once, and its arrays are read-only.

    Raises BadInput that lists up to 20 faulty rows: times that cannot be parsed, have no time zone
    or are not later than the row before; values that are not numbers or exceed the limits.
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
            order = "the same time as" if time_s == times[-1] else "earlier than"
            row.fault(f"{column.time} {row.text(column.time)} is {order} the row before")
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
    is_utc = column.is_utc or column.time.lower().endswith("utc")
    return row.moment(column.time, is_utc=is_utc, remedy="if it is UTC, say time_zone: UTC")


def _value(row: Row, column: WantedColumn, gaps: list[RowFault]) -> float:
    if not row.text(column.value):
        gaps.append(RowFault(row.number, f"{column.value} is empty"))
        return math.nan
    value = row.figure(column.value) * column.factor
    low, high = column.limits
    if not (low <= value <= high or math.isnan(value)):  # NaN: already noted as a fault
        row.fault(f"{column.value} is {value:g}, not within {low:g} to {high:g}")
    return value


def _series(
    times: list[float],
    values: list[float],
    numbers: list[int],
    gaps: list[RowFault],
    estimated_share: float,
) -> Series:
    """Return the series, with NaN for each missing step and at the file's end."""
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
    by_row = tuple(sorted(gaps, key=lambda gap: gap.row))
    return Series(*found, by_row, len(times), estimated_share, repeated_share)
