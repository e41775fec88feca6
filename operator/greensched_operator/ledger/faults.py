"""Faults of databases, with the ledger's reasons."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from greensched_core.errors import GreenSchedError
from greensched_core.ledger_records import LossReason

# Prefixes of the names of SQLite's error codes; the first match counts.
_OF_SQLITE = (
    ("SQLITE_FULL", LossReason.DISK_FULL),
    ("SQLITE_BUSY", LossReason.LOCKED),
    ("SQLITE_LOCKED", LossReason.LOCKED),
    ("SQLITE_CORRUPT", LossReason.CORRUPT),
    ("SQLITE_NOTADB", LossReason.CORRUPT),
    ("SQLITE_IOERR_WRITE", LossReason.DISK_FULL),  # a quota or a file size limit
    ("SQLITE_IOERR", LossReason.UNWRITABLE),
    ("SQLITE_READONLY", LossReason.UNWRITABLE),
    ("SQLITE_CANTOPEN", LossReason.UNWRITABLE),
    ("SQLITE_PERM", LossReason.UNWRITABLE),
    ("SQLITE_CONSTRAINT", LossReason.REFUSED),
    ("SQLITE_MISMATCH", LossReason.REFUSED),
    ("SQLITE_TOOBIG", LossReason.REFUSED),
)
# Prefixes of SQLSTATE: classes or whole codes (PostgreSQL's documentation, appendix A).
_OF_POSTGRESQL = (
    ("53100", LossReason.DISK_FULL),
    ("53", LossReason.UNREACHABLE),  # too many connections, out of memory
    ("57", LossReason.UNREACHABLE),  # shutting down, statement cancelled
    ("58", LossReason.UNWRITABLE),
    ("08", LossReason.UNREACHABLE),
    ("28", LossReason.UNREACHABLE),  # login refused
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
    """The ledger cannot be written or read now; decisions continue without it."""

    def __init__(self, reason: LossReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@contextmanager
def as_ledger_unusable() -> Iterator[None]:
    """Raise LedgerUnusable, with its reason, for any exception of the database."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, psycopg.Error, OSError, ValueError) as fault:
        original = getattr(fault, "orig", None) or fault
        raise LedgerUnusable(loss_reason_of(original), " ".join(str(original).split())) from fault


def loss_reason_of(fault: BaseException) -> LossReason:
    """Return the reason of a database's exception."""
    if isinstance(fault, sqlite3.Error):
        return _first(_OF_SQLITE, getattr(fault, "sqlite_errorname", ""), LossReason.OTHER)
    if isinstance(fault, psycopg.Error):
        absent = isinstance(fault, psycopg.OperationalError)  # no server that sets an SQLSTATE
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
