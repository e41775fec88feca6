"""Connections to the database that a path or a DSN names."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool, QueuePool

from greensched_core.errors import BadInput

_BUSY_S = 5.0  # longest wait for another process's lock
_LOOKS_AGAIN_S = 0.02
# Time limits for a server that does not answer; our statements are all short.
_SERVER_OPTIONS = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": "-c statement_timeout=30000 -c lock_timeout=5000 -c timezone=UTC",
}


def file_of(database: str) -> Path | None:
    """Return the SQLite file that `database` names: a path, or sqlite:///path; else None."""
    if database.startswith("sqlite:///"):
        return Path(database.removeprefix("sqlite:///"))
    return None if "://" in database else Path(database)


def shown(database: str) -> str:
    """Return a path or a DSN without its password."""
    file = file_of(database)
    return str(file) if file else _server(database).render_as_string(hide_password=True)


def writing_engine(database: str) -> Engine:
    """Return an engine whose transactions write; raise BadInput for an unknown kind of DSN."""
    file = file_of(database)
    if file is None:
        return create_engine(_server(database), pool_size=1, connect_args=_SERVER_OPTIONS)
    # IMMEDIATE: a writer waits for the lock at its beginning instead of half-way through.
    return _sqlite(lambda: _opened_to_write(file), "BEGIN IMMEDIATE", poolclass=QueuePool)


def reading_engine(database: str) -> Engine:
    """Return a read-only engine; raise BadInput for an unknown kind of DSN."""
    file = file_of(database)
    if file is None:
        return create_engine(_server(database), poolclass=NullPool, connect_args=_SERVER_OPTIONS)
    return _sqlite(lambda: _opened_to_read(file), "BEGIN", poolclass=NullPool)


def _server(database: str) -> URL:
    try:
        url = make_url(database)
    except (ArgumentError, ValueError) as fault:  # ValueError: the port is not a number
        raise BadInput(f"the ledger must be a file or postgresql://…: {fault}") from fault
    if url.drivername.partition("+")[0] not in ("postgresql", "postgres"):
        raise BadInput(f"the ledger must be a file or postgresql://…, not {url.drivername}://…")
    return url.set(drivername="postgresql+psycopg")


def _sqlite(opened: Callable[[], sqlite3.Connection], begin: str, **options: Any) -> Engine:
    engine = create_engine("sqlite://", creator=opened, **options)

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        # Transactions that the sqlite3 module begins do not cover CREATE TABLE.
        connection.exec_driver_sql(begin)

    return engine


def _opened_to_write(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        # auto_vacuum comes first: it must be set before the file's first table.
        for pragma in ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=NORMAL"):
            _set(connection, pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _set(connection: sqlite3.Connection, pragma: str) -> None:
    """Set a pragma; wait while another connection is setting it.

    SQLite itself does not wait where a database changes to WAL, whatever the timeout.
    """
    until_s = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as fault:
            is_busy = fault.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > until_s:
                raise
        time.sleep(_LOOKS_AGAIN_S)


def _opened_to_read(file: Path) -> sqlite3.Connection:
    # Readers of WAL need a log, which cannot be created in a read-only folder. A file there without
    # a log cannot change, so it is opened as immutable.
    log = file.with_name(f"{file.name}-wal")
    is_settled = not log.exists() and not os.access(file.parent, os.W_OK)
    mode = "immutable=1" if is_settled else "mode=ro"
    return sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?{mode}",
        uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
