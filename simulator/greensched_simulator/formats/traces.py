"""Reads workload traces: Alibaba's openb, GAIA's, Google's of 2011, SWF, and a plain CSV.

The plain CSV has the columns name, arrival_s, runtime_s, cpu_cores, memory_mib, gpus and, if
wanted, gpu_models (names separated by `|`), workers, after (names of tasks, likewise), deadline_s
and estimate_s. A file's format is told by its header, SWF by the name's end, Google's by the name
or the first line. A row at fault is never repaired: it is refused with its number and reason, or
left out and told of.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Literal, NamedTuple

from greensched_core.durations import LONGEST_S
from greensched_core.errors import BadInput
from greensched_core.quoting import near
from greensched_simulator.formats.google_events import Machine, is_task_events, read_task_events
from greensched_simulator.formats.swf import SWF_ENDINGS, read_swf, swf_task
from greensched_simulator.formats.task_order import in_order
from greensched_simulator.formats.trace_rows import (
    MEMORY_PER_CORE_BYTES,
    Row,
    Table,
    memory_assumed,
    read_table,
    refusal,
    require_columns,
    rows_of,
)
from greensched_simulator.formats.workload import Fault, Task, Trace

TimeUnit = Literal["s", "h"]
_SECONDS: dict[TimeUnit, float] = {"s": 1.0, "h": 3_600.0}
_MIB = 2.0**20

OPENB_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time",
)  # fmt: skip
GAIA_COLUMNS = ("arrival_time", "length", "cpus")
PLAIN_COLUMNS = ("name", "arrival_s", "runtime_s", "cpu_cores", "memory_mib", "gpus")
_WANTED_COLUMNS = ("gpu_models", "workers", "after", "deadline_s", "estimate_s")  # who wants to

# The medians of all of GAIA's files lie between 10 and 51 minutes; an hour taken for a second or
# the reverse falls outside.
_PLAUSIBLE_MEDIAN_S = (30.0, 7.0 * 86_400.0)

_SKIPPED_BY = "--skip-faulty (make demo: ARGS=--skip-faulty)"

Parse = Callable[[Row, Counter[str]], Task]


def load_trace(
    path: Path,
    *,
    time_unit: TimeUnit | None = None,
    largest_machine: Machine | None = None,
    skip_faulty: bool = False,
    skipped_by: str = _SKIPPED_BY,
) -> Trace:
    """Return the trace in a file (.csv, .swf, either .gz), its tasks in order of arrival.

    `time_unit` matters for GAIA's files only, whose units differ: without it the file's name tells.
    `largest_machine` matters for Google's only, which need it. Raises BadInput when the file is no
    trace or holds rows at fault (up to 20 are listed); with `skip_faulty` these are left out and
    returned as the trace's `faults`. `skipped_by` is how whoever asks would say that.
    """
    faulty = _Faulty(skip_faulty, skipped_by)
    if path.name.lower().endswith(SWF_ENDINGS):
        return _read(read_swf(path), swf_task, faulty)
    if is_task_events(path):
        return _trace(path, *read_task_events(path, largest_machine), faulty)
    table = read_table(path)
    known = {OPENB_COLUMNS: _openb, GAIA_COLUMNS: None, PLAIN_COLUMNS: _plain}
    columns = max(known, key=lambda each: len(set(each) & set(table.header)) / len(each))
    if len(set(columns) & set(table.header)) < 2:
        formats = "; ".join(",".join(each) for each in known)
        raise BadInput(
            f"{path} is of no known format: its columns are {','.join(table.header)}, "
            f"known are {formats}"
        )
    require_columns(table, columns)
    parse = known[columns] or _gaia(_gaia_unit(table, time_unit))
    trace = _read(table, parse, faulty)
    return replace(trace, notes=(*_misspelt(table, columns), *trace.notes))


def _misspelt(table: Table, columns: tuple[str, ...]) -> Iterator[str]:
    """Yield a note on each column that nobody reads but that is called much like one that is."""
    if columns == PLAIN_COLUMNS:
        for name in table.header:
            close = near(name, _WANTED_COLUMNS)
            if close and name not in (*PLAIN_COLUMNS, *_WANTED_COLUMNS):
                yield f"the column {name} is not read{close}"


class _Faulty(NamedTuple):
    """What becomes of rows at fault."""

    are_skipped: bool
    skipped_by: str  # the option that skips them


def _read(table: Table, parse: Parse, faulty: _Faulty) -> Trace:
    tasks: list[Task] = []
    faults: list[Fault] = []
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
    return _trace(table.path, tasks, faults, notes, faulty, rows=row_of_name)


def _trace(
    path: Path,
    tasks: list[Task],
    faults: list[Fault],
    notes: Counter[str],
    faulty: _Faulty,
    *,
    rows: Mapping[str, int] = MappingProxyType({}),
) -> Trace:
    arrivals = [task.arrival_s for task in tasks]
    if arrivals != sorted(arrivals):
        notes["rows were not in order of arrival and were sorted"] = len(tasks)
    tasks = in_order(tasks, rows, faults)
    if faults and not faulty.are_skipped:
        raise refusal(path, faults, f"mend it, or leave such rows out with {faulty.skipped_by}")
    if not tasks:
        reasons = "".join(f"\n  {count}: {note}" for note, count in notes.items())
        raise BadInput(f"{path} holds no tasks{reasons}")
    sentences = tuple(f"{count} tasks: {note}" for note, count in notes.items())
    return Trace(tuple(tasks), str(path), sentences, tuple(faults))


def _plain(row: Row, notes: Counter[str]) -> Task:
    gpus = row.figure("gpus", at_least=0)
    workers = row.whole("workers") if row.text("workers") else 1
    if workers == 0:
        row.fault("workers is 0, less than 1")
    if math.isnan(gpus):
        gpus = 0.0
    elif gpus > 1.0 and gpus != int(gpus):
        row.fault(f"gpus is {gpus:g}: only of a single board can a part be asked for")
    arrival_s = row.figure("arrival_s", at_least=0)
    return Task(
        name=row.name("name"),
        arrival_s=arrival_s,
        runtime_s=row.figure("runtime_s", above=0),
        cpu_cores=row.figure("cpu_cores", above=0),
        memory_bytes=row.figure("memory_mib", at_least=0) * _MIB,
        gpus=math.ceil(gpus),
        gpu_share=gpus if 0.0 < gpus < 1.0 else 1.0,
        gpu_models=_names(row, "gpu_models"),
        workers=workers,
        after=_names(row, "after"),
        estimate_s=_estimate_s(row),
        deadline_s=_deadline_s(row, arrival_s),
    )


def _deadline_s(row: Row, arrival_s: float) -> float | None:
    if not row.text("deadline_s"):
        return None
    deadline_s = row.figure("deadline_s")
    told = f"deadline_s is {row.text('deadline_s')}"
    if deadline_s < arrival_s:
        row.fault(f"{told}, before its arrival_s, {row.text('arrival_s')}")
    elif deadline_s - arrival_s > LONGEST_S:
        row.fault(f"{told}, more than ten years after its arrival_s: is it on the same clock?")
    return deadline_s


def _estimate_s(row: Row) -> float | None:
    if not row.text("estimate_s"):
        return None
    estimate_s = row.figure("estimate_s", above=0)
    if estimate_s > LONGEST_S:
        row.fault(f"estimate_s is {row.text('estimate_s')}, more than ten years")
    return estimate_s


def _openb(row: Row, notes: Counter[str]) -> Task:
    """Read a row of github.com/alibaba/clusterdata, cluster-trace-gpu-v2023."""
    created = row.figure("creation_time", at_least=0)
    began = created
    if row.text("scheduled_time"):
        began = row.figure("scheduled_time", at_least=0)
    else:
        notes["never scheduled there; the time from creation to deletion is its runtime"] += 1
    runtime_s = row.figure("deletion_time", at_least=0) - began
    if runtime_s <= 0:
        row.fault(f"its runtime, to deletion_time from its start, is {runtime_s:g} s")
    gpus = row.whole("num_gpu")
    share = row.figure("gpu_milli", at_least=0)
    if gpus and not 0 < share <= 1000:
        row.fault(f"gpu_milli is {share:g}, not within 1 to 1000")
    elif gpus > 1 and share < 1000:
        row.fault(f"gpu_milli is {share:g} of {gpus} boards: only of a single one can it be less")
    return Task(
        name=row.name("name"),
        arrival_s=created,
        runtime_s=runtime_s,
        cpu_cores=row.figure("cpu_milli", above=0) / 1000,
        memory_bytes=row.figure("memory_mib", at_least=0) * _MIB,
        gpus=gpus,
        gpu_share=share / 1000 if gpus else 1.0,
        gpu_models=_names(row, "gpu_spec") if gpus else (),
    )


def _gaia(seconds: float) -> Parse:
    """Return what reads a row of github.com/umassos/GAIA, src/cluster_traces."""

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


def _gaia_unit(table: Table, given: TimeUnit | None) -> float:
    """Return the seconds behind one unit of the file; raise BadInput when it cannot be right."""
    unit = given or _unit_by_name(table.path)
    lengths = [_number(row.text("length")) for row in rows_of(table)]
    finite = [length for length in lengths if math.isfinite(length)]
    if not finite:
        return _SECONDS[unit]  # every row is at fault, and will be told of
    median_s = median(finite) * _SECONDS[unit]
    low, high = _PLAUSIBLE_MEDIAN_S
    if not low <= median_s <= high:
        raise BadInput(
            f"{table.path}: the median runtime is {median_s:g} s if times are in "
            f"{'hours' if unit == 'h' else 'seconds'}, which is implausible; use --time-unit "
            f"{'s' if unit == 'h' else 'h'} (in a scenario: time_unit)"
        )
    return _SECONDS[unit]


def _unit_by_name(path: Path) -> TimeUnit:
    if re.match(r"pai_1k\b", path.name):
        return "s"
    if re.search(r"-\d+k\.csv", path.name):
        return "h"
    raise BadInput(
        f"{path}: GAIA's traces come in seconds (pai_1k) and in hours (…-70k, …-100k), and this "
        "name tells neither; say --time-unit s or h, in a scenario time_unit"
    )


def _names(row: Row, column: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in row.text(column).split("|") if part.strip())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
