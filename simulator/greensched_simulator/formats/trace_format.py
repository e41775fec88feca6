"""What a format of traces is: its name, how a file of it is recognised, and how it is read."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from greensched_simulator.formats.trace_rows import (
    Row,
    TraceTable,
    read_table,
    require_columns,
    rows_of,
)
from greensched_simulator.formats.workload import RowFault, Task

TimeUnit = Literal["s", "h"]
Parse = Callable[[Row, Counter[str]], Task]  # of one row; the counter takes what was assumed


@dataclass(frozen=True, slots=True)
class CellMachine:
    """The largest machine of a cell, in whose shares Google tells requests."""

    cpu_cores: float
    memory_bytes: float


class TraceOptions(NamedTuple):
    """What whoever reads a file knows of it, where the file itself does not say."""

    time_unit: TimeUnit | None = None  # of GAIA's
    largest_machine: CellMachine | None = None  # of Google's


class Found(NamedTuple):
    """What a file holds: tasks in any order, rows at fault, and how often what was assumed."""

    tasks: list[Task]
    faults: list[RowFault]
    notes: Counter[str]
    row_of_name: Mapping[str, int] = MappingProxyType({})  # of the tasks that others may wait for
    remarks: tuple[str, ...] = ()  # sentences on the file as a whole


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format; `read` raises BadInput for what is no file of it.

    `recognises` tells a file by its name or first line. Without it a CSV file is recognised by its
    header: of all formats it is the one most of whose `columns` are there, two at least.
    """

    name: str  # as help texts list it
    about: str  # as docs/traces.md lists it, in Markdown
    columns: tuple[str, ...]
    read: Callable[[Path, TraceOptions], Found]
    recognises: Callable[[Path], bool] | None = None
    layout: str = ""  # in docs/traces.md; empty: the columns

    def share_of(self, header: Sequence[str]) -> float:
        """Return how many of the format's columns a header has, 0 … 1; 0 for less than two."""
        common = len(set(self.columns) & set(header))
        return common / len(self.columns) if common > 1 else 0.0


def csv_format(
    name: str, about: str, columns: tuple[str, ...], parse: Parse, *, layout: str = ""
) -> TraceFormat:
    """Return the format of CSV files with these columns, each row of which is a task."""

    def read(path: Path, _: TraceOptions) -> Found:
        table = read_table(path)
        require_columns(table, columns)
        return tasks_of(table, parse)

    return TraceFormat(name, about, columns, read, layout=layout)


def tasks_of(table: TraceTable, parse: Parse) -> Found:
    """Return the tasks of a table's rows; a row at fault, or whose name was given before, is none.

    What is assumed of a row at fault is not counted.
    """
    tasks: list[Task] = []
    faults: list[RowFault] = []
    notes: Counter[str] = Counter()
    row_of_name: dict[str, int] = {}
    for row in rows_of(table):
        row_notes: Counter[str] = Counter()
        task = parse(row, row_notes) if not row.faults else None
        if task is not None and task.name in row_of_name:
            row.fault(f"name {task.name!r} was given before, in row {row_of_name[task.name]}")
        if task is None or row.faults:
            faults.extend(row.faults)
            continue
        row_of_name[task.name] = row.number
        notes += row_notes
        tasks.append(task)
    return Found(tasks, faults, notes, row_of_name)
