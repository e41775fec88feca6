"""A scripted API server on a real socket."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from greensched_core.kubernetes_api import ApiAccess, ApiClient


@dataclass
class Reply:
    """One scripted answer; a stream stays open for `hang_s` seconds."""

    body: bytes
    status: int = 200
    streams: bool = False
    hang_s: float = 0.0


@dataclass
class ScriptedApi:
    """Answers requests with its replies in order, and records the requests."""

    port: int = 0
    replies: list[Reply] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = None, timeout_s: float = 5.0) -> ApiClient:
        access = ApiAccess(self.url, ssl.create_default_context(), lambda: token)
        return ApiClient(access, timeout_s=timeout_s)

    def page(self, *items: Any, version: str = "1", more: str = "") -> None:
        metadata = {"resourceVersion": version, "continue": more}
        self.replies.append(Reply(json.dumps({"metadata": metadata, "items": items}).encode()))

    def stream(self, *events: Any, hang_s: float = 0.0) -> None:
        lines = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
        self.replies.append(
            Reply(b"".join(line + b"\n" for line in lines), streams=True, hang_s=hang_s)
        )

    def answer(self, body: bytes) -> None:
        self.replies.append(Reply(body))

    def refuse(self, status: int, message: str = "no") -> None:
        self.replies.append(Reply(json.dumps({"message": message}).encode(), status))

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.connections.add(task)
        task.add_done_callback(self.connections.discard)

    async def hang_up(self) -> None:
        for task in self.connections:
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        method, target, _ = (await reader.readuntil(b"\r\n")).decode().split(" ")
        headers = {}
        while (line := (await reader.readuntil(b"\r\n")).decode().strip()) != "":
            name, value = line.split(": ", 1)
            headers[name.lower()] = value
        self.bodies.append(await reader.readexactly(int(headers.get("content-length", 0))))
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append((method, parts.path, query))
        self.headers.append(headers)
        if not self.replies:
            await asyncio.sleep(60)  # no reply left: the test stops the client
        reply = self.replies.pop(0)
        length = "Connection: close" if reply.streams else f"Content-Length: {len(reply.body)}"
        writer.write(f"HTTP/1.1 {reply.status} x\r\n{length}\r\n\r\n".encode() + reply.body)
        await writer.drain()
        if reply.streams:
            await asyncio.sleep(reply.hang_s)
        return not reply.streams


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedApi]:
    """Run an API server that answers as scripted."""
    server_script = ScriptedApi()
    server = await asyncio.start_server(server_script.connect, "127.0.0.1", 0)
    server_script.port = server.sockets[0].getsockname()[1]
    yield server_script
    server.close()
    await server_script.hang_up()
