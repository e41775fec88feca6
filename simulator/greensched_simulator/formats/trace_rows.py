"""Reads CSV files row by row and collects all faults instead of stopping at the first."""

import csv
import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TextIO

from greensched_core.errors import BadInput
from greensched_simulator.formats.workload import RowFault

# For traces without memory: the large clouds' general-purpose machines (AWS m, Azure D, Google
# n2-standard) have 4 GiB per core.
MEMORY_PER_CORE_BYTES = 4.0 * 2**30
_FAULTS_SHOWN = 20
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # a DNS label, as pods need


@dataclass(frozen=True)
class TraceTable:
    """A CSV file's header and its rows, each with its line number."""

    path: Path
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass
class Row:
    """One row by column name; reading a missing or wrong cell notes a fault."""

    number: int
    cells: Mapping[str, str]
    faults: list[RowFault] = field(default_factory=list)

    def text(self, column: str) -> str:
        """Return a cell's text, which may be empty."""
        return self.cells.get(column, "").strip()

    def name(self, column: str) -> str:
        """Return a cell that must be usable as a pod's name."""
        text = self.text(column)
        if not _NAME.fullmatch(text):
            self.fault(
                f"{column} {text!r} is not a Kubernetes name (lower case, digits, -, at most 63)"
            )
        return text

    def figure(
        self, column: str, *, at_least: float = -math.inf, above: float = -math.inf
    ) -> float:
        """Return a cell's finite number within limits; otherwise note a fault and return NaN."""
        text = self.text(column)
        if not text:
            self.fault(f"{column} is empty")
            return math.nan
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in text:  # Python's float() accepts 1_000
            self.fault(f"{column} {text!r} is not a number")
            return math.nan
        if value < at_least:
            self.fault(f"{column} is {text}, less than {at_least:g}")
        elif value <= above:
            self.fault(f"{column} is {text}, not above {above:g}")
        return value

    def whole(self, column: str) -> int:
        """Return a cell's whole number, not negative; otherwise note a fault and return 0."""
        value = self.figure(column, at_least=0)
        if math.isnan(value):
            return 0
        if value != int(value):
            self.fault(f"{column} is {value:g}, not a whole number")
        return int(value)

    def moment(self, column: str, *, is_utc: bool = False, remedy: str = "") -> float:
        """Return a cell's ISO 8601 time in epoch seconds; otherwise note a fault and return NaN.

        A time without a zone is a fault, with the remedy, unless it `is_utc`.
        """
        text = self.text(column)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fault(f"{column} {text!r} is not a time such as 2023-06-01T00:00:00Z")
            return math.nan
        if moment.tzinfo is None:
            if not is_utc:
                self.fault(f"{column} {text} has no time zone{remedy and f'; {remedy}'}")
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names in a cell, separated by `|`."""
        return tuple(part.strip() for part in self.text(column).split("|") if part.strip())

    def fault(self, reason: str) -> None:
        """Note a fault of this row."""
        self.faults.append(RowFault(self.number, reason))


def opened(path: Path) -> TextIO:
    """Open a text file, plain or gzipped by its name; raise OSError if it cannot be opened."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def csv_lines(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield number and cells of each line of a CSV file, plain or gzipped, as it is read.

    Empty lines at the end are left out. Raises BadInput if it is not a CSV file.
    """
    empty: list[int] = []
    try:
        with opened(path) as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if not cells:
                    empty.append(reader.line_num)
                    continue
                yield from ((number, ()) for number in empty)
                empty.clear()
                yield reader.line_num, tuple(cells)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as fault:
        raise BadInput(f"{path} cannot be read as CSV: {fault}") from fault


def read_table(path: Path) -> TraceTable:
    """Return a CSV file, plain or gzipped; raise BadInput if it cannot be read as one."""
    lines = list(csv_lines(path))
    return TraceTable(path, _header(path, lines), tuple(lines[1:]))


def read_header(path: Path) -> tuple[str, ...]:
    """Return the columns of a CSV file; raise BadInput for its header as `read_table` does."""
    return _header(path, [*islice(csv_lines(path), 1)])


def _header(path: Path, lines: Sequence[tuple[int, tuple[str, ...]]]) -> tuple[str, ...]:
    if not lines:
        raise BadInput(f"{path} is empty; the first line must name the columns")
    header = tuple(column.strip() for column in lines[0][1])
    if len(set(header)) < len(header):
        raise BadInput(f"{path} names a column twice: {', '.join(header)}")
    return header


def memory_assumed(notes: Counter[str]) -> None:
    """Note that a task's memory is missing and assumed to be 4 GiB per core."""
    notes[f"memory is missing; {MEMORY_PER_CORE_BYTES / 2**30:g} GiB per core are assumed"] += 1


def rows_of(table: TraceTable) -> Iterator[Row]:
    """Yield the table's rows; one with too few or too many cells has a fault."""
    return (row_of(table.header, number, cells) for number, cells in table.rows)


def row_of(header: Sequence[str], number: int, cells: Sequence[str]) -> Row:
    """Return a line's cells by column, with a fault if there are too few or too many."""
    row = Row(number, dict(zip(header, cells, strict=False)))
    if not cells:
        row.fault("the row is empty")
    elif len(cells) != len(header):
        row.fault(f"{len(cells)} cells, but the header names {len(header)}")
    return row


def refusal(path: Path, faults: Sequence[RowFault], remedy: str) -> BadInput:
    """Return the error that lists up to 20 of a file's faults, and the remedy."""
    lines = [str(fault) for fault in faults[:_FAULTS_SHOWN]]
    if len(faults) > _FAULTS_SHOWN:
        lines.append(f"and {len(faults) - _FAULTS_SHOWN} more")
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    listed = "\n  ".join(lines)
    return BadInput(f"{path} has {count}; {remedy}:\n  {listed}")


def require_columns(table: TraceTable, columns: Sequence[str]) -> None:
    """Raise BadInput naming the columns that are missing."""
    missing = [column for column in columns if column not in table.header]
    if missing:
        raise BadInput(f"{table.path} lacks the columns {', '.join(missing)}")
