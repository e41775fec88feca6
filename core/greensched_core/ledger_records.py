"""The ledger's records: one of each decision on a workload, and of records that were lost.

Times are seconds since the epoch, amounts are in SI units, and None is no data. A record's id
identifies the decision and its workload, so that a repeated decision stays one record: the ledger
keeps the first values and adds those missing before, such as measured energy.
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
    """The decision, or the event."""

    HELD = "held"
    PLANNED = "planned"  # a start; also a changed plan
    RELEASED = "released"
    PAUSED = "paused"
    RESUMED = "resumed"
    PLACED = "placed"  # on a node
    ENDED = "ended"


DELETED_WHILE_HELD = "deleted-while-held"  # why a workload ended that never started


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The workload of a decision, and its requests."""

    kind: str  # Kubernetes kind: Job, Pod
    namespace: str
    name: str
    uid: str | None = None  # None at admission, before the object has one
    owner: str | None = None  # kind/name of the object that created it: CronJob/report
    cpu_cores: float | None = None
    memory_bytes: float | None = None
    gpus: float | None = None


@dataclass(frozen=True, slots=True)
class InputAge:
    """The age of one input at the time of the decision."""

    name: str
    age_s: float


@dataclass(frozen=True, slots=True)
class ForecastUsed:
    """The forecast that a decision used."""

    source: str
    observed_at: float  # when it was made, seconds since the epoch
    digest: str  # of its values


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a run uses; money is in the record's currency."""

    energy_j: float | None = None
    carbon_g: float | None = None
    cost: float | None = None


NOTHING_KNOWN = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """One decision with its inputs, its counterfactual, and its measured amounts.

    `occurrence` distinguishes it from earlier decisions of its kind on the same workload. If it is
    absent, a plan is identified by its start, a pause or resumption by its time; all else occurs
    once.
    """

    what: What
    at: float
    subject: Subject
    is_shadow: bool = False  # recorded, but not applied
    occurrence: str | None = None
    policy: str | None = None  # its name
    mode: str | None = None  # off, shadow, enforce
    reason: str | None = None
    zone: str | None = None  # grid zone
    input_ages: tuple[InputAge, ...] = ()
    forecast: ForecastUsed | None = None
    planned_start: float | None = None
    latest_start: float | None = None
    deadline: float | None = None
    run_now_start: float | None = None  # the counterfactual: the start without a hold
    expected_runtime_s: float | None = None
    measured_runtime_s: float | None = None
    planned: Amounts = NOTHING_KNOWN  # estimated, as decided
    run_now: Amounts = NOTHING_KNOWN  # estimated, of the counterfactual
    measured: Amounts = NOTHING_KNOWN
    meter: str | None = None  # source of `measured`; the kubelet gives an estimate
    currency: str | None = None
    node: str | None = None
    decision: str | None = None  # the extender's, as JSON

    @property
    def id(self) -> str:
        """Return an id that is the same whenever the same decision is recorded."""
        subject = self.subject
        named = (subject.kind, subject.namespace, subject.name)
        # A later object may have the same name, but never the same UID.
        workload = (subject.uid,) if subject.uid else (*named, f"{self.at:.0f}")
        key = (self.what, str(self.is_shadow), self.occurrence or self._occurrence(), *workload)
        return hashlib.sha256("\0".join(key).encode(errors="replace")).hexdigest()[: 2 * _ID_BYTES]

    def _occurrence(self) -> str:
        if self.what is What.PLANNED and self.planned_start is not None:
            return f"{self.planned_start:.0f}"
        return f"{self.at:.0f}" if self.what in (What.PAUSED, What.RESUMED) else ""


class LossReason(StrEnum):
    """Why records did not reach the ledger."""

    QUEUE_FULL = "queue_full"  # they came faster than they were written
    DISK_FULL = "disk_full"
    LOCKED = "locked"  # by another process for too long
    UNWRITABLE = "unwritable"  # read-only, no permission, or no such folder
    CORRUPT = "corrupt"  # the file was not a database and was moved away
    UNREACHABLE = "unreachable"  # the server does not answer or refuses us
    NEWER_SCHEMA = "newer_schema"  # a later version made the tables
    REFUSED = "refused"  # the database accepts others, not this one
    STOPPED = "stopped"  # the process ended before they were written
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Loss:
    """Records lost for one reason between two times; written once the loss has ended."""

    id: str
    reason: LossReason
    since: float
    until: float
    records: int | None  # None: unknown number


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One line of a sent ledger: a record, a loss, or the end with the number of both."""

    record: LedgerRecord | None = None
    loss: Loss | None = None
    end: int | None = None  # if it is missing, the answer was cut off


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
    """Return the content of a line; raise BadInput if it is not a line of a ledger."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise BadInput(f"not a line of a ledger: {fault}") from fault


def flat(record: LedgerRecord) -> dict[str, Any]:
    """Return a record as table columns, its id first; numbers that are not finite become None."""
    subject, forecast = record.subject, record.forecast
    row: dict[str, Any] = {"id": record.id}
    row |= {name: _stored(getattr(record, name)) for name in _PLAIN}
    row |= {name: _stored(getattr(subject, name)) for name in _SUBJECT}
    ages = tuple(each for each in record.input_ages if math.isfinite(each.age_s))
    row["input_ages"] = _ENCODER.encode(ages).decode() if ages else None
    row["forecast_source"] = _stored(forecast.source) if forecast else None
    row["forecast_observed_at"] = _stored(forecast.observed_at) if forecast else None
    row["forecast_digest"] = _stored(forecast.digest) if forecast else None
    for bill in _BILLS:
        amounts = getattr(record, bill)
        row |= {f"{bill}_{name}": _stored(getattr(amounts, name)) for name in _AMOUNTS}
    return row


def from_flat(row: Mapping[str, Any]) -> LedgerRecord:
    """Return the record of columns made by `flat`; raise BadInput if they are wrong."""
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
    except (KeyError, TypeError, ValueError) as fault:  # msgspec's errors are ValueErrors
        raise BadInput(f"not a record of a ledger: {fault!r}") from fault


def _forecast(row: Mapping[str, Any]) -> ForecastUsed | None:
    source, observed_at, digest = (
        row[f"forecast_{name}"] for name in ("source", "observed_at", "digest")
    )
    if source is None or observed_at is None or digest is None:
        return None
    return ForecastUsed(source, observed_at, digest)


def _stored(value: Any) -> Any:
    if isinstance(value, str):
        text = str(value)  # also turns an enum member into text
        return text if text.isascii() and "\0" not in text else _storable(text)
    if value is None or isinstance(value, bool):
        return value
    return float(value) if math.isfinite(value) else None


def _storable(text: str) -> str:
    """Replace what UTF-8 or PostgreSQL cannot hold: lone surrogates and NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
