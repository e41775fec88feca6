"""Trace formats: their names, how their files are recognised, and how these are read."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from greensched_simulator.formats.trace_rows import (
    Row,
    TraceTable,
    read_table,
    require_columns,
    rows_of,
)
from greensched_simulator.formats.workload import RowFault, Task

Parse = Callable[[Row, Counter[str]], Task]  # parses one row; the counter counts assumptions


@dataclass(frozen=True, slots=True)
class FormatOption:
    """A fact about a trace that its file does not contain, and that the user gives.

    It is an option of the verbs that read traces, and a field of `workload.trace` in scenarios.
    """

    name: str  # in a scenario; on the command line with hyphens
    about: str  # for help texts and docs, as a sentence
    example: str  # of its text
    parse: Callable[[str], Hashable]  # raises BadInput
    choices: tuple[str, ...] = ()  # all texts that there are; empty: not a few


TraceOptions = Mapping[str, Any]  # the values of those options that were given, by name
NO_OPTIONS: TraceOptions = MappingProxyType({})


class Found(NamedTuple):
    """A file's content: tasks in any order, faulty rows, and counted assumptions."""

    tasks: list[Task]
    faults: list[RowFault]
    notes: Counter[str]
    row_of_name: Mapping[str, int] = MappingProxyType({})  # of tasks that others may wait for
    remarks: tuple[str, ...] = ()  # sentences about the whole file


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One format; `read` raises BadInput for a file that is not in it.

    `recognises` decides by a file's name or first line. Without it, a CSV file's header decides:
    its format is the one with the largest share of its `columns` in it, at least two.
    """

    name: str  # as help texts list it
    about: str  # as docs/traces.md lists it, in Markdown
    columns: tuple[str, ...]
    read: Callable[[Path, TraceOptions], Found]
    recognises: Callable[[Path], bool] | None = None
    options: tuple[FormatOption, ...] = ()
    layout: str = ""  # in docs/traces.md; empty: the columns

    def share_of(self, header: Sequence[str]) -> float:
        """Return the share of the format's columns in a header, 0 to 1; 0 for fewer than two."""
        common = len(set(self.columns) & set(header))
        return common / len(self.columns) if common > 1 else 0.0


def csv_format(
    name: str, about: str, columns: tuple[str, ...], parse: Parse, *, layout: str = ""
) -> TraceFormat:
    """Return the format of CSV files with these columns, one task per row."""

    def read(path: Path, _: TraceOptions) -> Found:
        table = read_table(path)
        require_columns(table, columns)
        return tasks_of(table, parse)

    return TraceFormat(name, about, columns, read, layout=layout)


def tasks_of(table: TraceTable, parse: Parse) -> Found:
    """Return the tasks of a table's rows, without those that are faulty or repeat a name.

    Assumptions about faulty rows are not counted.
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
