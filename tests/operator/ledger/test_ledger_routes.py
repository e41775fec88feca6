from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from greensched_core.ledger_records import LedgerLine, LedgerRecord, Loss, LossReason, decode_line
from greensched_operator.ledger.routes import LEDGER_PATH, Readable, ledger_routes
from greensched_operator.ledger.store import LedgerStore

MakeRecord = Callable[..., LedgerRecord]
LOSS = Loss("l1", LossReason.LOCKED, 10.0, 1_500.0, 3)


@pytest.fixture
def store(tmp_path: Path) -> LedgerStore:
    return LedgerStore(str(tmp_path / "ledger.db"))


async def get(ledger: Readable, **asked: object) -> httpx.Response:
    transport = httpx.ASGITransport(Starlette(routes=ledger_routes(ledger)))
    parameters = {name: str(value) for name, value in asked.items()}
    async with httpx.AsyncClient(transport=transport, base_url="http://ledger") as client:
        return await client.get(LEDGER_PATH, params=parameters)


def lines(response: httpx.Response) -> list[LedgerLine]:
    assert response.status_code == 200
    return [decode_line(line) for line in response.content.splitlines()]


async def test_losses_then_records_then_the_end_are_sent(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    records = [make_record(number) for number in range(1_200)]
    store.write(records, [LOSS])
    told = lines(await get(store, since=0))
    assert [line.loss for line in told if line.loss] == [LOSS]
    assert [line.record for line in told if line.record] == records
    assert told[-1].end == 1_201


async def test_a_span_of_time_and_a_namespace_are_sent(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    store.write([make_record(number) for number in range(6)])
    told = lines(await get(store, since=1_001, until=1_004.5, namespace="team-1"))
    assert [line.record.subject.name for line in told if line.record] == ["job-1", "job-3"]


async def test_an_empty_ledger_sends_its_end(store: LedgerStore) -> None:
    store.write([])
    assert lines(await get(store)) == [LedgerLine(end=0)]


@pytest.mark.parametrize("text", ["yesterday", "nan", "inf", "1e999"])
async def test_what_is_no_time_is_a_bad_request(store: LedgerStore, text: str) -> None:
    response = await get(store, since=text)
    assert response.status_code == 400 and "seconds since the epoch" in response.json()["error"]


async def test_a_ledger_that_is_not_there_is_unavailable(store: LedgerStore) -> None:
    response = await get(store)
    assert response.status_code == 503 and "unable to open" in response.json()["error"]


async def test_a_ledger_that_breaks_half_way_sends_no_end(
    store: LedgerStore, make_record: MakeRecord
) -> None:
    store.write([make_record(number) for number in range(600)])

    class Breaking:
        def losses(self, since: float, until: float | None) -> list[Loss]:
            return []

        def records(
            self, since: float, until: float | None, namespace: str | None
        ) -> Iterator[LedgerRecord]:
            yield from store.records(since)
            raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):  # what ends the connection
        await get(Breaking())
