"""Limits on the time of a request and on the number of connections.

uvicorn lacks such limits (Kludex/uvicorn#157): its keep-alive timeout stops at the first byte, and
its `limit_concurrency` answers the next request of an idle connection with an error.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_S = 5.0  # from a request's first byte to its last; far above any caller's timeout
MOST_HEAD_BYTES = 64 * 2**10  # of a request, without its body
MOST_CONNECTIONS = 512  # API servers review some hundred objects at a time
_LINGER_S = 1.0  # for the caller to read our last response


class Refusal(StrEnum):
    """Why a connection was closed; a counter has one label value for each."""

    LATE = "late"  # the request was not complete in time
    HANDSHAKE = "handshake"  # the TLS handshake was not complete in time, or too long
    LONG_HEAD = "long-head"
    CROWDED = "crowded"  # too many connections; this one waited longest for its caller
    UNREAD = "unread"  # the caller does not read the response


_RESPONSES = {
    Refusal.LATE: b"HTTP/1.1 408 Request Timeout\r\n",
    Refusal.LONG_HEAD: b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
}


class Entrant(Protocol):
    """A connection, also one whose TLS handshake is not complete."""

    transport: asyncio.Transport


@dataclass(eq=False)
class ConnectionGate:
    """The connections of one server; `waiting`: those that wait for their caller, oldest first."""

    count: Callable[[Refusal], None]
    most: int = MOST_CONNECTIONS
    inside: set[Entrant] = field(default_factory=set)
    waiting: dict[Entrant, None] = field(default_factory=dict)

    def admit(self, connection: Entrant) -> None:
        """Admit a connection; if there are too many, abort the one that waits longest."""
        self.inside.add(connection)
        self.waiting[connection] = None
        if len(self.inside) > self.most:
            oldest = next(iter(self.waiting))
            self.leave(oldest)  # `connection_lost` comes only one loop iteration later
            self.count(Refusal.CROWDED)
            oldest.transport.abort()

    def leave(self, gone: Entrant) -> None:
        """Forget a connection."""
        self.inside.discard(gone)
        self.waiting.pop(gone, None)


class Connection(HttpToolsProtocol):
    """A connection of uvicorn with limits."""

    def __init__(self, *arguments: Any, gate: ConnectionGate, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._gate = gate
        self._is_receiving = False  # a request has begun and is not complete
        self._body_bytes = 0
        self._head_bytes = 0  # of the incoming request, without its body
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # uvicorn's own signature
        self, transport: asyncio.Transport
    ) -> None:
        """Wait for a request."""
        super().connection_made(transport)
        self._gate.admit(self)
        # Some clients connect ahead of need: such a connection may idle as long as a kept one.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection and cancel its timers."""
        self._gate.leave(self)
        _cancel(self._late)
        _cancel(self._unread)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; the time limit of a request starts at its first byte."""
        if self.transport.is_closing():
            return
        body_before = self._body_bytes
        super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self._is_receiving:
            _cancel(self._late)
            self._late, self._head_bytes = None, 0
            return
        self._head_bytes += len(data) - (self._body_bytes - body_before)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(Refusal.LONG_HEAD)
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_S, self._refuse, Refusal.LATE)

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._is_receiving = True
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Count a piece of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        self._is_receiving = False
        self._gate.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, since this one is answered."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._gate.waiting[self] = None

    def pause_writing(self) -> None:
        """Start a timer, since the caller reads too slowly."""
        super().pause_writing()
        self._unread = self.loop.call_later(REQUEST_S, self._refuse, Refusal.UNREAD)

    def resume_writing(self) -> None:
        """Cancel the timer, since the caller reads again."""
        _cancel(self._unread)
        super().resume_writing()

    def _refuse(self, why: Refusal) -> None:
        if self.transport.is_closing():
            return
        self._gate.count(why)
        response = _RESPONSES.get(why)
        if response is not None and (self.cycle is None or not self._is_halfway_answered()):
            self.transport.write(response + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.close()
        self.loop.call_later(_LINGER_S, self.transport.abort)

    def _is_halfway_answered(self) -> bool:
        return self.cycle.response_started and not self.cycle.response_complete


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
