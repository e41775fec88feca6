"""Connections whose TLS handshake is not complete: limits of time, number and bytes for them too.

A loop that accepts TLS itself tells of a connection only after its handshake. So each is accepted
plainly, enters the gate, and begins TLS then.
"""

import asyncio
import ssl
import struct
from collections.abc import Callable

from greensched_core.connections import Connection, ConnectionGate, Refusal

HANDSHAKE_S = 5.0
# A caller's hello with keys for post-quantum ciphers has 2 KiB, four certificates of his have 8.
MOST_HANDSHAKE_BYTES = 32 * 2**10
_READ_BEFORE_TLS_BYTES = 4 * 2**10
# RFC 8446, 4 and 5.1: a record's type, version and length; its first message's type and length.
_HELLO_HEAD = struct.Struct("!BHHBBH")
_HANDSHAKE_RECORD, _CLIENT_HELLO = 22, 1


class Handshake(asyncio.BufferedProtocol):
    """One accepted connection until TLS is agreed on; then `make_connection`'s takes over.

    It stands between the transport and the loop's own TLS, and reads no more than a handshake may
    have.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        make_connection: Callable[[], Connection],
        gate: ConnectionGate,
    ) -> None:
        self._context = context
        self._make_connection = make_connection
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._tls: asyncio.BufferedProtocol | None = None  # the loop's own
        self._shaking: asyncio.Task[None] | None = None
        self._before_tls = b""
        self._buffer = memoryview(b"")  # where the next bytes come
        self._head = b""
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
        self.transport.set_protocol(self._tls)
        self.transport.resume_reading()  # it is paused where what came with it was the most
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

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return room for what comes next: TLS's own, at most what a handshake may still have."""
        left = MOST_HANDSHAKE_BYTES + 1 - self._heard_bytes
        if self._tls is None:
            self._buffer = memoryview(bytearray(min(left, _READ_BEFORE_TLS_BYTES)))
        else:
            self._buffer = memoryview(self._tls.get_buffer(min(sizehint, left)))[:left]
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Give to TLS what has come; beyond the most bytes it must have been the last."""
        heard, self._buffer = self._buffer[:nbytes], memoryview(b"")
        self._heard_bytes += nbytes
        self._head += heard[: _HELLO_HEAD.size - len(self._head)]
        if _announced_bytes(self._head) > MOST_HANDSHAKE_BYTES:
            self._refuse()  # TLS would make room for all of it at once
        elif self._tls is None:
            self._before_tls += heard
        else:
            self._tls.buffer_updated(nbytes)
        if self._heard_bytes > MOST_HANDSHAKE_BYTES:
            self.transport.pause_reading()
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


def _announced_bytes(head: bytes) -> int:
    """Return the length that a hello says it has, 0 where that has not come or it is none."""
    if len(head) < _HELLO_HEAD.size:
        return 0
    record, _, _, message, high, low = _HELLO_HEAD.unpack(head)
    return high << 16 | low if (record, message) == (_HANDSHAKE_RECORD, _CLIENT_HELLO) else 0


class _Early(asyncio.Protocol):
    """Keeps what comes with the handshake's last bytes, before a connection is there to take it."""

    def __init__(self) -> None:
        self.heard = bytearray()

    def data_received(self, data: bytes) -> None:
        """Keep it."""
        self.heard += data
