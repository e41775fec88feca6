"""Writes records from a separate thread, so that decisions never wait for it and never fail by it.

Records that cannot be written wait in a bounded queue and are tried again. A record is lost and
counted if the queue is full. Once the ledger can be written again, it records these losses.
"""

import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import structlog

from greensched_core.clock import Clock
from greensched_core.ledger_records import LedgerRecord, Loss, LossReason
from greensched_operator.ledger.faults import LedgerUnusable

log = structlog.get_logger()

CountLost = Callable[[LossReason, int], None]  # called from either thread; must not block


class Store(Protocol):
    """A database for records; each method raises LedgerUnusable, with the reason."""

    @property
    def name(self) -> str:
        """Return its name for messages."""
        ...

    def write(self, records: list[LedgerRecord], losses: list[Loss]) -> None:
        """Write all or none; existing records are only completed."""
        ...

    def forget(self, before: float) -> int:
        """Delete some of the older records; return how many, 0 when done."""
        ...

    def set_aside(self) -> Path | None:
        """Rename a broken file; return its new path."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...


@dataclass(frozen=True)
class WriterLimits:
    """Limits on the records in memory, the pauses, and the age of records in the ledger."""

    most_waiting: int = 20_000  # records: 10 to 40 MB, or 100 MB with decisions of placements
    batch: int = 500  # records in one transaction
    gather_s: float = 0.5  # that a record waits for others, to be written with them
    first_retry_s: float = 1.0  # doubled with each failure …
    last_retry_s: float = 60.0  # … up to this
    keep_s: float = 400 * 86_400.0  # a year and a month, to compare a month with last year's
    forget_every_s: float = 3_600.0


class LedgerWriter:
    """Takes records at any time; it can be started and stopped once."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        count_lost: CountLost,
        count_written: Callable[[int], None] = lambda _: None,
        limits: WriterLimits | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._count_lost = count_lost
        self._count_written = count_written
        self._limits = limits or WriterLimits()
        self._changed = threading.Condition()  # guards the attributes below
        self._waiting: deque[LedgerRecord] = deque()
        self._lost: dict[LossReason, Loss] = {}  # not yet written to the ledger
        self._fault: LossReason | None = None
        self._stopping = False
        self._is_writing = False
        self._hurry = threading.Event()  # ends every pause
        self._retry_s = self._limits.first_retry_s
        self._forget_at = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)

    @property
    def fault(self) -> LossReason | None:
        """Return why the ledger cannot be written now; None if it can."""
        return self._fault

    @property
    def waiting(self) -> int:
        """Return the number of records that are not yet written."""
        return len(self._waiting)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, record: LedgerRecord) -> None:
        """Take a record, or count it as lost; returns immediately and never raises."""
        with self._changed:
            if self._stopping:
                self._lose(LossReason.STOPPED, 1)
            elif len(self._waiting) >= self._limits.most_waiting:
                self._lose(self._fault or LossReason.QUEUE_FULL, 1)
            else:
                self._waiting.append(record)
                self._changed.notify_all()
                if len(self._waiting) >= self._limits.batch and self._fault is None:
                    self._hurry.set()

    def drained(self, patience_s: float) -> bool:
        """Wait until all taken records are written or lost; return False after `patience_s`."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._waiting or self._is_writing or self._lost), patience_s
            )

    def stop(self, patience_s: float = 5.0) -> None:
        """Try once to write the waiting records, and end; the rest counts as lost."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._hurry.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)
        with self._changed:
            if self._waiting:
                self._lose(self._fault or LossReason.STOPPED, len(self._waiting))
                self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while self._has_work():
            try:
                self._write_batch()
                self._forget()
                self._recovered()
            # No fault of a database may stop scheduling; it is counted and logged.
            except Exception as fault:  # noqa: BLE001 - the top of the loop
                if not self._failed(fault):
                    break
        self._store.close()

    def _has_work(self) -> bool:
        """Wait for records or the next deletion; return False once stopped and all is written."""
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            while not (self._waiting or self._lost or self._stopping):
                left_s = self._forget_at - self._clock.monotonic()
                if left_s <= 0:
                    return True
                self._changed.wait(left_s)
            self._is_writing = True
            few = len(self._waiting) < self._limits.batch and not self._stopping
        if few:
            self._hurry.wait(self._limits.gather_s)
        with self._changed:
            self._hurry.clear()
            if self._stopping:
                self._hurry.set()
            return bool(self._waiting or self._lost) or not self._stopping

    def _write_batch(self) -> None:
        with self._changed:
            batch = list(islice(self._waiting, self._limits.batch))
            losses = list(self._lost.values())
        try:
            self._store.write(batch, losses)
        except LedgerUnusable as fault:
            if fault.reason is not LossReason.REFUSED:
                raise
            self._write_each(batch)
        else:
            self._done(len(batch), losses)

    def _write_each(self, batch: list[LedgerRecord]) -> None:
        """Write a batch one by one, since one refused record would hold up the others."""
        for record in batch:
            try:
                self._store.write([record], [])
            except LedgerUnusable as fault:
                if fault.reason is not LossReason.REFUSED:
                    raise
                log.warning(
                    "the ledger refused a record, which is lost", record=record.id, error=str(fault)
                )
                with self._changed:
                    self._waiting.popleft()
                    self._lose(LossReason.REFUSED, 1)
            else:
                self._done(1, [])

    def _done(self, written: int, losses: list[Loss]) -> None:
        with self._changed:
            for _ in range(min(written, len(self._waiting))):  # fewer if stop() gave up on them
                self._waiting.popleft()
            for loss in losses:
                # One that grew meanwhile stays, with its id: the next write replaces this row.
                if self._lost[loss.reason] == loss:
                    del self._lost[loss.reason]
        if written:
            self._count_written(written)

    def _forget(self) -> None:
        if self._clock.monotonic() < self._forget_at:
            return
        while self._store.forget(self._clock.now() - self._limits.keep_s) and not self._stopping:
            if self._waiting:
                return  # new records come first, the other old ones in the next round
        self._forget_at = self._clock.monotonic() + self._limits.forget_every_s

    def _failed(self, fault: Exception) -> bool:
        """Log and remember a fault, then pause; return whether to continue."""
        reason = fault.reason if isinstance(fault, LedgerUnusable) else LossReason.OTHER
        if reason is not self._fault:
            log.error(
                "the ledger cannot be written; decisions continue, and writing is tried again",
                ledger=self._store.name, reason=reason.value, error=str(fault),
            )  # fmt: skip
        with self._changed:
            self._fault = reason
            self._changed.notify_all()
            if self._stopping:
                self._is_writing = False
                return False
        if reason is LossReason.CORRUPT and self._is_set_aside():
            return True
        self._hurry.wait(self._retry_s)
        self._retry_s = min(2 * self._retry_s, self._limits.last_retry_s)
        return True

    def _is_set_aside(self) -> bool:
        try:
            renamed = self._store.set_aside()
        except LedgerUnusable as fault:
            log.error("the corrupt ledger file could not be renamed", error=str(fault))
            return False
        if renamed is None:
            return False
        log.error("the corrupt ledger file was renamed; a new one is begun", file=str(renamed))
        with self._changed:
            self._lose(LossReason.CORRUPT, None)
        return True

    def _recovered(self) -> None:
        if self._fault is None:
            return
        with self._changed:
            past, self._fault = self._fault, None
            self._changed.notify_all()
        self._retry_s = self._limits.first_retry_s
        log.info("the ledger can be written again", ledger=self._store.name, after=past.value)

    def _lose(self, reason: LossReason, records: int | None) -> None:
        """Count records as lost; None means an unknown number, which the counter takes as one."""
        now = self._clock.now()
        before = self._lost.get(reason) or Loss(uuid.uuid4().hex, reason, now, now, 0)
        known = before.records is not None and records is not None
        total = (before.records or 0) + (records or 0) if known else None
        self._lost[reason] = replace(before, until=now, records=total)
        self._count_lost(reason, 1 if records is None else records)
