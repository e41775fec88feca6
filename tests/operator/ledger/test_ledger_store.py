import dataclasses
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect, text

from greensched_core.errors import BadInput
from greensched_core.ledger_records import Amounts, LedgerRecord, Loss, LossReason, What, flat
from greensched_operator.ledger.engines import shown, writing_engine
from greensched_operator.ledger.faults import LedgerUnusable
from greensched_operator.ledger.migrations import STEPS, migrate
from greensched_operator.ledger.store import LedgerStore
from greensched_operator.ledger.tables import COLUMNS, METADATA

MakeRecord = Callable[..., LedgerRecord]


@pytest.fixture
def store(database: str) -> Iterator[LedgerStore]:
    opened = LedgerStore(database)
    yield opened
    opened.close()


def test_what_is_written_is_read(store: LedgerStore, make_record: MakeRecord) -> None:
    written = [make_record(number) for number in range(3)]
    store.write(written)
    assert list(store.records(0.0)) == written


def test_writing_twice_keeps_one_record_as_it_was_first_written(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    first, again = make_record(1), make_record(1, at=2_000.0, reason="told again")
    store.write([first, again])
    store.write([again])
    assert list(store.records(0.0)) == [first]


def test_what_is_measured_later_completes_the_record(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    ended = make_record(1, What.ENDED)
    measured = dataclasses.replace(ended, measured=Amounts(3.0, 2.0, 1.0), measured_runtime_s=60.0)
    store.write([ended])
    store.write([measured])
    assert list(store.records(0.0)) == [measured]


@pytest.mark.parametrize(("since", "until", "namespace", "numbers"), [
    pytest.param(0.0, None, None, [0, 1, 2, 3], id="all"),
    pytest.param(1_001.0, None, None, [1, 2, 3], id="the-start-is-in"),
    pytest.param(0.0, 1_003.0, None, [0, 1, 2], id="the-end-is-not"),
    pytest.param(0.0, None, "team-1", [1, 3], id="a-namespace"),
    pytest.param(0.0, None, "no-team", [], id="nobodys"),
])  # fmt: skip
def test_a_span_of_time_and_a_namespace_are_read(
    store: LedgerStore, make_record: MakeRecord, since: float, until: float | None,
    namespace: str | None, numbers: list[int],
) -> None:  # fmt: skip
    store.write([make_record(number) for number in (3, 1, 0, 2)])
    found = [record.subject.name for record in store.records(since, until, namespace)]
    assert found == [f"job-{number}" for number in numbers]


def test_more_records_than_a_page_are_read_once_each(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    at_once = [make_record(number, at=5.0) for number in range(2_500)]
    store.write(at_once)
    found = [record.id for record in store.records(0.0)]
    assert sorted(found) == sorted(record.id for record in at_once)


def test_a_loss_that_grew_replaces_the_one_before(store: LedgerStore) -> None:
    store.write([], [Loss("l1", LossReason.LOCKED, 10.0, 20.0, 1)])
    grown = Loss("l1", LossReason.LOCKED, 10.0, 30.0, 5)
    store.write([], [grown])
    assert store.losses(0.0) == [grown]
    assert store.losses(31.0) == store.losses(0.0, 10.0) == []


def test_a_file_shrinks_when_much_is_forgotten(tmp_path: Path, make_record: MakeRecord) -> None:
    store, file = LedgerStore(str(tmp_path / "ledger.db")), tmp_path / "ledger.db"
    store.write([make_record(number, reason="x" * 2_000) for number in range(1_000)])

    def pages() -> int:
        with closing(sqlite3.connect(file)) as connection:
            return int(connection.execute("PRAGMA page_count").fetchone()[0])

    before = pages()
    assert store.forget(1e9) == 1_000
    store.close()
    assert pages() < before / 2


def test_what_is_old_is_forgotten(store: LedgerStore, make_record: MakeRecord) -> None:
    store.write([make_record(0), make_record(9)], [Loss("l1", LossReason.LOCKED, 1.0, 2.0, 1)])
    assert store.forget(1_005.0) == 1
    assert store.forget(1_005.0) == 0
    assert [record.subject.name for record in store.records(0.0)] == ["job-9"]
    assert store.losses(0.0) == []


def test_a_record_without_a_time_is_refused_and_nothing_of_its_batch_is_written(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    with pytest.raises(LedgerUnusable) as told:
        store.write([make_record(1), make_record(2, at=float("nan"))])
    assert told.value.reason is LossReason.REFUSED
    assert list(store.records(0.0)) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.text(max_size=8))
def test_any_text_can_be_kept(store: LedgerStore, make_record: MakeRecord, text: str) -> None:
    record = make_record(1, reason=text, occurrence=f"by {text!r}")
    store.write([record])
    kept = {each.id: each.reason for each in store.records(0.0)}
    assert len(kept[record.id] or "") == len(text)


def test_the_steps_make_the_tables_that_are_used(database: str) -> None:
    engine = writing_engine(database)
    with engine.begin() as connection:
        migrate(connection)
    for table in METADATA.tables.values():
        made = {column["name"] for column in inspect(engine).get_columns(table.name)}
        assert made == set(table.columns.keys())
    engine.dispose()


def test_several_that_begin_at_once_make_one_ledger(database: str, make_record: MakeRecord) -> None:
    together = threading.Barrier(4)

    def begin(number: int) -> None:
        store = LedgerStore(database)
        together.wait(30.0)
        store.write([make_record(number), make_record(100)])
        store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin, range(4)))
    assert len(list(LedgerStore(database).records(0.0))) == 5


def test_who_opens_a_new_file_while_another_one_makes_it_waits(tmp_path: Path) -> None:
    """SQLite waits for no lock while a database changes to WAL, whatever its timeout."""
    file = tmp_path / "ledger.db"
    maker = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    maker.execute("CREATE TABLE one (a)")
    maker.execute("BEGIN IMMEDIATE")
    ending = threading.Timer(0.3, lambda: maker.execute("COMMIT"))
    ending.start()
    with writing_engine(str(file)).begin() as connection:
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
    ending.join()
    maker.close()
    assert mode == "wal"


def test_an_older_ledger_is_brought_forward_with_what_it_holds(
    store: LedgerStore, database: str, make_record: MakeRecord
) -> None:
    store.write([make_record(1)])
    store.close()
    engine = writing_engine(database)
    longer = [*STEPS, ["ALTER TABLE records ADD COLUMN later TEXT"]]
    for _ in range(2):  # the second time there is nothing to do
        with engine.begin() as connection:
            assert migrate(connection, longer) == len(longer)
    with engine.begin() as connection:
        rows = connection.execute(text("SELECT name, later FROM records")).all()
    engine.dispose()
    assert [tuple(row) for row in rows] == [("job-1", None)]


def test_an_older_ledger_is_read_as_it_is_and_after_its_migration(
    database: str, make_record: MakeRecord
) -> None:
    made = dataclasses.replace(make_record(1), latest_start=1_795_000_000.0)
    engine = writing_engine(database)
    with engine.begin() as connection:
        migrate(connection, STEPS[:1])
        row = flat(made) | {"hold_until": made.latest_start}
        del row["latest_start"], row["meter"]  # columns of later steps
        columns = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO records ({columns}) VALUES ({values})"), row)
    engine.dispose()
    for _ in range(2):  # the second time after it was written, and so migrated
        [record] = LedgerStore(database).records(0.0)
        assert record == made and record.meter is None and record.latest_start is not None
        store = LedgerStore(database)
        store.write([])
        store.close()


def test_a_step_that_fails_changes_nothing(database: str) -> None:
    engine = writing_engine(database)
    with pytest.raises(Exception, match="syntax"), engine.begin() as connection:
        migrate(connection, [["CREATE TABLE half (id TEXT)", "NO SQL"]])
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_ledger_of_a_later_version_is_left_alone(
    store: LedgerStore, database: str, make_record: MakeRecord
) -> None:
    engine = writing_engine(database)
    with engine.begin() as connection:
        migrate(connection, [*STEPS, ["CREATE TABLE more (id TEXT)"]])
    engine.dispose()
    with pytest.raises(LedgerUnusable, match="run a newer") as told:
        store.write([make_record(1)])
    assert told.value.reason is LossReason.NEWER_SCHEMA


def test_a_file_of_a_read_only_folder_is_read(tmp_path: Path, make_record: MakeRecord) -> None:
    file = tmp_path / "volume" / "ledger.db"
    file.parent.mkdir()
    store = LedgerStore(str(file))
    store.write([make_record(1)])
    store.close()
    file.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert [each.subject.name for each in store.records(0.0)] == ["job-1"]
    finally:
        file.parent.chmod(stat.S_IRWXU)


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnusable) as told:
        list(LedgerStore(str(tmp_path / "absent.db")).records(0.0))
    assert told.value.reason is LossReason.UNWRITABLE
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_was_only_made_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    sqlite3.connect(path).close()
    store = LedgerStore(str(path))
    with pytest.raises(LedgerUnusable, match="no such table"):
        list(store.records(0.0))


def test_another_programs_file_is_reported(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE things (id TEXT)")
    with pytest.raises(LedgerUnusable, match="no such table"):
        list(LedgerStore(str(tmp_path / "other.db")).records(0.0))


@pytest.mark.parametrize("database", ["mysql://db/ledger", "postgresql://db:port/x", "://"])
def test_a_database_of_another_kind_is_bad_input(database: str) -> None:
    with pytest.raises(BadInput, match="the ledger must be a file or postgresql"):
        LedgerStore(database)


def test_no_password_is_shown() -> None:
    assert "secret" not in shown("postgresql://me:secret@db/ledger")


def test_every_column_is_explained(make_record: MakeRecord) -> None:
    assert set(COLUMNS) == set(flat(make_record(1)))
