"""Real faults of real databases: decisions go on, the loss is counted, and it recovers."""

import resource
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from greensched_core.clock import WallClock
from greensched_core.errors import BadInput
from greensched_core.ledger_records import LedgerRecord, LossReason
from greensched_operator.ledger.faults import LedgerUnusable, loss_reason_of
from greensched_operator.ledger.store import LedgerStore
from greensched_operator.ledger.writer import LedgerWriter, WriterLimits
from greensched_testbed.postgres import PostgresServer

MakeRecord = Callable[..., LedgerRecord]
PATIENCE_S = 60.0
MOST = 50
LIMITS = WriterLimits(
    most_waiting=MOST,
    batch=10,
    gather_s=0.0,
    first_retry_s=0.05,
    last_retry_s=0.05,
    keep_s=1e12,
)
LONG = "x" * 10_000  # a reason that fills a small disk


class Losses:
    """Counts what is lost, and tells when the first one is."""

    def __init__(self) -> None:
        self.counted: Counter[LossReason] = Counter()
        self.has_begun = threading.Event()

    def count(self, reason: LossReason, records: int) -> None:
        self.counted[reason] += records
        self.has_begun.set()


@pytest.fixture
def losses() -> Losses:
    return Losses()


@contextmanager
def writing(database: str, losses: Losses) -> Iterator[LedgerWriter]:
    writer = LedgerWriter(
        LedgerStore(database), clock=WallClock(), count_lost=losses.count, limits=LIMITS
    )
    writer.start()
    try:
        yield writer
    finally:
        writer.stop(PATIENCE_S)


def write_until_lost(writer: LedgerWriter, losses: Losses, make_record: MakeRecord) -> int:
    """Write records until the first is lost for a fault; return how many were taken or lost."""
    for number in range(100_000):
        if losses.has_begun.is_set():
            return number
        for _ in range(10_000):
            if writer.waiting < MOST or writer.fault is not None:
                break
            losses.has_begun.wait(0.01)  # as fast as it is written, until it is not
        writer.write(make_record(number, reason=LONG))
    raise AssertionError("nothing was ever lost")


def kept_and_lost(database: str) -> tuple[int, Counter[str]]:
    store = LedgerStore(database)
    told: Counter[str] = Counter()
    for loss in store.losses(0.0):
        told[loss.reason] += loss.records or 0
    return sum(1 for _ in store.records(0.0)), told


@contextmanager
def small_files() -> Iterator[None]:
    """No file of this process grows beyond 400 kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_files_that_may_not_grow_lose_only_what_does_not_fit(
    tmp_path: Path, losses: Losses, make_record: MakeRecord
) -> None:
    database = str(tmp_path / "ledger.db")
    with writing(database, losses) as writer:
        with small_files():
            taken = write_until_lost(writer, losses, make_record)
            assert writer.fault is LossReason.DISK_FULL
        assert writer.drained(PATIENCE_S)
    kept, told = kept_and_lost(database)
    assert told == losses.counted and set(told) == {LossReason.DISK_FULL}
    assert kept + told.total() == taken


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "volume"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "ledger", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_lived_with_until_there_is_room_again(
    small_disk: Path, losses: Losses, make_record: MakeRecord
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 600_000)
    database = str(small_disk / "ledger.db")
    with writing(database, losses) as writer:
        taken = write_until_lost(writer, losses, make_record)
        assert writer.fault is LossReason.DISK_FULL
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        assert writer.drained(PATIENCE_S)
    kept, told = kept_and_lost(database)
    assert told == losses.counted and kept + told.total() == taken


def test_a_locked_file_is_waited_for(
    tmp_path: Path, losses: Losses, make_record: MakeRecord
) -> None:
    database = str(tmp_path / "ledger.db")
    store = LedgerStore(database)
    store.write([])
    store.close()
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with writing(database, losses) as writer:
            taken = write_until_lost(writer, losses, make_record)
            other.execute("ROLLBACK")
            assert writer.drained(PATIENCE_S)
    kept, told = kept_and_lost(database)
    assert told == losses.counted and kept + told.total() == taken
    assert set(told) == {LossReason.LOCKED}


def test_a_folder_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, losses: Losses, make_record: MakeRecord
) -> None:
    folder = tmp_path / "volume"
    database = str(folder / "ledger.db")
    with writing(database, losses) as writer:
        taken = write_until_lost(writer, losses, make_record)
        assert writer.fault is LossReason.UNWRITABLE
        folder.mkdir()
        assert writer.drained(PATIENCE_S)
    kept, told = kept_and_lost(database)
    assert told == losses.counted and kept + told.total() == taken


@pytest.mark.parametrize("harm", [
    pytest.param(lambda file: file.write_bytes(b"no database at all" * 500), id="another-file"),
    pytest.param(lambda file: file.write_bytes(file.read_bytes()[:5_000] + b"\xff" * 60_000),
                 id="overwritten-from-the-second-page-on"),
])  # fmt: skip
def test_a_corrupt_file_is_set_aside_and_a_new_one_begun(
    tmp_path: Path, losses: Losses, make_record: MakeRecord, harm: Callable[[Path], object]
) -> None:
    file = tmp_path / "ledger.db"
    before = LedgerStore(str(file))
    before.write([make_record(number) for number in range(100)])
    before.close()
    harm(file)
    harmed = file.read_bytes()
    with writing(str(file), losses) as writer:
        writer.write(make_record(1))
        assert writer.drained(PATIENCE_S)
    assert (tmp_path / "ledger.db.corrupt").read_bytes() == harmed
    assert losses.counted == {LossReason.CORRUPT: 1}
    (told,) = LedgerStore(str(file)).losses(0.0)
    assert (told.reason, told.records) == (LossReason.CORRUPT, None)
    assert kept_and_lost(str(file))[0] == 1


@pytest.mark.postgresql
def test_a_server_that_dies_and_comes_back_loses_only_what_found_no_room(
    losses: Losses, make_record: MakeRecord
) -> None:
    try:
        server = PostgresServer()
    except BadInput as fault:
        pytest.skip(str(fault))
    with server, writing(server.url, losses) as writer:
        for number in range(20):
            writer.write(make_record(number, reason=LONG))
        assert writer.drained(PATIENCE_S)
        server.kill()
        more = write_until_lost(writer, losses, make_record)
        assert writer.fault is LossReason.UNREACHABLE
        server.start()
        assert writer.drained(PATIENCE_S)
        kept, told = kept_and_lost(server.url)
    assert told == losses.counted
    # The first 20 were written again by the second turn, which told the same decisions.
    assert kept + told.total() >= more and kept >= 20


@pytest.mark.postgresql
def test_a_server_that_only_reads_is_unwritable(
    postgres_database: str, make_record: MakeRecord
) -> None:
    store = LedgerStore(postgres_database)
    store.write([])
    store.close()
    name = postgres_database.rpartition("/")[2]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    with pytest.raises(LedgerUnusable) as told:
        LedgerStore(postgres_database).write([make_record(1)])
    assert told.value.reason is LossReason.UNWRITABLE


@pytest.mark.parametrize(("fault", "reason"), [
    (OSError("no"), LossReason.UNWRITABLE),
    (ValueError("no"), LossReason.REFUSED),
    (RuntimeError("no"), LossReason.OTHER),
    (sqlite3.ProgrammingError("no"), LossReason.OTHER),
    (psycopg.OperationalError("no"), LossReason.UNREACHABLE),
    (psycopg.errors.DiskFull("no"), LossReason.DISK_FULL),
    (psycopg.errors.TooManyConnections("no"), LossReason.UNREACHABLE),
    (psycopg.errors.UndefinedTable("no"), LossReason.OTHER),
    (psycopg.DataError("no"), LossReason.REFUSED),
])  # fmt: skip
def test_every_fault_has_a_reason(fault: Exception, reason: LossReason) -> None:
    assert loss_reason_of(fault) is reason
