"""Reads a ledger from a cluster's operators, an address, a database server, or a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from greensched_cli.extras import require
from greensched_cli.reading.replicas import (
    Component,
    ReplicaAnswer,
    Whereabouts,
    ask_replicas,
    faults_of,
)
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.ledger_records import LedgerLine, LedgerRecord, Loss, decode_line

_PATH = "/v1/ledger"
_WHOLE_LEDGER_S = 120.0  # 100,000 records are some 100 MB


@dataclass(frozen=True, slots=True)
class LedgerSpan:
    """The part of a ledger to read; seconds since the epoch."""

    since: float
    until: float
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ReadLedger:
    """The records read, each once and the oldest first, and their source."""

    records: Sequence[LedgerRecord]
    losses: Sequence[Loss]
    source: str
    notes: Sequence[str] = ()  # replicas that could not be read, and why


def read_ledger(ledger: str | None, where: Whereabouts, span: LedgerSpan) -> ReadLedger:
    """Read a span of the ledger that `ledger` names; if None, ask the operators found by `where`.

    Raises BadInput for a ledger that does not exist, ApiUnavailable if no controller answers.
    """
    if ledger is None or ledger.startswith(("http://", "https://")):
        return _asked(replace(where, address=ledger), span)
    return _opened(ledger, span)


def lines_of(body: bytes) -> list[LedgerLine]:
    """Return the lines of an answer; raise ValueError if it is not a ledger, or cut off."""
    try:
        lines = [decode_line(line) for line in body.splitlines()]
    except BadInput as fault:
        raise ValueError(str(fault)) from fault
    if not lines or lines[-1].end != len(lines) - 1:
        raise ValueError("the answer was cut off, or is not a ledger")
    return lines[:-1]


OPERATOR = Component("controller", 8890, _WHOLE_LEDGER_S, lines_of)


def _asked(where: Whereabouts, span: LedgerSpan) -> ReadLedger:
    wanted = {"since": f"{span.since:.3f}", "until": f"{span.until:.3f}"}
    if span.namespace is not None:
        wanted["namespace"] = span.namespace
    answers = ask_replicas(f"{_PATH}?{urlencode(wanted)}", where, OPERATOR)
    good = [answer for answer in answers if answer.status == 200]
    faults = faults_of(answers)
    if not good:
        raise ApiUnavailable(f"no controller answered with its ledger: {'; '.join(faults)}")
    lines = [line for answer in good for line in _lines(answer)]
    return ReadLedger(
        records=_once(line.record for line in lines),
        losses=list({line.loss.id: line.loss for line in lines if line.loss}.values()),
        source=", ".join(answer.replica for answer in good),
        notes=faults,
    )


def _lines(answer: ReplicaAnswer) -> list[LedgerLine]:
    return list(answer.body)


def _opened(ledger: str, span: LedgerSpan) -> ReadLedger:
    require("report", "--ledger with a file or a database")
    # Imported here so that --help answers immediately.
    from greensched_operator.ledger.faults import LedgerUnusable
    from greensched_operator.ledger.store import LedgerStore

    if "://" not in ledger and not Path(ledger).is_file():
        raise BadInput(f"--ledger {ledger}: no such file; or give postgresql://…, http://host:port")
    store = LedgerStore(ledger)
    try:
        return ReadLedger(
            records=_once(store.records(span.since, span.until, span.namespace)),
            losses=store.losses(span.since, span.until),
            source=store.name,
        )
    except LedgerUnusable as fault:
        raise ApiUnavailable(f"--ledger {store.name}: {fault}") from fault


def _once(records: Iterable[LedgerRecord | None]) -> list[LedgerRecord]:
    known: dict[str, LedgerRecord] = {}
    for record in records:
        if record is not None:
            known.setdefault(record.id, record)
    return sorted(known.values(), key=lambda record: record.at)
