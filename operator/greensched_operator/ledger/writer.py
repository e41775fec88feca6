"""Writes records from a thread of its own: whoever decides never waits and never fails for it.

What cannot be written waits in a bounded queue and is tried again; what finds the queue full is
lost and counted. When the ledger can be written again, it is told what was lost meanwhile.
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
    """Where the records go; each method raises LedgerUnusable, with the reason."""

    @property
    def name(self) -> str:
        """Return what people call it."""
        ...

    def write(self, records: list[LedgerRecord], losses: list[Loss]) -> None:
        """Write all or none; what is there already is only completed."""
        ...

    def forget(self, before: float) -> int:
        """Delete some of what is older; return how many, 0 when done."""
        ...

    def set_aside(self) -> Path | None:
        """Put a file that is broken out of the way; return where it lies now."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


@dataclass(frozen=True)
class WriterLimits:
    """How much waits in memory, and for how long."""

    most_waiting: int = 20_000  # records: 10 to 40 MB, placements' decisions with them 100
    batch: int = 500  # records in one transaction
    gather_s: float = 0.5  # how long a record waits for others to be written with it
    first_retry_s: float = 1.0  # doubled with each failure …
    last_retry_s: float = 60.0  # … up to this
    keep_s: float = 400 * 86_400.0  # a year and a month, so that this month has one to stand beside
    forget_every_s: float = 3_600.0


class LedgerWriter:
    """Takes records at any time; started and stopped once."""

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
        self._changed = threading.Condition()  # guards all that follows
        self._waiting: deque[LedgerRecord] = deque()
        self._lost: dict[LossReason, Loss] = {}  # not yet told to the ledger
        self._fault: LossReason | None = None
        self._stopping = False
        self._is_writing = False
        self._hurry = threading.Event()  # ends every pause
        self._retry_s = self._limits.first_retry_s
        self._forget_at = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)

    @property
    def fault(self) -> LossReason | None:
        """Return why the ledger cannot be written now; None where it can."""
        return self._fault

    @property
    def waiting(self) -> int:
        """Return how many records are not written yet."""
        return len(self._waiting)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def write(self, record: LedgerRecord) -> None:
        """Take a record, or count it as lost; returns at once and never raises."""
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
        """Wait until all that was taken is written or lost; tell whether it came to that."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._waiting or self._is_writing or self._lost), patience_s
            )

    def stop(self, patience_s: float = 5.0) -> None:
        """Write what waits, once, and end; what is left then counts as lost."""
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
            # Whatever a database does, work is scheduled on; it is counted and told.
            except Exception as fault:  # noqa: BLE001 - the top of the loop
                if not self._failed(fault):
                    break
        self._store.close()

    def _has_work(self) -> bool:
        """Wait for records, or until it is time to forget; False once all is written at the end."""
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
        """Write a batch one by one, since one of it is not taken, and would hold up the rest."""
        for record in batch:
            try:
                self._store.write([record], [])
            except LedgerUnusable as fault:
                if fault.reason is not LossReason.REFUSED:
                    raise
                log.warning(
                    "the ledger refuses a record; it is dropped", record=record.id, error=str(fault)
                )
                with self._changed:
                    self._waiting.popleft()
                    self._lose(LossReason.REFUSED, 1)
            else:
                self._done(1, [])

    def _done(self, written: int, told: list[Loss]) -> None:
        with self._changed:
            for _ in range(min(written, len(self._waiting))):  # fewer where stop() gave up on them
                self._waiting.popleft()
            for loss in told:
                # One that grew meanwhile stays, with its id: the next time replaces this one.
                if self._lost[loss.reason] == loss:
                    del self._lost[loss.reason]
        if written:
            self._count_written(written)

    def _forget(self) -> None:
        if self._clock.monotonic() < self._forget_at:
            return
        while self._store.forget(self._clock.now() - self._limits.keep_s) and not self._stopping:
            if self._waiting:
                return  # first what is new, the rest of the old in the next round
        self._forget_at = self._clock.monotonic() + self._limits.forget_every_s

    def _failed(self, fault: Exception) -> bool:
        """Tell and count a fault, then pause; return whether to go on."""
        reason = fault.reason if isinstance(fault, LedgerUnusable) else LossReason.OTHER
        if reason is not self._fault:
            log.error(
                "the ledger cannot be written; decisions go on without it",
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
            aside = self._store.set_aside()
        except LedgerUnusable as fault:
            log.error("the broken ledger cannot be set aside", error=str(fault))
            return False
        if aside is None:
            return False
        log.error("the broken ledger was set aside and a new one begun", file=str(aside))
        with self._changed:
            self._lose(LossReason.CORRUPT, None)
        return True

    def _recovered(self) -> None:
        if self._fault is None:
            return
        with self._changed:
            was, self._fault = self._fault, None
            self._changed.notify_all()
        self._retry_s = self._limits.first_retry_s
        log.info("the ledger can be written again", ledger=self._store.name, after=was.value)

    def _lose(self, reason: LossReason, records: int | None) -> None:
        """Count records as lost; None where nobody knows how many, which counts as one."""
        now = self._clock.now()
        sofar = self._lost.get(reason) or Loss(uuid.uuid4().hex, reason, now, now, 0)
        known = sofar.records is not None and records is not None
        total = (sofar.records or 0) + (records or 0) if known else None
        self._lost[reason] = replace(sofar, until=now, records=total)
        self._count_lost(reason, 1 if records is None else records)
