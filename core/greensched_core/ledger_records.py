"""What the ledger keeps: a record of each decision on a workload, and what was lost on the way.

Times are seconds since the epoch, amounts SI units; None is no data, never a number. A record's id
is made of what was decided on which workload, so that one who repeats itself writes one record:
the ledger then keeps what was said first and adds what was not known before, such as measured
energy.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import msgspec

from greensched_core.errors import BadInput

_ID_BYTES = 16  # a collision among a billion records: one in 10^20


class What(StrEnum):
    """What was decided, or came about."""

    HELD = "held"
    PLANNED = "planned"  # a start, at first or anew
    RELEASED = "released"
    PAUSED = "paused"
    RESUMED = "resumed"
    PLACED = "placed"  # on a node
    ENDED = "ended"


DELETED_WHILE_HELD = "deleted-while-held"  # reason of the end of what never started


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The workload a decision is about, and what it asks for."""

    kind: str  # of the API: Job, Pod
    namespace: str
    name: str
    uid: str | None = None  # None at admission, where objects have none yet
    owner: str | None = None  # kind/name of what made it: CronJob/report
    cpu_cores: float | None = None
    memory_bytes: float | None = None
    gpus: float | None = None


@dataclass(frozen=True, slots=True)
class InputAge:
    """How old one of the inputs was when the decision was taken."""

    name: str
    age_s: float


@dataclass(frozen=True, slots=True)
class ForecastUsed:
    """Which forecast a decision went by."""

    source: str
    observed_at: float  # when it was made, seconds since the epoch
    digest: str  # of its values


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a run takes; money is in the record's currency."""

    energy_j: float | None = None
    carbon_g: float | None = None
    cost: float | None = None


NOTHING_KNOWN = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """One decision with its inputs, its counterfactual, and what it really took.

    `occurrence` tells it from an earlier one of its kind on the same workload. Left out, a plan is
    told by its start, a pause or resumption by its time, and all else happens once a workload.
    """

    what: What
    at: float
    subject: Subject
    is_shadow: bool = False  # only what would have been done
    occurrence: str | None = None
    policy: str | None = None  # its name
    mode: str | None = None  # off, shadow, enforce
    reason: str | None = None
    zone: str | None = None  # of the grid
    input_ages: tuple[InputAge, ...] = ()
    forecast: ForecastUsed | None = None
    planned_start: float | None = None
    hold_until: float | None = None  # the latest safe start
    deadline: float | None = None
    run_now_start: float | None = None  # the counterfactual: had nobody held it
    expected_runtime_s: float | None = None
    measured_runtime_s: float | None = None
    planned: Amounts = NOTHING_KNOWN  # estimated, as decided
    run_now: Amounts = NOTHING_KNOWN  # estimated, of the counterfactual
    measured: Amounts = NOTHING_KNOWN
    meter: str | None = None  # that measured; the kubelet's word is an estimate
    currency: str | None = None
    node: str | None = None
    decision: str | None = None  # the extender's, as JSON

    @property
    def id(self) -> str:
        """Return the same id for the same decision, whoever tells it and how often."""
        subject = self.subject
        named = (subject.kind, subject.namespace, subject.name)
        # A name is used again by the next object; a UID never is.
        whose = (subject.uid,) if subject.uid else (*named, f"{self.at:.0f}")
        told = (self.what, str(self.is_shadow), self.occurrence or self._turn(), *whose)
        return hashlib.sha256("\0".join(told).encode(errors="replace")).hexdigest()[: 2 * _ID_BYTES]

    def _turn(self) -> str:
        if self.what is What.PLANNED and self.planned_start is not None:
            return f"{self.planned_start:.0f}"
        return f"{self.at:.0f}" if self.what in (What.PAUSED, What.RESUMED) else ""


class LossReason(StrEnum):
    """Why records did not reach the ledger."""

    QUEUE_FULL = "queue_full"  # they came faster than they could be written
    DISK_FULL = "disk_full"
    LOCKED = "locked"  # by another process, for too long
    UNWRITABLE = "unwritable"  # read-only, not permitted, no such folder
    CORRUPT = "corrupt"  # a file that is no database any more was set aside
    UNREACHABLE = "unreachable"  # a server that is away or refuses us
    NEWER_SCHEMA = "newer_schema"  # the tables are those of a later version
    REFUSED = "refused"  # the database takes others, not this one
    STOPPED = "stopped"  # the process ended before they were written
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Loss:
    """Records that were lost for one reason, between two times; written when it was over."""

    id: str
    reason: LossReason
    since: float
    until: float
    records: int | None  # None: nobody knows how many


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One line of a ledger as it is sent: a record, a loss, or the end with the number of both."""

    record: LedgerRecord | None = None
    loss: Loss | None = None
    end: int | None = None  # its absence tells that an answer was cut off


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(LedgerLine)
_AGES = msgspec.json.Decoder(tuple[InputAge, ...])
_PLAIN = tuple(
    field.name
    for field in fields(LedgerRecord)
    if field.name not in {"subject", "input_ages", "forecast", "planned", "run_now", "measured"}
)
_SUBJECT = tuple(field.name for field in fields(Subject))
_AMOUNTS = tuple(field.name for field in fields(Amounts))
_BILLS = ("planned", "run_now", "measured")


def encode_line(line: LedgerLine) -> bytes:
    """Return a line of newline-delimited JSON, its newline included; NaN and infinity are null."""
    return _ENCODER.encode(line) + b"\n"


def decode_line(text: bytes | str) -> LedgerLine:
    """Return what a line says; raise BadInput when it is no line of a ledger."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise BadInput(f"not a line of a ledger: {fault}") from fault


def flat(record: LedgerRecord) -> dict[str, Any]:
    """Return a record as the columns of a table, its id first; what is not finite is no data."""
    subject, forecast = record.subject, record.forecast
    row: dict[str, Any] = {"id": record.id}
    row |= {name: _told(getattr(record, name)) for name in _PLAIN}
    row |= {name: _told(getattr(subject, name)) for name in _SUBJECT}
    ages = tuple(each for each in record.input_ages if math.isfinite(each.age_s))
    row["input_ages"] = _ENCODER.encode(ages).decode() if ages else None
    row["forecast_source"] = _told(forecast.source) if forecast else None
    row["forecast_observed_at"] = _told(forecast.observed_at) if forecast else None
    row["forecast_digest"] = _told(forecast.digest) if forecast else None
    for bill in _BILLS:
        amounts = getattr(record, bill)
        row |= {f"{bill}_{name}": _told(getattr(amounts, name)) for name in _AMOUNTS}
    return row


def from_flat(row: Mapping[str, Any]) -> LedgerRecord:
    """Return the record that `flat` made these columns of; raise BadInput where that fails."""
    try:
        parts: dict[str, Any] = {name: row[name] for name in _PLAIN}
        parts |= {"what": What(row["what"]), "is_shadow": bool(row["is_shadow"])}
        for bill in _BILLS:
            parts[bill] = Amounts(*(row[f"{bill}_{name}"] for name in _AMOUNTS))
        return LedgerRecord(
            **parts,
            subject=Subject(**{name: row[name] for name in _SUBJECT}),
            input_ages=_AGES.decode(row["input_ages"]) if row["input_ages"] else (),
            forecast=_forecast(row),
        )
    except (KeyError, TypeError, ValueError) as fault:  # msgspec's faults are ValueErrors
        raise BadInput(f"not a record of a ledger: {fault!r}") from fault


def _forecast(row: Mapping[str, Any]) -> ForecastUsed | None:
    source, observed_at, digest = (
        row[f"forecast_{name}"] for name in ("source", "observed_at", "digest")
    )
    if source is None or observed_at is None or digest is None:
        return None
    return ForecastUsed(source, observed_at, digest)


def _told(value: Any) -> Any:
    if isinstance(value, str):
        text = str(value)  # of an enumeration, too
        return text if text.isascii() and "\0" not in text else _storable(text)
    if value is None or isinstance(value, bool):
        return value
    return float(value) if math.isfinite(value) else None


def _storable(text: str) -> str:
    """Return the text without what UTF-8 or PostgreSQL cannot hold: lone surrogates and NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
