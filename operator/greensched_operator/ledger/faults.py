"""What can go wrong with a database, in the ledger's words."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from greensched_core.errors import GreenSchedError
from greensched_core.ledger_records import LossReason

# Names of SQLite's codes begin with these; the first that fits holds.
_OF_SQLITE = (
    ("SQLITE_FULL", LossReason.DISK_FULL),
    ("SQLITE_BUSY", LossReason.LOCKED),
    ("SQLITE_LOCKED", LossReason.LOCKED),
    ("SQLITE_CORRUPT", LossReason.CORRUPT),
    ("SQLITE_NOTADB", LossReason.CORRUPT),
    ("SQLITE_IOERR_WRITE", LossReason.DISK_FULL),  # a quota or a limit on the size of files
    ("SQLITE_IOERR", LossReason.UNWRITABLE),
    ("SQLITE_READONLY", LossReason.UNWRITABLE),
    ("SQLITE_CANTOPEN", LossReason.UNWRITABLE),
    ("SQLITE_PERM", LossReason.UNWRITABLE),
    ("SQLITE_CONSTRAINT", LossReason.REFUSED),
    ("SQLITE_MISMATCH", LossReason.REFUSED),
    ("SQLITE_TOOBIG", LossReason.REFUSED),
)
# Classes of SQLSTATE, or whole ones (PostgreSQL's documentation, appendix A).
_OF_POSTGRESQL = (
    ("53100", LossReason.DISK_FULL),
    ("53", LossReason.UNREACHABLE),  # too many connections, out of memory
    ("57", LossReason.UNREACHABLE),  # shutting down, statement cancelled
    ("58", LossReason.UNWRITABLE),
    ("08", LossReason.UNREACHABLE),
    ("28", LossReason.UNREACHABLE),  # it does not let us in
    ("3D", LossReason.UNREACHABLE),  # no such database
    ("55P03", LossReason.LOCKED),
    ("40", LossReason.LOCKED),
    ("25006", LossReason.UNWRITABLE),
    ("42501", LossReason.UNWRITABLE),
    ("XX001", LossReason.CORRUPT),
    ("XX002", LossReason.CORRUPT),
    ("22", LossReason.REFUSED),
    ("23", LossReason.REFUSED),
    ("54", LossReason.REFUSED),
)


class LedgerUnusable(GreenSchedError):
    """The ledger cannot be written or read now; whoever decides goes on without it."""

    def __init__(self, reason: LossReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@contextmanager
def told_as_ours() -> Iterator[None]:
    """Raise LedgerUnusable, with its reason, for whatever the database raises."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, psycopg.Error, OSError, ValueError) as fault:
        original = getattr(fault, "orig", None) or fault
        raise LedgerUnusable(reason_of(original), " ".join(str(original).split())) from fault


def reason_of(fault: BaseException) -> LossReason:
    """Return why a database did not take what it was given."""
    if isinstance(fault, sqlite3.Error):
        return _first(_OF_SQLITE, getattr(fault, "sqlite_errorname", ""), LossReason.OTHER)
    if isinstance(fault, psycopg.Error):
        absent = isinstance(fault, psycopg.OperationalError)  # no server to give it a number
        otherwise = LossReason.UNREACHABLE if absent else LossReason.OTHER
        if isinstance(fault, psycopg.DataError):
            otherwise = LossReason.REFUSED
        return _first(_OF_POSTGRESQL, fault.sqlstate or "", otherwise)
    if isinstance(fault, OSError):
        return LossReason.UNWRITABLE
    return LossReason.REFUSED if isinstance(fault, ValueError) else LossReason.OTHER


def _first(
    known: tuple[tuple[str, LossReason], ...], code: str, otherwise: LossReason
) -> LossReason:
    return next((reason for begin, reason in known if code.startswith(begin)), otherwise)
