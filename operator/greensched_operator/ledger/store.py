"""The ledger in a database: writes, reads and deletes; every fault is a LedgerUnusable."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Select,
    Table,
    and_,
    column,
    func,
    inspect,
    null,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from greensched_core.ledger_records import LedgerRecord, Loss, LossReason, flat, from_flat
from greensched_operator.ledger.engines import file_of, reading_engine, shown, writing_engine
from greensched_operator.ledger.faults import LedgerUnusable, as_ledger_unusable
from greensched_operator.ledger.migrations import FORMER_NAMES, migrate
from greensched_operator.ledger.tables import LOSSES, RECORDS

_PAGE = 1_000  # records that are read at a time, so that no transaction stays open
_FORGOTTEN_AT_ONCE = 5_000  # records
_FREED_PAGES = 2_000  # that SQLite frees at a time: 8 MB


class LedgerStore:
    """One database, which is opened on first use and again after a fault.

    Any thread may read; only one at a time may write.
    """

    def __init__(self, database: str) -> None:
        """`database` is a file's path or postgresql://…; raise BadInput for another kind of URL."""
        self.name = shown(database)  # for messages, without the password
        self._database = database
        self._reading = reading_engine(database)
        self._writing: Engine | None = None

    def write(self, records: Sequence[LedgerRecord], losses: Sequence[Loss] = ()) -> None:
        """Write all of them or none; existing records are only completed.

        Raises LedgerUnusable, with the reason.
        """
        try:
            with as_ledger_unusable(), self._engine().begin() as connection:
                _upsert(connection, RECORDS, [flat(record) for record in records], _completed)
                rows = [{name: getattr(loss, name) for name in LOSSES.c.keys()} for loss in losses]
                _upsert(connection, LOSSES, rows, _replaced)
        except LedgerUnusable:
            self.close()
            raise

    def forget(self, before: float) -> int:
        """Delete some records older than `before`; return how many, 0 when done.

        Raises LedgerUnusable, with the reason.
        """
        old = select(RECORDS.c.id).where(RECORDS.c.at < before).limit(_FORGOTTEN_AT_ONCE)
        with as_ledger_unusable(), self._engine().begin() as connection:
            connection.execute(LOSSES.delete().where(LOSSES.c.until < before))
            gone = connection.execute(RECORDS.delete().where(RECORDS.c.id.in_(old))).rowcount
        if gone and file_of(self._database):
            self._free_pages()
        return gone

    def _free_pages(self) -> None:
        """Return free pages to the disk, outside of a transaction.

        Each step of the statement frees one page. The sqlite3 module takes only one step of a
        statement without columns, but all steps of a script.
        """
        with as_ledger_unusable(), closing(self._engine().raw_connection()) as connection:
            file = cast(sqlite3.Connection, connection.driver_connection)
            file.executescript(f"PRAGMA incremental_vacuum({_FREED_PAGES})")

    def records(
        self,
        since: float,
        until: float | None = None,
        namespace: str | None = None,
    ) -> Iterator[LedgerRecord]:
        """Yield the records from `since` to before `until`, the oldest first.

        Raises LedgerUnusable, with the reason, and BadInput for a row that is not a record.
        """
        wanted = RECORDS.c.at >= since
        if until is not None:
            wanted &= RECORDS.c.at < until
        if namespace is not None:
            wanted &= RECORDS.c.namespace == namespace
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
        """Return the losses from `since` to before `until`; raises LedgerUnusable."""
        wanted = LOSSES.c.until >= since
        if until is not None:
            wanted &= LOSSES.c.since < until
        rows = self._rows(select(LOSSES).where(wanted).order_by(LOSSES.c.since, LOSSES.c.id))
        return [Loss(**{**row, "reason": LossReason(row["reason"])}) for row in rows]

    def set_aside(self) -> Path | None:
        """Rename a corrupt database file and return its new path; None for a server.

        It replaces the file that was renamed before, so that a volume does not fill up with them.
        """
        file = file_of(self._database)
        self.close()
        if file is None:
            return None
        renamed = file.with_name(f"{file.name}.corrupt")
        with as_ledger_unusable():
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    old = file.with_name(file.name + suffix)
                    old.rename(renamed.with_name(renamed.name + suffix))
        return renamed

    def close(self) -> None:
        """Close the database; the next use opens it again."""
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
        """Return the columns to read, with NULL for those that an older schema lacks.

        A column that was renamed since is read by its former name.

        Reading leaves the schema of a copied file as it is; only writing migrates it.
        """
        with as_ledger_unusable(), self._reading.connect() as connection:
            inspector = inspect(connection)
            if not inspector.has_table(RECORDS.name):
                return list(RECORDS.c)
            known = {column["name"] for column in inspector.get_columns(RECORDS.name)}
        return [each if each.name in known else _former(each, known) for each in RECORDS.c]

    def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        with as_ledger_unusable(), self._reading.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _former(wanted: Column[Any], known: set[str]) -> Any:
    former = FORMER_NAMES.get(wanted.name)
    return (column(former) if former and former in known else null()).label(wanted.name)


def _completed(old: Any, new: Any) -> Any:
    return func.coalesce(old, new)


def _replaced(old: Any, new: Any) -> Any:
    return new


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]], merge: Any) -> None:
    if not rows:
        return
    is_server = connection.dialect.name == "postgresql"
    insert: Any = (postgresql.insert if is_server else sqlite.insert)(table)
    merged = {
        each.name: merge(each, insert.excluded[each.name])
        for each in table.columns
        if not each.primary_key
    }
    connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=merged), rows)
