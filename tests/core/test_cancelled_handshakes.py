"""Requests that are cancelled while a server is mute in the handshake of TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_operator.signals.web import make_http

PATIENCE_S = 30.0


class Mute:
    """A server that hears its callers and says nothing."""

    def __init__(self) -> None:
        self.was_greeted, self.was_left = asyncio.Event(), asyncio.Event()

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear one caller until it is gone."""
        await reader.read(1)
        self.was_greeted.set()
        await reader.read()
        self.was_left.set()
        writer.close()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve at an address."""
        async with await asyncio.start_server(self.hear, "127.0.0.1", 0) as server:
            yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def is_left_by(self, asking: Awaitable[object]) -> bool:
        """Tell whether the caller leaves when its request is cancelled in the handshake."""
        task = asyncio.ensure_future(asking)
        await self.was_greeted.wait()
        task.cancel()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.was_left.wait()
        except TimeoutError:
            return False
        return True


async def test_a_cancelled_request_to_the_api_server_closes_its_socket() -> None:
    mute = Mute()
    async with (
        mute.serving() as url,
        ApiClient(ApiAccess(url, ssl.create_default_context())) as client,
    ):
        assert await mute.is_left_by(client.get("/api"))


async def test_a_cancelled_request_to_a_provider_closes_its_socket() -> None:
    mute = Mute()
    async with mute.serving() as url, make_http() as http:
        assert await mute.is_left_by(http.get(url))
