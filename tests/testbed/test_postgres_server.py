from collections.abc import Iterator

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
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with server:
        folder = server.folder
        ask(server, b"SELECT 1")
        assert folder.exists()
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert after <= before and not folder.exists()
