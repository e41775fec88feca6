"""An open-loop HTTP client: it sends requests on schedule, however slow the answers are.

Latency counts from the scheduled time, so that a stall counts for every request that it delays
(Tene, "How NOT to Measure Latency", 2015).
"""

import asyncio
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HANDLER = re.compile(rb"server-timing: *handler;dur=([0-9.]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Timing:
    """One request: seconds seen by the client, and in the handler as the server reports."""

    client_s: float
    handler_s: float
    status: int


class Connection:
    """A keep-alive connection for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls, host: str, port: int, context: ssl.SSLContext | None = None
    ) -> "Connection":
        """Connect to `host`:`port`, with TLS when a context is given."""
        return cls(*await asyncio.open_connection(host, port, ssl=context, limit=2**24))

    async def send(self, request: bytes) -> tuple[int, bytes, bytes]:
        """Send a whole HTTP/1.1 request; return status, head and body of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await (self._reader.readexactly(int(length[1])) if length else self._chunks())
        return int(head[9:12]), head, body

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(parts)

    def close(self) -> None:
        """Close without waiting."""
        self._writer.close()


def post(path: str, body: bytes, host: str = "127.0.0.1") -> bytes:
    """Return the bytes of a POST request as kube-scheduler's client sends it."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


async def open_loop(
    host: str, port: int, requests: Sequence[bytes], *, rate_per_s: float, seconds: float
) -> list[Timing]:
    """Send `requests` in turn at `rate_per_s` for `seconds` and return one timing for each."""
    loop = asyncio.get_running_loop()
    idle: list[Connection] = []
    timings: list[Timing] = []

    async def one(request: bytes, due: float) -> None:
        connection = idle.pop() if idle else await Connection.open(host, port)
        status, head, _ = await connection.send(request)
        client_s = loop.time() - due
        idle.append(connection)
        handler = _HANDLER.search(head)
        handler_s = float(handler[1]) / 1e3 if handler else float("nan")
        timings.append(Timing(client_s, handler_s, status))

    start = loop.time() + 0.05
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(rate_per_s * seconds)):
            due = start + number / rate_per_s
            await asyncio.sleep(max(0.0, due - loop.time()))
            tasks.create_task(one(requests[number % len(requests)], due))
    for connection in idle:
        connection.close()
    return timings
