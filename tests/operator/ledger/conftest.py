"""A new database of each kind for each test, and records for it."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from greensched_core.errors import BadInput
from greensched_core.ledger_records import Amounts, LedgerRecord, Subject, What
from greensched_testbed.postgres import PostgresServer, postgres_programs

MakeRecord = Callable[..., LedgerRecord]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Run a real server, or skip and say what is missing."""
    try:
        postgres_programs()
    except BadInput as fault:
        pytest.skip(str(fault))
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> str:
    """Create a database for this test."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{postgres_server.url.rpartition('/')[0]}/{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a ledger: a file that does not exist yet, or an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def make_record() -> MakeRecord:
    """Return a function that makes a record of a workload by its number."""

    def make(number: int = 0, what: What = What.HELD, **others: Any) -> LedgerRecord:
        subject = Subject(
            kind="Job", namespace=f"team-{number % 2}", name=f"job-{number}", uid=f"uid-{number}"
        )
        known: dict[str, Any] = {
            "at": 1_000.0 + number, "policy": "default", "reason": "dirty hour",
            "planned": Amounts(3.6e6, 100.0, 0.1), "run_now": Amounts(3.6e6, 300.0, 0.2),
            "currency": "EUR", **others,
        }  # fmt: skip
        return LedgerRecord(what=what, subject=subject, **known)

    return make
