"""Google's cluster-usage traces of 2011: the table task_events, one event per line, no header.

Columns, event types, life cycle and the special times 0 and 2^63 - 1 as defined by Reiss, Wilkes
and Hellerstein, Google cluster-usage traces: format + schema, 2011, revised 2014 for version 2.1.
Lines are grouped by job and task. An event that contradicts a task's life cycle is a fault. A task
that the format allows, but whose runtime is not known, is left out and counted.
"""

import re
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path
from statistics import median

from greensched_core.errors import BadInput
from greensched_core.quantities import parse_quantity
from greensched_simulator.formats.trace_format import (
    FormatOption,
    Found,
    TraceFormat,
    TraceOptions,
)
from greensched_simulator.formats.trace_rows import (
    MEMORY_PER_CORE_BYTES,
    Row,
    csv_lines,
    memory_assumed,
    row_of,
)
from greensched_simulator.formats.workload import RowFault, Task

GOOGLE_COLUMNS = (
    "time", "missing info", "job ID", "task index", "machine ID", "event type", "user",
    "scheduling class", "priority", "CPU request", "memory request", "disk space request",
    "different machines restriction",
)  # fmt: skip
_KEYS = ("time", "job ID", "task index", "event type")  # digits in every line
_PART = re.compile(r"part-\d{5}-of-\d{5}\.csv(\.gz)?")
_HEADER = tuple(column.lower() for column in GOOGLE_COLUMNS)

_US_PER_S = 1e6
_FAULTY = "at fault in one of its rows"
_BEFORE, _AFTER = 0, 2**63 - 1  # instead of times outside of the trace
# Tasks of the trace run for minutes. Seconds or milliseconds read as microseconds are below this.
_PLAUSIBLE_MEDIAN_S = (1.0, 7.0 * 86_400.0)


class _Event(IntEnum):
    SUBMIT = 0
    SCHEDULE = 1
    EVICT = 2
    FAIL = 3
    FINISH = 4
    KILL = 5
    LOST = 6
    UPDATE_PENDING = 7
    UPDATE_RUNNING = 8


class _State(StrEnum):
    """A task's state after its newest event, worded for a fault."""

    UNKNOWN = "was not submitted before"
    WAITS = "waits since"
    RUNS = "runs since"
    ENDED = "ended in"


_FROM = {
    _Event.SUBMIT: (_State.UNKNOWN, _State.ENDED),
    _Event.SCHEDULE: (_State.WAITS,),
    _Event.EVICT: (_State.RUNS,),
    _Event.FAIL: (_State.WAITS, _State.RUNS),
    _Event.FINISH: (_State.RUNS,),
    _Event.KILL: (_State.WAITS, _State.RUNS),
    _Event.LOST: (_State.WAITS, _State.RUNS),
    _Event.UPDATE_PENDING: (_State.WAITS,),
    _Event.UPDATE_RUNNING: (_State.RUNS,),
}
_EVENTS = {str(event.value): event for event in _Event}
_UPDATES = (_Event.UPDATE_PENDING, _Event.UPDATE_RUNNING)
_BEGINS = {_Event.SUBMIT: _State.WAITS, _Event.SCHEDULE: _State.RUNS}  # all others end


@dataclass(slots=True)
class _Life:
    """A task's events so far; only its newest run counts."""

    name: str
    state: _State = _State.UNKNOWN
    row: int = 0  # of the newest event
    time_us: int = 0  # of the newest event
    submitted_us: int = 0
    began_us: int = 0
    ended_by: _Event | None = None  # None: not ended, or it was not running then
    runs: int = 0
    cpu: float = 0.0
    memory: float | None = None
    is_from_before: bool = False
    is_changed: bool = False  # its requests, while it ran
    is_faulty: bool = False


@dataclass(frozen=True, slots=True)
class CellMachine:
    """The largest machine of a cell; Google's traces give requests as shares of it."""

    cpu_cores: float
    memory_bytes: float


def parse_machine(text: str) -> CellMachine:
    """Return the machine written as `CORES,MEMORY`, such as `64,256Gi`; raise BadInput."""
    cores, comma, memory = text.partition(",")
    if not comma:
        raise BadInput(
            f"{text!r} is not a machine; write its cores and its memory, such as 64,256Gi"
        )
    machine = CellMachine(parse_quantity(cores.strip()), parse_quantity(memory.strip()))
    if machine.cpu_cores <= 0 or machine.memory_bytes <= 0:
        raise BadInput(
            f"{text!r} lacks the machine's cores or its memory; write both, such as 64,256Gi"
        )
    return machine


LARGEST_MACHINE = FormatOption(
    "largest_machine",
    "Largest machine of a Google trace; required, because its requests are shares of it.",
    "64,256Gi",
    parse_machine,
)


def _is_task_events(path: Path) -> bool:
    """Return whether a file is Google's table, by its first line or, if in doubt, by its name."""
    try:
        _, first = next(csv_lines(path), (0, ()))
    except BadInput:
        return False  # the reader reports what is wrong
    cells = dict(zip(GOOGLE_COLUMNS, first, strict=False))
    is_event = len(first) == len(GOOGLE_COLUMNS) and all(cells[key].isdecimal() for key in _KEYS)
    has_header = not any(cell.isdecimal() for cell in first)
    is_named_so = _PART.fullmatch(path.name) is not None
    return _is_header(first) or is_event or (is_named_so and not has_header)


def _read(path: Path, options: TraceOptions) -> Found:
    """Return the tasks of a table whose CPU and memory are shares of the largest machine.

    Raises BadInput if that machine is not given, the file cannot be read, or its times cannot be
    microseconds.
    """
    largest: CellMachine | None = options.get(LARGEST_MACHINE.name)
    if largest is None:
        raise BadInput(
            f"{path}: Google's traces give requests as shares of the largest machine, but not its "
            "size; give it, such as --largest-machine 64,256Gi (in a scenario: "
            "largest_machine: {cpu_cores: 64, memory: 256Gi})"
        )
    lives: dict[str, _Life] = {}
    faults: list[RowFault] = []
    for number, cells in csv_lines(path):
        if number == 1 and len(cells) != len(GOOGLE_COLUMNS):
            raise BadInput(
                f"{path} is not a part of task_events: its first line has {len(cells)} cells, not "
                f"{len(GOOGLE_COLUMNS)}; the parts of the other tables have the same names"
            )
        if number == 1 and _is_header(cells):
            continue
        row = row_of(GOOGLE_COLUMNS, number, cells)
        _live(row, lives)
        faults += row.faults
    notes: Counter[str] = Counter()
    drafts = (_task(life, largest, notes, faults) for life in lives.values())
    tasks = [task for task in drafts if task is not None]
    _refuse_other_units(path, tasks)
    if tasks:
        size = f"{largest.cpu_cores:g} cores and {largest.memory_bytes / 2**30:g} GiB"
        notes[f"requests are shares of the largest machine, which is assumed to have {size}"] = len(
            tasks
        )
    faults.sort(key=lambda fault: fault.row)
    return Found(tasks, faults, notes)


def _is_header(cells: tuple[str, ...]) -> bool:
    return tuple(cell.strip().lower() for cell in cells) == _HEADER


def _live(row: Row, lives: dict[str, _Life]) -> None:
    """Apply a line's event to its task; after a fault the task's other events are ignored."""
    ids = [row.text(key) for key in ("job ID", "task index")]
    if not all(text.isascii() and text.isdecimal() for text in ids):
        if not row.faults:  # else a cell is missing, which is a fault already
            row.fault(f"job ID {ids[0]!r} and task index {ids[1]!r} are not both whole numbers")
        return
    name = f"task-{ids[0]}-{ids[1]}"
    life = lives.setdefault(name, _Life(name))
    time_us = row.whole("time")
    event = _event(row)
    shares = [_share(row, column) for column in ("CPU request", "memory request")]
    if event is not None and not row.faults and not life.is_faulty and time_us < _AFTER:
        _happen(row, life, event, time_us, shares)
    life.is_faulty |= bool(row.faults)


def _event(row: Row) -> _Event | None:
    event = _EVENTS.get(row.text("event type"))
    if event is None:
        row.fault(f"event type {row.text('event type')!r} is not known; known are 0 to 8")
    return event


def _share(row: Row, column: str) -> float | None:
    """Return a request, or None: the format allows it to be missing."""
    if not row.text(column):
        return None
    share = row.figure(column, at_least=0)
    if share > 1:
        row.fault(f"{column} is {share:g}; it is a share of the largest machine, at most 1")
    return share


def _happen(row: Row, life: _Life, event: _Event, time_us: int, shares: list[float | None]) -> None:
    life.is_from_before |= time_us == _BEFORE
    if time_us < life.time_us:
        row.fault(
            f"{event.name} of {life.name} at {time_us} us, before an earlier row's {life.time_us}"
        )
        return
    if life.state not in _FROM[event]:
        is_unknown = life.state is _State.UNKNOWN
        where = "; is a part of the trace missing?" if is_unknown else f" row {life.row}"
        row.fault(f"{event.name} of {life.name}, which {life.state}{where}")
        return
    life.time_us = time_us
    if not life.is_from_before:
        _judge(row, life, event)
    if event is _Event.UPDATE_RUNNING:
        began = (life.cpu, life.memory)
        life.is_changed |= any(
            now not in (None, then) for now, then in zip(shares, began, strict=True)
        )
    if event in _UPDATES:
        return
    if event is _Event.SUBMIT and life.state is _State.UNKNOWN:
        life.submitted_us = time_us
    elif event is _Event.SCHEDULE:
        life.began_us, life.is_changed = time_us, False
        life.cpu, life.memory = shares[0] or 0.0, shares[1]
        life.runs += 1
    life.ended_by = event if life.state is _State.RUNS else None
    life.state, life.row = _BEGINS.get(event, _State.ENDED), row.number


def _judge(row: Row, life: _Life, event: _Event) -> None:
    """Note why an event cannot be used, for a task recorded from its beginning."""
    missing = row.text("missing info")
    if missing:
        row.fault(
            f"missing info is {missing}: the event was inserted for one that was not recorded"
        )
    if event is _Event.SCHEDULE:
        row.figure("CPU request", above=0)


def _task(
    life: _Life, largest: CellMachine, notes: Counter[str], faults: list[RowFault]
) -> Task | None:
    """Return the task of a complete life; else None, and count it or add a fault."""
    reason = _left_out(life)
    if not reason and life.time_us <= life.began_us:
        faults.append(RowFault(life.row, f"{life.name} ran for 0 s"))
        reason = _FAULTY
    if reason:
        notes[f"{reason}; left out"] += 1
        return None
    if life.ended_by is not _Event.FINISH:
        notes["killed or failed; the time until then counts as the runtime"] += 1
    if life.runs > 1:
        notes["began more than once; only its last run counts"] += 1
    if life.is_changed:
        notes["changed its requests while it ran; those at its start count"] += 1
    cores = life.cpu * largest.cpu_cores
    if life.memory is None:
        memory_assumed(notes)
    return Task(
        name=life.name,
        arrival_s=life.submitted_us / _US_PER_S,
        runtime_s=(life.time_us - life.began_us) / _US_PER_S,
        cpu_cores=cores,
        memory_bytes=cores * MEMORY_PER_CORE_BYTES
        if life.memory is None
        else life.memory * largest.memory_bytes,
    )


def _left_out(life: _Life) -> str:
    """Return why the runtime is not known; empty if it is."""
    if life.is_faulty:
        return _FAULTY
    if life.is_from_before:
        return "submitted before the trace"
    if life.state is _State.UNKNOWN:
        return "submitted after the trace"
    if life.state is _State.WAITS:
        return "waits for a machine where the file ends"
    if life.state is _State.RUNS:
        return "runs where the file ends"
    if life.ended_by is None:
        return "ended while it waited for a machine"
    if life.ended_by is _Event.EVICT:
        return "evicted, and not submitted again before the file ends"
    if life.ended_by is _Event.LOST:
        return "lost, so its end is not known"
    return ""


def _refuse_other_units(path: Path, tasks: list[Task]) -> None:
    if not tasks:
        return
    median_s = median(task.runtime_s for task in tasks)
    low, high = _PLAUSIBLE_MEDIAN_S
    if not low <= median_s <= high:
        raise BadInput(
            f"{path}: the median runtime is {median_s:g} s if times are in microseconds, as the "
            "format has it, which is implausible: is this the table task_events, unconverted?"
        )


GOOGLE = TraceFormat(
    "Google 2011",
    "[Google's](#googles-traces-of-2011) cluster-usage traces of 2011, table `task_events`; needs "
    "the size of the largest machine",
    GOOGLE_COLUMNS,
    _read,
    _is_task_events,
    options=(LARGEST_MACHINE,),
    layout="13, without a header (or with one of the format's own names)",
)
