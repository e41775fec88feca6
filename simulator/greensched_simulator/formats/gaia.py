"""GAIA's cluster traces, github.com/umassos/GAIA, src/cluster_traces: a row per job, no memory."""

import math
import re
from collections import Counter
from pathlib import Path
from statistics import median

from greensched_core.errors import BadInput
from greensched_simulator.formats.trace_format import (
    FormatOption,
    Found,
    Parse,
    TraceFormat,
    TraceOptions,
    tasks_of,
)
from greensched_simulator.formats.trace_rows import (
    MEMORY_PER_CORE_BYTES,
    Row,
    TraceTable,
    memory_assumed,
    read_table,
    require_columns,
    rows_of,
)
from greensched_simulator.formats.workload import Task

_COLUMNS = ("arrival_time", "length", "cpus")
_SECONDS: dict[str, float] = {"s": 1.0, "h": 3_600.0}
# The medians of all of GAIA's files are between 10 and 51 minutes. If hours are read as seconds, or
# the reverse, the median is outside.
_PLAUSIBLE_MEDIAN_S = (30.0, 7.0 * 86_400.0)


TIME_UNIT = FormatOption(
    "time_unit", "Unit of times in a GAIA trace; by default the file's name decides.", "h", str,
    tuple(_SECONDS),
)  # fmt: skip


def _read(path: Path, options: TraceOptions) -> Found:
    table = read_table(path)
    require_columns(table, _COLUMNS)
    return tasks_of(table, _task_in(_unit_s(table, options.get(TIME_UNIT.name))))


def _task_in(seconds: float) -> Parse:
    """Return the parser of rows whose unit of time is `seconds` long."""

    def parse(row: Row, notes: Counter[str]) -> Task:
        cores = row.figure("cpus", above=0)
        memory_assumed(notes)
        return Task(
            name=f"task-{row.number}",
            arrival_s=row.figure("arrival_time", at_least=0) * seconds,
            runtime_s=row.figure("length", above=0) * seconds,
            cpu_cores=cores,
            memory_bytes=cores * MEMORY_PER_CORE_BYTES,
        )

    return parse


def _unit_s(table: TraceTable, given: str | None) -> float:
    """Return the length of the file's unit of time; raise BadInput if it is implausible."""
    unit = given or _unit_by_name(table.path)
    lengths = [_number(row.text("length")) for row in rows_of(table)]
    finite = [length for length in lengths if math.isfinite(length)]
    if not finite:
        return _SECONDS[unit]  # every row is faulty, which is reported later
    median_s = median(finite) * _SECONDS[unit]
    low, high = _PLAUSIBLE_MEDIAN_S
    if not low <= median_s <= high:
        raise BadInput(
            f"{table.path}: the median runtime is {median_s:g} s if times are in "
            f"{'hours' if unit == 'h' else 'seconds'}, which is implausible; use --time-unit "
            f"{'s' if unit == 'h' else 'h'} (in a scenario: time_unit)"
        )
    return _SECONDS[unit]


def _unit_by_name(path: Path) -> str:
    if re.match(r"pai_1k\b", path.name):
        return "s"
    if re.search(r"-\d+k\.csv", path.name):
        return "h"
    raise BadInput(
        f"{path}: GAIA's traces come in seconds (pai_1k) and in hours (…-70k, …-100k), and this "
        f"file name says neither; give --time-unit s or h (in a scenario: time_unit)"
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


GAIA = TraceFormat(
    "GAIA", "[GAIA's](#gaias-traces) cluster traces", _COLUMNS, _read, options=(TIME_UNIT,)
)
