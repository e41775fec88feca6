from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from greensched_core.errors import BadInput
from greensched_testbed.postgres import PostgresServer, postgres_programs

pytestmark = pytest.mark.postgresql


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    try:
        postgres_programs()
    except BadInput as fault:
        pytest.skip(str(fault))
    with PostgresServer() as running:
        yield running


def ask(server: PostgresServer, statement: bytes) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute(statement)


def at_work_in(folder: Path) -> list[int]:
    """Return the processes that work in a folder, whoever started them."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or is none of ours
            if Path(process.cwd()).is_relative_to(folder):
                found.append(process.pid)
    return found


def test_what_was_committed_survives_a_crash(server: PostgresServer) -> None:
    ask(server, b"CREATE TABLE kept (id int)")
    server.kill()
    with pytest.raises(psycopg.OperationalError):
        ask(server, b"SELECT 1")
    server.start()
    ask(server, b"SELECT * FROM kept")


def test_nothing_is_left_of_it() -> None:
    try:
        server = PostgresServer()
    except BadInput as fault:
        pytest.skip(str(fault))
    with server:
        folder = server.folder
        ask(server, b"SELECT 1")
        assert folder.exists() and at_work_in(folder)
    assert not at_work_in(folder) and not folder.exists()
