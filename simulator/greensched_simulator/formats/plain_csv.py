"""Our own format: a plain CSV file, one job per row, with all optional properties of a job."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from greensched_core.durations import LONGEST_S
from greensched_core.quoting import near
from greensched_simulator.formats.trace_format import Found, TraceFormat, TraceOptions, tasks_of
from greensched_simulator.formats.trace_rows import Row, TraceTable, read_table, require_columns
from greensched_simulator.formats.workload import Task

_COLUMNS = ("name", "arrival_s", "runtime_s", "cpu_cores", "memory_mib", "gpus")
_WANTED_COLUMNS = (  # optional
    "gpu_models", "workers", "after", "deadline_s", "estimate_s", "gpu_ratio",
)  # fmt: skip
_MIB = 2.0**20


def _read(path: Path, _: TraceOptions) -> Found:
    table = read_table(path)
    require_columns(table, _COLUMNS)
    return tasks_of(table, _task)._replace(remarks=tuple(_misspelt(table)))


def _misspelt(table: TraceTable) -> Iterator[str]:
    """Yield a note on each ignored column whose name is close to a known one."""
    for name in table.header:
        close = near(name, _WANTED_COLUMNS)
        if close and name not in (*_COLUMNS, *_WANTED_COLUMNS):
            yield f"the column {name} is not read{close}"


def _task(row: Row, notes: Counter[str]) -> Task:
    gpus = row.figure("gpus", at_least=0)
    workers = row.whole("workers") if row.text("workers") else 1
    if workers == 0:
        row.fault("workers is 0, less than 1")
    if math.isnan(gpus):
        gpus = 0.0
    elif gpus > 1.0 and gpus != int(gpus):
        row.fault(f"gpus is {gpus:g}: a part can be requested only of a single GPU")
    arrival_s = row.figure("arrival_s", at_least=0)
    return Task(
        name=row.name("name"),
        arrival_s=arrival_s,
        runtime_s=row.figure("runtime_s", above=0),
        cpu_cores=row.figure("cpu_cores", above=0),
        memory_bytes=row.figure("memory_mib", at_least=0) * _MIB,
        gpus=math.ceil(gpus),
        gpu_share=gpus if 0.0 < gpus < 1.0 else 1.0,
        gpu_models=row.names("gpu_models"),
        workers=workers,
        after=row.names("after"),
        estimate_s=_estimate_s(row),
        deadline_s=_deadline_s(row, arrival_s),
        gpu_ratio=_gpu_ratio(row),
    )


def _deadline_s(row: Row, arrival_s: float) -> float | None:
    if not row.text("deadline_s"):
        return None
    deadline_s = row.figure("deadline_s")
    given = f"deadline_s is {row.text('deadline_s')}"
    if deadline_s < arrival_s:
        row.fault(f"{given}, before its arrival_s, {row.text('arrival_s')}")
    elif deadline_s - arrival_s > LONGEST_S:
        row.fault(f"{given}, more than ten years after its arrival_s: is it on the same clock?")
    return deadline_s


def _estimate_s(row: Row) -> float | None:
    if not row.text("estimate_s"):
        return None
    estimate_s = row.figure("estimate_s", above=0)
    if estimate_s > LONGEST_S:
        row.fault(f"estimate_s is {row.text('estimate_s')}, more than ten years")
    return estimate_s


def _gpu_ratio(row: Row) -> float | None:
    if not row.text("gpu_ratio"):
        return None
    gpu_ratio = row.figure("gpu_ratio", at_least=0)
    if gpu_ratio > 1.0:
        row.fault(f"gpu_ratio is {row.text('gpu_ratio')}, more than 1: it is a share, such as 0.6")
    return gpu_ratio


PLAIN_CSV = TraceFormat(
    "plain CSV",
    "[plain CSV](#plain-csv)",
    _COLUMNS,
    _read,
    layout=(
        "`name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus`; optional: `gpu_models` (names "
        "separated by `|`), `workers`, `after` (names of rows, likewise), `deadline_s`, "
        "`estimate_s` and `gpu_ratio`"
    ),
)
