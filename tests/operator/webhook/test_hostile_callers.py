"""Callers that send too much, or never come to an end, take nothing from those who do."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest

from greensched_operator.webhook.webhook_app import MOST_BODY_BYTES, MUTATE

if TYPE_CHECKING:
    from greensched_operator.webhook.webhook import WebhookProcess
    from tests.operator.conftest import Place

REFUSED = "greensched_webhook_refused_connections_total"
MIB = 2**20
CLOSED_WITHIN_S = 40.0  # five, on a machine that is not busy
MOST_GROWTH = 96 * MIB
HEAD = f"POST {MUTATE} HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n".encode()

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def connect(port: int, *, is_tls: bool) -> Connection:
    return await asyncio.open_connection("127.0.0.1", port, ssl=trusting() if is_tls else None)


async def open_many(port: int, sent: bytes, how_many: int, *, is_tls: bool) -> list[Connection]:
    """Open connections that have each sent the beginning of a request."""
    opened = [await connect(port, is_tls=is_tls) for _ in range(how_many)]
    for _, writer in opened:
        writer.write(sent)
    return opened


async def drip(opened: list[Connection]) -> None:
    """Send another byte on each now and then, until cancelled."""
    while True:
        await asyncio.sleep(1.0)
        for _, writer in opened:
            if not writer.is_closing():
                writer.write(b"x")


async def until_closed(connection: Connection) -> bytes:
    """Return what was answered once the server has hung up."""
    reader, writer = connection
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def assert_all_are_closed(opened: list[Connection]) -> list[bytes]:
    dripping = asyncio.create_task(drip(opened))
    try:
        async with asyncio.timeout(CLOSED_WITHIN_S):
            return await asyncio.gather(*(until_closed(each) for each in opened))
    finally:
        dripping.cancel()


async def pour(port: int, size: int, head: bytes) -> bytes:
    """Send a long body as fast as it is taken, and return what is answered."""
    reader, writer = await connect(port, is_tls=True)
    writer.write(HEAD + head)
    piece = b" " * MIB
    try:
        for _ in range(size // MIB):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass  # it has hung up, as it may
    return await until_closed((reader, writer))


async def held_at_once(place: Place, name: str) -> bool:
    """Tell whether the API server is answered in time: it waits for two seconds."""
    made = await place.create_job(name, deadline="6h")
    return made["spec"].get("suspend") is True


def health_port(webhook: WebhookProcess) -> int:
    assert webhook.health is not None
    return webhook.health.port


@pytest.mark.finding(8)
async def test_a_body_beyond_any_review_is_refused_and_takes_no_memory(place: Place) -> None:
    await place.green_policy(mode="enforce")
    size = 200 * MIB
    announced = f"Content-Length: {size}\r\n\r\n".encode()
    unannounced = f"Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n".encode()
    async with place.webhook():
        before = psutil.Process().memory_info().rss
        port = place.settings.webhook_port
        async with asyncio.timeout(30):
            told = await asyncio.gather(
                *(pour(port, size, head) for head in (announced, unannounced) * 2)
            )
        grown = psutil.Process().memory_info().rss - before
        assert await held_at_once(place, "train")
    assert grown < MOST_GROWTH, f"{grown / MIB:.0f} MiB"
    assert {each[:12] for each in told if each} <= {b"HTTP/1.1 413"}


@pytest.mark.finding(8)
@pytest.mark.parametrize("port", ["webhook", "health"])
async def test_who_does_not_come_to_an_end_is_cut_off(place: Place, port: str) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook() as webhook:
        is_tls = port == "webhook"
        number = place.settings.webhook_port if is_tls else health_port(webhook)
        slow_bodies = await open_many(
            number, HEAD + b"Content-Length: 100\r\n\r\n{", 100, is_tls=is_tls
        )
        half_heads = await open_many(number, HEAD, 100, is_tls=is_tls)
        held = asyncio.create_task(held_at_once(place, "train"))
        told = await assert_all_are_closed([*slow_bodies, *half_heads])
        assert await held
    assert told.count(b"") < len(told), "most were told why"


@pytest.mark.finding(8)
async def test_slow_bodies_that_take_all_room_keep_no_work_from_being_held(place: Place) -> None:
    await place.green_policy(mode="enforce")
    size = MOST_BODY_BYTES - 1
    nearly = HEAD + f"Content-Length: {size + 1}\r\n\r\n".encode() + b" " * size
    async with place.webhook() as webhook:
        slow = await open_many(place.settings.webhook_port, nearly, 5, is_tls=True)
        await asyncio.gather(*(writer.drain() for _, writer in slow))
        assert [await held_at_once(place, f"train-{n}") for n in range(3)] == [True] * 3
        for _, writer in slow:
            writer.close()
        reviews = webhook.metrics.registry.get_sample_value
        assert reviews("greensched_webhook_reviews_total", {"outcome": "crowded-out"}) == 1


@pytest.mark.finding(8)
async def test_more_connections_than_any_server_needs_keep_nobody_out(place: Place) -> None:
    async with place.webhook() as webhook:
        port = health_port(webhook)
        idle = await open_many(port, b"", 600, is_tls=False)
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
        still = [reader for reader, _ in idle if not reader.at_eof()]
        for _, writer in idle:
            writer.close()
        assert webhook.metrics.registry.get_sample_value(REFUSED, {"reason": "crowded"}) == 89
    assert len(still) <= 512


@pytest.mark.finding(8)
async def test_a_connection_that_is_kept_serves_long_after_its_last_request(
    place: Place,
) -> None:
    review = json.dumps({"request": {"uid": "1", "kind": {"kind": "Job"}}}).encode()
    request = HEAD + f"Content-Length: {len(review)}\r\n\r\n".encode() + review
    async with place.webhook():
        reader, writer = await connect(place.settings.webhook_port, is_tls=True)
        for pause_s in (0.0, 6.0):
            await asyncio.sleep(pause_s)
            writer.write(request)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
            await reader.readexactly(int(length.split(b":")[1]))
        writer.close()
