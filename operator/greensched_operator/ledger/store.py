"""The ledger in a database: writing, reading and forgetting; every fault is a LedgerUnusable."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, Select, Table, and_, func, inspect, null, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from greensched_core.ledger_records import LedgerRecord, Loss, LossReason, What, flat, from_flat
from greensched_operator.ledger.engines import file_of, reading_engine, shown, writing_engine
from greensched_operator.ledger.faults import LedgerUnusable, told_as_ours
from greensched_operator.ledger.migrations import migrate
from greensched_operator.ledger.tables import LOSSES, RECORDS

_PAGE = 1_000  # records that are read at a time, so that no transaction stays open
_FORGOTTEN_AT_ONCE = 5_000
_FREED_PAGES = 2_000  # that SQLite gives back at a time: 8 MB


class LedgerStore:
    """One database; nothing is opened before it is used, and after a fault it is opened anew.

    Each thread may read; one at a time writes.
    """

    def __init__(self, database: str) -> None:
        """`database` is a file's path or postgresql://…; raise BadInput for another kind of URL."""
        self.name = shown(database)  # for people; without a password
        self._database = database
        self._reading = reading_engine(database)
        self._writing: Engine | None = None

    def write(self, records: Sequence[LedgerRecord], losses: Sequence[Loss] = ()) -> None:
        """Write all of them or none; what is there already is only completed.

        Raises LedgerUnusable, with the reason.
        """
        try:
            with told_as_ours(), self._engine().begin() as connection:
                _upsert(connection, RECORDS, [flat(record) for record in records], _completed)
                rows = [{name: getattr(loss, name) for name in LOSSES.c.keys()} for loss in losses]
                _upsert(connection, LOSSES, rows, _replaced)
        except LedgerUnusable:
            self.close()
            raise

    def forget(self, before: float) -> int:
        """Delete some of what is older than `before`; return how many records, 0 when done.

        Raises LedgerUnusable, with the reason.
        """
        old = select(RECORDS.c.id).where(RECORDS.c.at < before).limit(_FORGOTTEN_AT_ONCE)
        with told_as_ours(), self._engine().begin() as connection:
            connection.execute(LOSSES.delete().where(LOSSES.c.until < before))
            gone = connection.execute(RECORDS.delete().where(RECORDS.c.id.in_(old))).rowcount
        if gone and file_of(self._database):
            self._give_back()
        return gone

    def _give_back(self) -> None:
        """Give pages back to the disk, outside of a transaction.

        Each step of the statement frees one page, and the module takes one step of what has no
        columns; of a script it takes them all.
        """
        with told_as_ours(), closing(self._engine().raw_connection()) as connection:
            file = cast(sqlite3.Connection, connection.driver_connection)
            file.executescript(f"PRAGMA incremental_vacuum({_FREED_PAGES})")

    def released(self, since: float, until: float) -> list[LedgerRecord]:
        """Return all that was started from `since` to before `until`; raises as `records` does."""
        return list(self.records(since, until, what=What.RELEASED))

    def records(
        self,
        since: float,
        until: float | None = None,
        namespace: str | None = None,
        what: What | None = None,
    ) -> Iterator[LedgerRecord]:
        """Yield the records from `since` to before `until`, the oldest first.

        Raises LedgerUnusable, with the reason, and BadInput for a row that is no record.
        """
        wanted = RECORDS.c.at >= since
        if until is not None:
            wanted &= RECORDS.c.at < until
        if namespace is not None:
            wanted &= RECORDS.c.namespace == namespace
        if what is not None:
            wanted &= RECORDS.c.what == what
        page = (
            select(*self._columns()).where(wanted).order_by(RECORDS.c.at, RECORDS.c.id).limit(_PAGE)
        )
        rows = self._rows(page)
        while rows:
            yield from map(from_flat, rows)
            at, last = rows[-1]["at"], rows[-1]["id"]
            beyond = or_(RECORDS.c.at > at, and_(RECORDS.c.at == at, RECORDS.c.id > last))
            rows = self._rows(page.where(beyond)) if len(rows) == _PAGE else []

    def losses(self, since: float, until: float | None = None) -> list[Loss]:
        """Return what was lost from `since` to before `until`; raise LedgerUnusable."""
        wanted = LOSSES.c.until >= since
        if until is not None:
            wanted &= LOSSES.c.since < until
        rows = self._rows(select(LOSSES).where(wanted).order_by(LOSSES.c.since, LOSSES.c.id))
        return [Loss(**{**row, "reason": LossReason(row["reason"])}) for row in rows]

    def set_aside(self) -> Path | None:
        """Rename a file that is no database any more, and return its new name; None for a server.

        It replaces the one that was set aside before: a volume does not fill up with them.
        """
        file = file_of(self._database)
        self.close()
        if file is None:
            return None
        aside = file.with_name(f"{file.name}.corrupt")
        with told_as_ours():
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    file.with_name(file.name + suffix).rename(aside.with_name(aside.name + suffix))
        return aside

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        engine, self._writing = self._writing, None
        if engine is not None:
            engine.dispose()

    def _engine(self) -> Engine:
        if self._writing is None:
            engine = writing_engine(self._database)
            try:
                with engine.begin() as connection:
                    migrate(connection)
            except BaseException:
                engine.dispose()
                raise
            self._writing = engine
        return self._writing

    def _columns(self) -> list[Any]:
        """Return the columns to read; of an older ledger, which nobody has opened, NULL for some.

        A file that was copied is read as it is, and is brought forward by who writes it.
        """
        with told_as_ours(), self._reading.connect() as connection:
            looked_at = inspect(connection)
            if not looked_at.has_table(RECORDS.name):
                return list(RECORDS.c)
            there = {column["name"] for column in looked_at.get_columns(RECORDS.name)}
        return [each if each.name in there else null().label(each.name) for each in RECORDS.c]

    def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        with told_as_ours(), self._reading.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _completed(kept: Any, told: Any) -> Any:
    return func.coalesce(kept, told)


def _replaced(kept: Any, told: Any) -> Any:
    return told


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]], merge: Any) -> None:
    if not rows:
        return
    is_server = connection.dialect.name == "postgresql"
    insert: Any = (postgresql.insert if is_server else sqlite.insert)(table)
    merged = {
        column.name: merge(column, insert.excluded[column.name])
        for column in table.columns
        if not column.primary_key
    }
    connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=merged), rows)
