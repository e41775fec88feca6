"""The writer against stores that wait and fail when told to; real databases have tests beside."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from greensched_core.clock import ManualClock
from greensched_core.ledger_records import LedgerRecord, Loss, LossReason
from greensched_operator.ledger.faults import LedgerUnusable
from greensched_operator.ledger.metrics import LedgerMetrics
from greensched_operator.ledger.writer import LedgerWriter, WriterLimits

MakeRecord = Callable[..., LedgerRecord]
PATIENCE_S = 60.0
LIMITS = WriterLimits(
    most_waiting=10, batch=4, gather_s=0.0, first_retry_s=0.01, last_retry_s=0.01, keep_s=100.0
)


class Memory:
    """A ledger in memory, whose next writes wait for `gate` and raise what `faults` says."""

    name = "memory"

    def __init__(self) -> None:
        self.records: list[LedgerRecord] = []
        self.losses: dict[str, Loss] = {}
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.is_asked = threading.Event()
        self.faults: list[Exception] = []
        self.bad: set[str] = set()
        self.forgotten_before: list[float] = []
        self.is_closed = False

    def write(self, records: list[LedgerRecord], losses: list[Loss]) -> None:
        self.is_asked.set()
        assert self.gate.wait(PATIENCE_S)
        if self.faults:
            raise self.faults.pop(0)
        if self.bad & {record.subject.name for record in records}:
            raise LedgerUnusable(LossReason.REFUSED, "no")
        self.records += records
        self.losses |= {loss.id: loss for loss in losses}
        self.batches.append(len(records))

    def forget(self, before: float) -> int:
        self.forgotten_before.append(before)
        return 0

    def set_aside(self) -> Path | None:
        return Path("aside")

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def store() -> Memory:
    return Memory()


@pytest.fixture
def lost() -> Counter[LossReason]:
    return Counter()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000.0)


@pytest.fixture
def writer(store: Memory, lost: Counter[LossReason], clock: ManualClock) -> Iterator[LedgerWriter]:
    def count(reason: LossReason, records: int) -> None:
        lost[reason] += records

    made = LedgerWriter(store, clock=clock, count_lost=count, limits=LIMITS)
    made.start()
    yield made
    store.gate.set()
    made.stop(PATIENCE_S)


def test_records_are_written_in_order_and_in_batches(
    writer: LedgerWriter, store: Memory, make_record: MakeRecord
) -> None:
    records = [make_record(number) for number in range(9)]
    for record in records:
        writer.write(record)
    assert writer.drained(PATIENCE_S)
    assert store.records == records
    assert max(store.batches) <= LIMITS.batch


def test_nobody_waits_for_a_database_that_hangs_and_what_overflows_is_counted(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    store.gate.clear()
    writer.write(make_record(0))
    assert store.is_asked.wait(PATIENCE_S)
    for number in range(1, 25):
        writer.write(make_record(number))  # returns, though nothing is written
    assert lost == {LossReason.QUEUE_FULL: 15}
    store.gate.set()
    assert writer.drained(PATIENCE_S)
    assert len(store.records) == 10
    (told,) = store.losses.values()
    assert (told.reason, told.records) == (LossReason.QUEUE_FULL, 15)


def test_after_faults_all_that_waited_is_written(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    store.faults = [LedgerUnusable(LossReason.DISK_FULL, "full")] * 3 + [ValueError("a bug")]
    for number in range(6):
        writer.write(make_record(number))
    assert writer.drained(PATIENCE_S)
    assert [record.subject.name for record in store.records] == [f"job-{n}" for n in range(6)]
    assert (lost, writer.fault) == ({}, None)


def test_a_fault_is_reported_once_until_it_is_another(
    writer: LedgerWriter, store: Memory, make_record: MakeRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    store.faults = [LedgerUnusable(LossReason.DISK_FULL, "full")] * 5
    writer.write(make_record(0))
    assert writer.drained(PATIENCE_S)
    told = capsys.readouterr().out
    assert told.count("cannot be written") == 1
    assert told.count("can be written again") == 1


def test_a_record_that_no_database_takes_holds_up_no_other(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    store.bad = {"job-1"}
    for number in range(4):
        writer.write(make_record(number))
    assert writer.drained(PATIENCE_S)
    assert [record.subject.name for record in store.records] == ["job-0", "job-2", "job-3"]
    assert lost == {LossReason.REFUSED: 1}


def test_a_broken_file_is_set_aside_and_that_is_a_loss_of_nobody_knows_how_many(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    store.faults = [LedgerUnusable(LossReason.CORRUPT, "malformed")]
    writer.write(make_record(0))
    assert writer.drained(PATIENCE_S)
    (told,) = store.losses.values()
    assert (told.reason, told.records) == (LossReason.CORRUPT, None)
    assert lost == {LossReason.CORRUPT: 1}
    assert len(store.records) == 1


def test_stopping_writes_what_waits_and_closes(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    for number in range(7):
        writer.write(make_record(number))
    writer.stop(PATIENCE_S)
    assert len(store.records) == 7 and store.is_closed
    writer.write(make_record(8))
    assert lost == {LossReason.STOPPED: 1}


def test_stopping_while_the_database_is_away_counts_what_is_left(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    store.faults = [LedgerUnusable(LossReason.UNREACHABLE, "away")] * 1_000_000
    for number in range(3):
        writer.write(make_record(number))
    writer.stop(PATIENCE_S)
    assert lost == {LossReason.UNREACHABLE: 3}
    assert writer.waiting == 0


def test_stopping_gives_up_on_a_database_that_hangs(
    writer: LedgerWriter, store: Memory, lost: Counter[LossReason], make_record: MakeRecord
) -> None:
    store.gate.clear()
    writer.write(make_record(0))
    assert store.is_asked.wait(PATIENCE_S)
    writer.stop(patience_s=0.01)
    assert lost == {LossReason.STOPPED: 1}


def test_what_is_older_than_it_is_kept_is_forgotten(
    writer: LedgerWriter, store: Memory, make_record: MakeRecord
) -> None:
    writer.write(make_record(0))
    assert writer.drained(PATIENCE_S)
    assert store.forgotten_before == [1_000.0 - LIMITS.keep_s]


def test_the_metrics_tell_what_was_written_lost_and_waits(
    store: Memory, make_record: MakeRecord
) -> None:
    registry = CollectorRegistry()
    metrics = LedgerMetrics(registry)
    writer = LedgerWriter(
        store, clock=ManualClock(), count_lost=metrics.count_lost,
        count_written=metrics.count_written, limits=LIMITS,
    )  # fmt: skip
    metrics.observe(writer)
    for number in range(12):  # two more than it holds before it is started
        writer.write(make_record(number))
    prefix = "greensched_operator_ledger"
    assert registry.get_sample_value(f"{prefix}_records_waiting") == 10
    writer.start()
    writer.stop(PATIENCE_S)
    assert registry.get_sample_value(f"{prefix}_records_written_total") == 10
    lost = {"reason": "queue_full"}
    assert registry.get_sample_value(f"{prefix}_records_lost_total", lost) == 2
    assert registry.get_sample_value(f"{prefix}_usable") == 1
