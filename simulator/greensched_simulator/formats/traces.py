"""Reads workload traces, in any of `FORMATS`; a new format is one file and one line here.

A faulty row is never repaired: it is refused with its number and reason, or left out and reported.
"""

from pathlib import Path

from greensched_core.errors import BadInput
from greensched_simulator.formats.gaia import GAIA
from greensched_simulator.formats.google_events import GOOGLE
from greensched_simulator.formats.openb import OPENB
from greensched_simulator.formats.plain_csv import PLAIN_CSV
from greensched_simulator.formats.swf import SWF
from greensched_simulator.formats.task_order import in_order
from greensched_simulator.formats.trace_format import (
    NO_OPTIONS,
    FormatOption,
    Found,
    TraceFormat,
    TraceOptions,
)
from greensched_simulator.formats.trace_rows import read_header, refusal
from greensched_simulator.formats.workload import Trace

FORMATS: tuple[TraceFormat, ...] = (
    OPENB,
    GAIA,
    SWF,
    GOOGLE,
    PLAIN_CSV,
)
TRACE_OPTIONS: tuple[FormatOption, ...] = tuple(
    option for each in FORMATS for option in each.options
)
FORMAT_NAMES = ", ".join(each.name for each in FORMATS)

_SKIPPED_BY = "--skip-faulty (make demo: ARGS=--skip-faulty)"


def load_trace(
    path: Path,
    options: TraceOptions = NO_OPTIONS,
    *,
    skip_faulty: bool = False,
    skipped_by: str = _SKIPPED_BY,
) -> Trace:
    """Return the trace in a file (plain or .gz), its tasks in order of arrival.

    `options` has values of `TRACE_OPTIONS` by name. Raises BadInput if the file is no trace, lacks
    an option that its format needs, or has faulty rows (up to 20 are listed). `skip_faulty` leaves
    these out and returns them as the trace's `faults`; `skipped_by` names the user's option for
    that in messages.
    """
    form = _format_of(path)
    found = form.read(path, options)
    trace = _trace(path, form.name, found)
    if trace.faults and not skip_faulty:
        remedy = f"correct it, or leave out such rows with {skipped_by}"
        raise refusal(path, trace.faults, remedy)
    if not trace.tasks:
        reasons = "".join(f"\n  {count}: {note}" for note, count in found.notes.items())
        raise BadInput(f"{path} holds no tasks{reasons}")
    return trace


def _format_of(path: Path) -> TraceFormat:
    """Return the format of a file; raise BadInput if it is in none."""
    for each in FORMATS:
        if each.recognises is not None and each.recognises(path):
            return each
    by_header = [each for each in FORMATS if each.recognises is None]
    header = read_header(path)
    best = max(by_header, key=lambda each: each.share_of(header))
    if not best.share_of(header):
        formats = "; ".join(f"{each.name}: {','.join(each.columns)}" for each in by_header)
        raise BadInput(
            f"{path} is in no known format. Its columns are {','.join(header)}; known are "
            f"{formats}. docs/traces.md has all formats"
        )
    return best


def _trace(path: Path, format_name: str, found: Found) -> Trace:
    arrivals = [task.arrival_s for task in found.tasks]
    if arrivals != sorted(arrivals):
        found.notes["rows were out of order, and are sorted by arrival"] = len(found.tasks)
    faults = [*found.faults]
    tasks = in_order(found.tasks, found.row_of_name, faults)
    counted = (f"{count} tasks: {note}" for note, count in found.notes.items())
    notes = (*found.remarks, *counted)
    return Trace(tuple(tasks), str(path), notes, tuple(faults), format_name)
