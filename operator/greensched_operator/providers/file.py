"""A CSV or Parquet file on the operator's volume, read by DuckDB."""

import re
from pathlib import Path
from typing import Annotated, ClassVar

import duckdb
import msgspec
from msgspec import Meta

from greensched_core.signals.steps import SignalKind
from greensched_core.units import SECONDS_PER_HOUR
from greensched_operator.providers.answers import (
    Answer,
    FaultReason,
    Interval,
    ProviderFault,
    carbon_answer,
    price_answer,
)
from greensched_operator.providers.decoding import garbage
from greensched_operator.providers.fields import Currency, Multiply, SlotSeconds, checked
from greensched_operator.providers.secret_keys import SecretKey

_BEFORE_S, _AHEAD_S = 24 * SECONDS_PER_HOUR, 240 * SECONDS_PER_HOUR
_MOST_ROWS = 10_000
# Otherwise DuckDB would look for missing extensions on the web.
_ALONE: dict[str, bool | int] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "threads": 1,
}
# Times without an offset would be read as local time.
_HAS_OFFSET = r":\d\d([.]\d+)?([zZ]|[+-]\d\d(:?\d\d)?)$"
_READERS = {".csv": "read_csv", ".parquet": "read_parquet"}
_NO_FOLDER = (
    "the operator has no folder of signal files: mount one by the chart's value "
    "operator.controller.signalFiles"
)


class File(msgspec.Struct, frozen=True, rename="camel"):
    """Values from a CSV or Parquet file in the operator's folder of signal files."""

    name: ClassVar[str] = "file"
    serves: ClassVar[tuple[SignalKind, ...]] = ("carbon", "price")
    least_interval_s: ClassVar[float] = 60.0

    path: Annotated[
        str,
        checked(
            "self.matches('[.](csv|parquet)$') && !self.startsWith('/') && !self.contains('..')",
            "path must end in .csv or .parquet and stay within the operator's folder of signal "
            "files, without a leading / or ..",
            max_length=200,
        ),
    ]
    value_column: Annotated[str, Meta(min_length=1, max_length=100)]
    start_column: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=100,
            description="Column of timestamps (UTC unless they have an offset) or epoch seconds.",
        ),
    ] = "start"
    slot_seconds: SlotSeconds | None = None
    multiply: Multiply = 1.0
    currency: Currency = ""

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return nothing: it needs no key."""
        return ()


def read(file: File, folder: Path | None, kind: SignalKind, now: float) -> Answer:
    """Return the values of the past day and the next ten; blocks on the disk.

    Raises ProviderFault.
    """
    found = _rows(_place(file, folder), file, now)
    if not found:
        raise ProviderFault(FaultReason.NO_DATA, f"{file.path} has no rows for the days around now")
    starts = [start for start, _ in found]
    steps = [later - earlier for earlier, later in zip(starts, starts[1:], strict=False)]
    step_s = file.slot_seconds or min((step for step in steps if step > 0), default=3_600.0)
    intervals = [
        Interval(start, start + step_s, None if value is None else value * file.multiply)
        for start, value in found
    ]
    if kind == "carbon":
        return carbon_answer(intervals, "file")
    return price_answer(intervals, "file", file.currency)


def _place(file: File, folder: Path | None) -> Path:
    """Return the file's path; a link out of the folder counts as absent."""
    if folder is None:
        raise ProviderFault(FaultReason.UNREACHABLE, _NO_FOLDER)
    place = (folder / file.path).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_file():
        raise ProviderFault(
            FaultReason.UNREACHABLE, f"{file.path} is not in the folder of signal files, {folder}"
        )
    if place.suffix not in _READERS:
        raise garbage(f"{file.path} must end in .csv or .parquet")
    return place


def _rows(place: Path, file: File, now: float) -> list[tuple[float, float | None]]:
    start, value = _quoted(file.start_column), _quoted(file.value_column)
    text = f"CAST({start} AS VARCHAR)"
    dated = f"CASE WHEN regexp_matches({text}, '{_HAS_OFFSET}') THEN {text} ELSE {text} || 'Z' END"
    seconds = f"coalesce(try_cast({start} AS DOUBLE), epoch(try_cast({dated} AS TIMESTAMPTZ)))"
    query = (
        f"SELECT s, v FROM (SELECT {seconds} AS s, TRY_CAST({value} AS DOUBLE) AS v"
        f" FROM {_source(place)}) WHERE s BETWEEN ? AND ? ORDER BY s LIMIT {_MOST_ROWS}"
    )
    try:
        with duckdb.connect(config=dict(_ALONE)) as connection:
            return connection.execute(query, [now - _BEFORE_S, now + _AHEAD_S]).fetchall()
    except duckdb.Error as fault:
        first_line = re.sub(r"\s+", " ", str(fault))[:160]
        raise garbage(f"{file.path} cannot be read: {first_line}") from fault


def _source(place: Path) -> str:
    path = str(place).replace("'", "''")
    options = ", all_varchar = true" if place.suffix == ".csv" else ""
    return f"{_READERS[place.suffix]}('{path}'{options})"


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
