"""Callers that open connections to a TLS server and come to no end of the handshake."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from greensched_core.connections import MOST_CONNECTIONS, Refusal
from greensched_core.server_handshakes import HANDSHAKE_S
from greensched_core.serving import Certificates, Server, server
from greensched_testbed.certificates import Authority

NAME = "server.test"
MIB = 2**20
RECORD = b"\x16\x03\x01\x40\x00"  # of a handshake, with TLS 1.2's most: 16 KiB
# It never comes to its end, and says that it will have not quite the most that is read of one.
UNFINISHED_HELLO = RECORD + b"\x01\x00\x7f\x00\x03\x03" + b"\x00" * 16_000
# A byte in each record: 94 KiB, and not complete.
CRUMBS = b"".join(b"\x16\x03\x01\x00\x01%c" % each for each in UNFINISHED_HELLO[len(RECORD) :])
HUGE_HELLO = RECORD + b"\x01\x01\xff\x00\x03\x03" + bytes(2**14 - 6) + (RECORD + bytes(2**14)) * 6
CLOSED_WITHIN_S = 40.0  # five, on a machine that is not busy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of a server."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificates(authority: Authority) -> Certificates:
    """A server's certificate."""
    pair = authority.issue_server("server", (NAME,))
    return Certificates(pair.certificate, pair.key)


@pytest.fixture(scope="module")
def trusting(authority: Authority) -> ssl.SSLContext:
    """What a caller believes."""
    return ssl.create_default_context(cafile=authority.certificate_file)


class Place:
    """A server over TLS that answers with the length of what it was sent."""

    def __init__(self, certificates: Certificates) -> None:
        self.refused: collections.Counter[Refusal] = collections.Counter()
        app = Starlette(routes=[Route("/", self.length, methods=["POST"])])
        self.server: Server = server(
            app, "127.0.0.1", 0, certificates, lambda why: self.refused.update([why])
        )

    async def length(self, request: Request) -> Response:
        """Answer one request."""
        return PlainTextResponse(str(len(await request.body())))

    async def ask(self, trusting: ssl.SSLContext, times: int = 1, body: bytes = b"hello") -> int:
        """Return how many requests of one connection were answered."""
        answered = 0
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.server.port, ssl=trusting, server_hostname=NAME
        )
        for _ in range(times):
            writer.write(request(body))
            head = await reader.readuntil(b"\r\n\r\n")
            told = await reader.readexactly(len(str(len(body))))
            answered += head.startswith(b"HTTP/1.1 200 ") and told == b"%d" % len(body)
        writer.close()
        return answered

    @asynccontextmanager
    async def crowd(self, how_many: int, sent: bytes = b"") -> AsyncIterator[list[socket.socket]]:
        """Have callers connect, send the same, and wait."""
        loop = asyncio.get_running_loop()
        callers: list[socket.socket] = []
        try:
            for _ in range(how_many):
                one = socket.socket()
                one.setblocking(False)
                callers.append(one)
                await loop.sock_connect(one, ("127.0.0.1", self.server.port))
                if sent:
                    await loop.sock_sendall(one, sent)
            yield callers
        finally:
            for one in callers:
                one.close()


def request(body: bytes) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def all_of(tls: ssl.SSLObject) -> bytes:
    """Return what has come, decrypted."""
    heard = b""
    with contextlib.suppress(ssl.SSLWantReadError):
        while True:
            heard += tls.read(2**16)
    return heard


@pytest.fixture
async def place(certificates: Certificates) -> AsyncIterator[Place]:
    """A server that serves, on the loop of our processes."""
    one = Place(certificates)

    def serve() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(one.server.serve())

    serving = threading.Thread(target=serve)
    serving.start()
    while not one.server.started:
        await asyncio.sleep(0.005)
    yield one
    one.server.should_exit = True
    await asyncio.to_thread(serving.join)


@pytest.mark.finding(8)
async def test_a_crowd_before_its_handshake_takes_bounded_memory_and_keeps_nobody_out(
    place: Place, trusting: ssl.SSLContext
) -> None:
    before = psutil.Process().memory_info().rss
    async with place.crowd(1_500, UNFINISHED_HELLO):
        assert await asyncio.gather(*(place.ask(trusting) for _ in range(60))) == [1] * 60
        grown = psutil.Process().memory_info().rss - before
    assert place.refused[Refusal.CROWDED] >= 1_500 - MOST_CONNECTIONS
    assert grown < 120 * MIB, f"{grown / MIB:.0f} MiB"


@pytest.mark.finding(8)
@pytest.mark.parametrize("sent", [b"", UNFINISHED_HELLO], ids=["silent", "unfinished"])
async def test_who_does_not_shake_hands_in_time_is_cut_off_and_counted(
    place: Place, sent: bytes
) -> None:
    loop = asyncio.get_running_loop()
    async with place.crowd(20, sent) as callers, asyncio.timeout(CLOSED_WITHIN_S):
        for one in callers:
            try:
                assert await loop.sock_recv(one, 1) == b""
            except ConnectionError:
                pass
    assert place.refused == {Refusal.HANDSHAKE: 20}


@pytest.mark.finding(8)
@pytest.mark.parametrize("sent", [CRUMBS, HUGE_HELLO], ids=["crumbs", "announces-128-KiB"])
async def test_of_a_handshake_without_end_no_more_is_read_than_a_sensible_one_has(
    place: Place, sent: bytes
) -> None:
    loop = asyncio.get_running_loop()
    ours = psutil.Process()
    before = most = ours.memory_info().rss
    async with place.crowd(400) as callers, asyncio.timeout(CLOSED_WITHIN_S):
        sending = [asyncio.create_task(loop.sock_sendall(one, sent)) for one in callers]
        while place.refused.total() < 400:
            most = max(most, ours.memory_info().rss)
            await asyncio.sleep(0.005)
        most = max(most, ours.memory_info().rss)
        await asyncio.gather(*sending, return_exceptions=True)
    grown = most - before
    assert place.refused == {Refusal.HANDSHAKE: 400}
    assert grown < 60 * MIB, f"{grown / MIB:.0f} MiB"


@pytest.mark.finding(8)
@pytest.mark.parametrize("pieces", [1, 9], ids=["at-once", "byte-by-byte"])
async def test_a_hello_that_announces_too_much_is_refused_by_its_first_bytes(
    place: Place, pieces: int
) -> None:
    loop = asyncio.get_running_loop()
    head = RECORD + b"\x01\x00\x80\x01"  # a byte more than 32 KiB
    async with place.crowd(1) as (caller,), asyncio.timeout(HANDSHAKE_S / 2):
        for at in range(0, len(head), len(head) // pieces):
            await loop.sock_sendall(caller, head[at : at + len(head) // pieces])
            await asyncio.sleep(0.02)
        with contextlib.suppress(ConnectionError):
            assert await loop.sock_recv(caller, 1) == b""
    assert place.refused == {Refusal.HANDSHAKE: 1}


@pytest.mark.finding(8)
async def test_bursts_and_kept_connections_are_all_answered(
    place: Place, trusting: ssl.SSLContext
) -> None:
    async with place.crowd(200, UNFINISHED_HELLO):
        kept = asyncio.create_task(place.ask(trusting, times=200))
        burst = await asyncio.gather(*(place.ask(trusting) for _ in range(250)))
        assert burst == [1] * 250
        assert await kept == 200
    assert place.refused[Refusal.CROWDED] == 0


@pytest.mark.parametrize("size", [5, 31_000, 100_000])
async def test_a_request_that_comes_with_the_last_bytes_of_the_handshake_is_answered(
    place: Place, trusting: ssl.SSLContext, size: int
) -> None:
    loop = asyncio.get_running_loop()
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting.wrap_bio(to_client, to_server, server_hostname=NAME)
    async with place.crowd(1) as (caller,), asyncio.timeout(CLOSED_WITHIN_S):
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await loop.sock_sendall(caller, to_server.read())
                to_client.write(await loop.sock_recv(caller, 2**16))
        tls.write(request(b"x" * size))
        await loop.sock_sendall(caller, to_server.read())
        heard = b""
        while not heard.endswith(b"\r\n\r\n%d" % size):
            to_client.write(await loop.sock_recv(caller, 2**16))
            heard += all_of(tls)
    assert heard.startswith(b"HTTP/1.1 200 ")
    assert not place.refused


async def test_a_server_that_is_asked_to_stop_waits_for_no_handshake(place: Place) -> None:
    async with place.crowd(5) as callers, asyncio.timeout(CLOSED_WITHIN_S):
        await asyncio.sleep(0.2)
        place.server.should_exit = True
        loop = asyncio.get_running_loop()
        for one in callers:
            try:
                assert await loop.sock_recv(one, 1) == b""
            except ConnectionError:
                pass
    assert not place.refused
