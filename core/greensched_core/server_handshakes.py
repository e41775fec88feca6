"""Limits of time, number and bytes for connections whose TLS handshake is not complete.

An event loop that accepts TLS reports a connection only after its handshake. So each connection is
accepted without TLS, enters the gate, and then begins TLS.
"""

import asyncio
import ssl
import struct
from collections.abc import Callable

from greensched_core.connections import Connection, ConnectionGate, Refusal

HANDSHAKE_S = 5.0
# A client hello with post-quantum keys has 2 KiB; four client certificates have 8 KiB.
MOST_HANDSHAKE_BYTES = 32 * 2**10
_READ_BEFORE_TLS_BYTES = 4 * 2**10
# RFC 8446, 4 and 5.1: type, version and length of a record; type and length of its first message.
_HELLO_HEAD = struct.Struct("!BHHBBH")
_HANDSHAKE_RECORD, _CLIENT_HELLO = 22, 1


class Handshake(asyncio.BufferedProtocol):
    """An accepted connection during its TLS handshake; then `make_connection`'s takes over.

    It sits between the transport and the loop's TLS, and limits the bytes that a handshake reads.
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
        self._tls: asyncio.BufferedProtocol | None = None  # the loop's TLS protocol
        self._handshake_task: asyncio.Task[None] | None = None
        self._before_tls = b""
        self._buffer = memoryview(b"")  # receives the next bytes
        self._head = b""
        self._received_bytes = 0

    def connection_made(  # type: ignore[override]  # as uvicorn's
        self, transport: asyncio.Transport
    ) -> None:
        """Enter the gate and begin TLS."""
        self.transport = transport
        self._gate.admit(self)
        self._handshake_task = self._loop.create_task(self._run_handshake())
        self._loop.call_soon(self._insert_self)  # by then `start_tls` has set its protocol

    async def _run_handshake(self) -> None:
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
            pass  # the caller left, speaks no TLS, or has no valid certificate
        finally:
            self._gate.leave(self)
            if tls is None or self.transport.is_closing():
                self.transport.abort()
            else:
                self._hand_over(tls, early)

    def _insert_self(self) -> None:
        protocol = self.transport.get_protocol()
        if protocol is not self and not self.transport.is_closing():
            self._tls = protocol  # type: ignore[assignment]  # uvloop's protocol has these methods
            self.transport.set_protocol(self)
            self._loop.call_soon(self._feed, self._before_tls)  # once TLS has begun

    def _hand_over(self, tls: asyncio.Transport, early: "_Early") -> None:
        assert self._tls is not None  # without it the handshake cannot complete
        self.transport.set_protocol(self._tls)
        self.transport.resume_reading()  # paused if the handshake read the most bytes allowed
        connection = self._make_connection()
        tls.set_protocol(connection)
        connection.connection_made(tls)
        if early.received:
            connection.data_received(bytes(early.received))

    def _refuse(self) -> None:
        if self in self._gate.inside:
            self._gate.leave(self)
            self._gate.count(Refusal.HANDSHAKE)
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes, at most what the handshake may still read."""
        left = MOST_HANDSHAKE_BYTES + 1 - self._received_bytes
        if self._tls is None:
            self._buffer = memoryview(bytearray(min(left, _READ_BEFORE_TLS_BYTES)))
        else:
            self._buffer = memoryview(self._tls.get_buffer(min(sizehint, left)))[:left]
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass received bytes to TLS; beyond the limit the handshake must be complete."""
        received, self._buffer = self._buffer[:nbytes], memoryview(b"")
        self._received_bytes += nbytes
        self._head += received[: _HELLO_HEAD.size - len(self._head)]
        if _announced_bytes(self._head) > MOST_HANDSHAKE_BYTES:
            self._refuse()  # TLS would allocate all of it at once
        elif self._tls is None:
            self._before_tls += received
        else:
            self._tls.buffer_updated(nbytes)
        if self._received_bytes > MOST_HANDSHAKE_BYTES:
            self.transport.pause_reading()
            self._loop.call_soon(self._refuse)  # a complete handshake has left the gate by then

    def _feed(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._tls is not None:
            buffer = memoryview(self._tls.get_buffer(len(rest)))
            piece = rest[: len(buffer)]
            buffer[: len(piece)] = piece
            self._tls.buffer_updated(len(piece))
            rest = rest[len(piece) :]

    def eof_received(self) -> bool | None:
        """Pass the end of input to TLS."""
        return self._tls.eof_received() if self._tls is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the loss of the connection to TLS."""
        if self._tls is not None:
            self._tls.connection_lost(exc)

    def pause_writing(self) -> None:
        """Tell TLS that the caller reads too slowly."""
        if self._tls is not None:
            self._tls.pause_writing()

    def resume_writing(self) -> None:
        """Tell TLS that the caller reads again."""
        if self._tls is not None:
            self._tls.resume_writing()


def _announced_bytes(head: bytes) -> int:
    """Return the length that a client hello announces; 0 if unknown yet or not a hello."""
    if len(head) < _HELLO_HEAD.size:
        return 0
    record, _, _, message, high, low = _HELLO_HEAD.unpack(head)
    return high << 16 | low if (record, message) == (_HANDSHAKE_RECORD, _CLIENT_HELLO) else 0


class _Early(asyncio.Protocol):
    """Keeps bytes that arrive with the end of the handshake, until the connection takes over."""

    def __init__(self) -> None:
        self.received = bytearray()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes."""
        self.received += data
