"""The Standard Workload Format of the Parallel Workloads Archive: 18 figures per job, -1: unknown.

Fields as defined by Chapin et al., Benchmarks and Standards for the Evaluation of Parallel Job
Schedulers, JSSPP 1999. One processor counts as one core.
"""

from collections import Counter
from pathlib import Path

from greensched_core.errors import BadInput
from greensched_simulator.formats.trace_format import (
    Found,
    TraceFormat,
    TraceOptions,
    tasks_of,
)
from greensched_simulator.formats.trace_rows import (
    MEMORY_PER_CORE_BYTES,
    Row,
    TraceTable,
    memory_assumed,
    opened,
)
from greensched_simulator.formats.workload import Task

_ENDINGS = (".swf", ".swf.gz")
_FIELDS = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors",
    "average_cpu_time", "used_memory", "requested_processors", "requested_time",
    "requested_memory", "status", "user_id", "group_id", "executable", "queue", "partition",
    "preceding_job", "think_time",
)  # fmt: skip
_KIB = 2.0**10
_PARTS_OF_A_JOB = frozenset({"2", "3", "4"})  # a job that was swapped out has a line for each burst


def _is_swf(path: Path) -> bool:
    return path.name.lower().endswith(_ENDINGS)


def _read(path: Path, _: TraceOptions) -> Found:
    return tasks_of(_table(path), _task)


def _table(path: Path) -> TraceTable:
    """Return the jobs of an SWF file as rows; lines that begin with `;` are comments.

    Raises BadInput if the file cannot be read as text or holds no job.
    """
    try:
        with opened(path) as file:
            lines = [(number, line.split()) for number, line in enumerate(file, start=1)]
    except (OSError, EOFError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path} cannot be read as SWF: {fault}") from fault
    rows = tuple((number, tuple(cells)) for number, cells in lines if cells and cells[0][0] != ";")
    if not rows:
        raise BadInput(f"{path} holds no jobs: an SWF file has a line of 18 figures for each")
    return TraceTable(path, _FIELDS, rows)


def _task(row: Row, notes: Counter[str]) -> Task:
    """Read one job: its requested processors and memory, else those allocated or used.

    A job that never ran, or a line for a part of a swapped-out job, is a fault.
    """
    if row.text("status") in _PARTS_OF_A_JOB:
        row.fault(f"status {row.text('status')} marks a part of a job; whole ones have 0, 1 or 5")
    cores = _known(row, "requested_processors")
    if cores is None:
        cores = row.figure("allocated_processors", above=0)
        notes["requested processors are missing; the allocated ones are used"] += 1
    return Task(
        name=f"job-{row.text('job_number')}",
        arrival_s=row.figure("submit_time", at_least=0),
        runtime_s=row.figure("run_time", above=0),
        cpu_cores=cores,
        memory_bytes=cores * _memory_per_processor_bytes(row, notes),
        estimate_s=_known(row, "requested_time"),
    )


def _memory_per_processor_bytes(row: Row, notes: Counter[str]) -> float:
    kib = _known(row, "requested_memory")
    if kib is None:
        kib = _known(row, "used_memory")
        if kib is not None:
            notes["requested memory is missing; the used memory is taken"] += 1
    if kib is None:
        memory_assumed(notes)
        return MEMORY_PER_CORE_BYTES
    return kib * _KIB


def _known(row: Row, field: str) -> float | None:
    """Return a positive figure; None for -1 or 0, with which the archive marks unknown ones."""
    value = row.figure(field, at_least=-1)
    return value if value > 0 else None


SWF = TraceFormat(
    "SWF",
    "[SWF](#swf), the Parallel Workloads Archive's Standard Workload Format (`.swf`)",
    _FIELDS,
    _read,
    _is_swf,
    layout="18 figures a line, `;` begins a comment",
)
