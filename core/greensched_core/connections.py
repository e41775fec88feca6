"""How long a caller may take, and how many may call at a time.

uvicorn has no such limits of its own (Kludex/uvicorn#157): its keep-alive time ends with the first
byte, and its `limit_concurrency` answers idle connections' next request with an error.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_S = 5.0  # from a request's first byte to its last; far beyond any caller's own limit
MOST_HEAD_BYTES = 64 * 2**10  # of a request beside its body
MOST_CONNECTIONS = 512  # API servers review some hundred objects at a time
_LINGERS_S = 1.0  # for the last word of ours to be read


class Refusal(StrEnum):
    """Why a connection was closed; a counter has one label value for each."""

    LATE = "late"  # its request was not complete in time
    HANDSHAKE = "handshake"  # its TLS handshake was not, or was too long
    LONG_HEAD = "long-head"
    CROWDED = "crowded"  # it had waited longest for its caller when there were too many
    UNREAD = "unread"  # its caller does not read what he asked for


_WORDS = {
    Refusal.LATE: b"HTTP/1.1 408 Request Timeout\r\n",
    Refusal.LONG_HEAD: b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
}


class Entrant(Protocol):
    """A connection, also one whose TLS handshake is not complete."""

    transport: asyncio.Transport


@dataclass(eq=False)
class ConnectionGate:
    """The connections of one server; those that wait for their caller, longest first."""

    count: Callable[[Refusal], None]
    most: int = MOST_CONNECTIONS
    inside: set[Entrant] = field(default_factory=set)
    waiting: dict[Entrant, None] = field(default_factory=dict)

    def admit(self, fresh: Entrant) -> None:
        """Let a connection in; of too many the one goes that has waited longest."""
        self.inside.add(fresh)
        self.waiting[fresh] = None
        if len(self.inside) > self.most:
            longest = next(iter(self.waiting))
            self.leave(longest)  # it is lost only a turn of the loop later
            self.count(Refusal.CROWDED)
            longest.transport.abort()

    def leave(self, gone: Entrant) -> None:
        """Forget a connection."""
        self.inside.discard(gone)
        self.waiting.pop(gone, None)


class Connection(HttpToolsProtocol):
    """One connection of uvicorn's, within limits."""

    def __init__(self, *arguments: Any, gate: ConnectionGate, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._gate = gate
        self._owes = False  # its caller has begun a request, and not come to its end
        self._body_bytes = 0
        self._beside_bytes = 0  # of the request that is coming, what is no body
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # uvicorn's own signature
        self, transport: asyncio.Transport
    ) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._gate.admit(self)
        # Some open one ahead of need: it may wait as long as one that is kept.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._gate.leave(self)
        _cancel(self._late)
        _cancel(self._unread)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come; the time of a request runs from its first byte."""
        if self.transport.is_closing():
            return
        body_before = self._body_bytes
        super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self._owes:
            _cancel(self._late)
            self._late, self._beside_bytes = None, 0
            return
        self._beside_bytes += len(data) - (self._body_bytes - body_before)
        if self._beside_bytes > MOST_HEAD_BYTES:
            self._refuse(Refusal.LONG_HEAD)
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_S, self._refuse, Refusal.LATE)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._owes = True
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """A piece of its body has come."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it has come."""
        self._owes = False
        self._gate.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered, and waits for the next one."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._gate.waiting[self] = None

    def pause_writing(self) -> None:
        """Its caller reads too slowly."""
        super().pause_writing()
        self._unread = self.loop.call_later(REQUEST_S, self._refuse, Refusal.UNREAD)

    def resume_writing(self) -> None:
        """Its caller has read on."""
        _cancel(self._unread)
        super().resume_writing()

    def _refuse(self, why: Refusal) -> None:
        if self.transport.is_closing():
            return
        self._gate.count(why)
        words = _WORDS.get(why)
        if words is not None and (self.cycle is None or not self._is_halfway_answered()):
            self.transport.write(words + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.close()
        self.loop.call_later(_LINGERS_S, self.transport.abort)

    def _is_halfway_answered(self) -> bool:
        return self.cycle.response_started and not self.cycle.response_complete


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
