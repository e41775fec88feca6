"""Reads logs of requests: Azure's LLM inference traces, and a plain CSV of arrivals.

A faulty row is never repaired: the file is refused with the rows' numbers and reasons, or such rows
are left out and reported. A long silence may be a gap in the log or a quiet night: it is reported
by row, and kept.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_core.durations import format_duration
from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.formats.trace_rows import (
    Row,
    read_table,
    refusal,
    require_columns,
    rows_of,
)
from greensched_simulator.formats.workload import RowFault

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
PLAIN_COLUMNS = ("arrival_s",)
TOKEN_COLUMNS = ("prompt_tokens", "generated_tokens")
_SILENCE = 100.0  # mean intervals; this does not happen by chance
_REMEDY = "correct it, or leave out such rows with skip_faulty: true"


class RequestLog(NamedTuple):
    """Requests in order of arrival, [R]; tokens are empty if the file has none."""

    arrival_s: Floats  # since the first request
    prompt_tokens: Floats
    generated_tokens: Floats
    notes: tuple[str, ...]  # each a sentence

    @property
    def has_tokens(self) -> bool:
        """Return whether prompt and generated tokens are known."""
        return self.prompt_tokens.size > 0

    @property
    def span_s(self) -> float:
        """Return the length of the log: until one mean interval after the last request."""
        count = self.arrival_s.size
        return float(self.arrival_s[-1] * count / (count - 1))


def read_requests(path: Path, *, skip_faulty: bool = False) -> RequestLog:
    """Return the requests of a CSV file, plain or gzipped; an unchanged file is read only once.

    Raises BadInput for another format, fewer than two requests, and faulty rows (up to 20 are
    listed): a missing cell, an invalid number or time, a negative or fractional number of tokens, a
    repeated row, a row earlier than the one above. `skip_faulty` leaves these rows out.
    """
    state = path.stat()
    return _read(path, skip_faulty, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, skip_faulty: bool, changed_ns: int, size: int) -> RequestLog:
    table = read_table(path)
    is_azure = "TIMESTAMP" in table.header
    require_columns(table, AZURE_COLUMNS if is_azure else PLAIN_COLUMNS)
    given = [column for column in TOKEN_COLUMNS if column in table.header]
    if len(given) == 1:
        (absent,) = set(TOKEN_COLUMNS) - set(given)
        raise BadInput(
            f"{path} has a column {given[0]} but no {absent}: add it, or remove {given[0]}"
        )
    tokens = AZURE_COLUMNS[1:] if is_azure else tuple(given)
    parse = _moment if is_azure else _second
    kept: list[tuple[float, ...]] = []
    rows: list[int] = []
    faults: list[RowFault] = []
    seen: dict[tuple[float, ...], int] = {}
    for row in rows_of(table):
        found = _request(row, parse, tokens) if not row.faults else (math.nan,)
        if not row.faults and is_azure and found in seen:
            row.fault(f"the same request as in row {seen[found]}")
        elif not row.faults and kept and found[0] < kept[-1][0]:
            row.fault(f"is earlier than row {rows[-1]}: sort the requests by time")
        if row.faults:
            faults.extend(row.faults)
            continue
        seen[found] = row.number
        kept.append(found)
        rows.append(row.number)
    if faults and not skip_faulty:
        raise refusal(path, faults, _REMEDY)
    if len(kept) < 2 or kept[0][0] == kept[-1][0]:
        raise BadInput(f"{path} has no two requests at different times, so it gives no rate")
    return _log(path, np.array(kept), rows, faults)


def _request(
    row: Row, arrival_s: Callable[[Row], float], tokens: tuple[str, ...]
) -> tuple[float, ...]:
    """Return a row's arrival and its tokens; note faults in the row."""
    return (arrival_s(row), *(float(row.whole(column)) for column in tokens))


def _second(row: Row) -> float:
    return row.figure("arrival_s", at_least=0)


def _moment(row: Row) -> float:
    """Return the seconds of a UTC time such as 2023-11-16 18:17:03.9799600, to its last digit."""
    text = row.text("TIMESTAMP")
    whole, _, part = text.partition(".")
    try:
        moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        if part and not (part.isascii() and part.isdigit()):
            raise ValueError
    except ValueError:
        row.fault(f"TIMESTAMP {text!r} is not a time such as 2023-11-16 18:17:03.97")
        return math.nan
    return moment.timestamp() + float(f"0.{part or 0}")


def _log(path: Path, kept: Floats, rows: list[int], faults: list[RowFault]) -> RequestLog:
    arrival_s = kept[:, 0] - kept[0, 0]
    notes = []
    if faults:
        left = len({fault.row for fault in faults})
        notes.append(f"{left} faulty rows of {path.name} left out, the first: {faults[0]}")
    silence_s = np.diff(arrival_s)
    longest = int(silence_s.argmax())
    if silence_s[longest] > _SILENCE * silence_s.mean():
        notes.append(
            f"{path.name} has no request for {format_duration(float(silence_s[longest]))} "
            f"before row {rows[longest + 1]}: a gap in the log, or a time without requests; it "
            f"is used as it is"
        )
    prompt, generated = (kept[:, 1], kept[:, 2]) if kept.shape[1] > 1 else (np.zeros(0),) * 2
    return RequestLog(arrival_s, prompt, generated, tuple(notes))
