"""Connections whose TLS handshake is not complete: limits of time, number and bytes for them too.

A loop that accepts TLS itself tells of a connection only after its handshake. So each is accepted
plainly, enters the gate, and begins TLS then.
"""

import asyncio
import ssl
from collections.abc import Callable

from greensched_core.connections import Connection, Gate, Refusal

HANDSHAKE_S = 5.0
# A caller's hello with keys for post-quantum ciphers has 2 KiB, four certificates of his have 8.
MOST_HANDSHAKE_BYTES = 32 * 2**10


class Handshake(asyncio.Protocol):
    """One accepted connection until TLS is agreed on; then `make_connection`'s takes over.

    It stands between the transport and the loop's own TLS, and counts what comes.
    """

    def __init__(
        self, context: ssl.SSLContext, make_connection: Callable[[], Connection], gate: Gate
    ) -> None:
        self._context = context
        self._make_connection = make_connection
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._tls: asyncio.BufferedProtocol | None = None  # the loop's own
        self._shaking: asyncio.Task[None] | None = None
        self._before_tls = b""
        self._heard_bytes = 0

    def connection_made(  # type: ignore[override]  # as uvicorn's
        self, transport: asyncio.Transport
    ) -> None:
        """Enter the gate, and begin TLS."""
        self.transport = transport
        self._gate.admit(self)
        self._shaking = self._loop.create_task(self._shake())
        self._loop.call_soon(self._stand_between)  # `start_tls` has set its protocol by then

    async def _shake(self) -> None:
        early = _Early()
        tls: asyncio.Transport | None = None
        try:
            if not self.transport.is_closing():
                async with asyncio.timeout(HANDSHAKE_S):
                    tls = await self._loop.start_tls(
                        self.transport, early, self._context, server_side=True
                    )
        except TimeoutError:
            self._refuse()
        except OSError:
            pass  # he left, speaks no TLS, or shows no certificate that we know
        finally:
            self._gate.leave(self)
            if tls is None or self.transport.is_closing():
                self.transport.abort()
            else:
                self._hand_over(tls, early)

    def _stand_between(self) -> None:
        protocol = self.transport.get_protocol()
        if protocol is not self and not self.transport.is_closing():
            self._tls = protocol  # type: ignore[assignment]  # uvloop's is one by its methods
            self.transport.set_protocol(self)
            self._loop.call_soon(self._feed, self._before_tls)  # when it has begun

    def _hand_over(self, tls: asyncio.Transport, early: "_Early") -> None:
        assert self._tls is not None  # without it nothing was agreed on
        self.transport.pause_reading()  # a loop reads in another way for each kind of protocol
        self.transport.set_protocol(self._tls)
        self.transport.resume_reading()
        connection = self._make_connection()
        tls.set_protocol(connection)
        connection.connection_made(tls)
        if early.heard:
            connection.data_received(bytes(early.heard))

    def _refuse(self) -> None:
        if self in self._gate.inside:
            self._gate.leave(self)
            self._gate.count(Refusal.HANDSHAKE)
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Give to TLS what has come; beyond the most bytes it must have been the last."""
        self._heard_bytes += len(data)
        if self._tls is None:
            self._before_tls += data
        else:
            self._feed(data)
        if self._heard_bytes > MOST_HANDSHAKE_BYTES:
            self._loop.call_soon(self._refuse)  # where it was the last, that is known by then

    def _feed(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._tls is not None:
            buffer = memoryview(self._tls.get_buffer(len(rest)))
            piece = rest[: len(buffer)]
            buffer[: len(piece)] = piece
            self._tls.buffer_updated(len(piece))
            rest = rest[len(piece) :]

    def eof_received(self) -> bool | None:
        """He says no more."""
        return self._tls.eof_received() if self._tls is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        """He is gone."""
        if self._tls is not None:
            self._tls.connection_lost(exc)

    def pause_writing(self) -> None:
        """He reads too slowly."""
        if self._tls is not None:
            self._tls.pause_writing()

    def resume_writing(self) -> None:
        """He has read on."""
        if self._tls is not None:
            self._tls.resume_writing()


class _Early(asyncio.Protocol):
    """Keeps what comes with the handshake's last bytes, before a connection is there to take it."""

    def __init__(self) -> None:
        self.heard = bytearray()

    def data_received(self, data: bytes) -> None:
        """Keep it."""
        self.heard += data
