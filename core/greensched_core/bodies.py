"""Reads request bodies within two limits: of one body, and of all large bodies together."""

import asyncio

from starlette.types import Receive, Scope

# A body up to this size is always read: the number of connections bounds their memory. 512 bodies
# of this size take 32 MiB, without the TLS buffers.
SMALL_BYTES = 64 * 2**10
_MOST_DIGITS = 18  # of a Content-Length; int() refuses only thousands of digits


class BodyTooLarge(Exception):
    """The body exceeds the size limit."""


class TooManyBodies(Exception):
    """The bodies being read exceed the total limit, and this one has been read for longest."""


class BadHeader(Exception):
    """A header shows that the body cannot be read."""


class ClientDisconnected(Exception):
    """The caller disconnected before its body was complete."""


class Bodies:
    """Reads bodies; incomplete bodies together take a bounded amount of memory."""

    def __init__(self, most_bytes: int, most_together_bytes: int) -> None:
        """Limit a body to `most_bytes`, and all bodies above 64 KiB to `most_together_bytes`."""
        self.most_bytes = most_bytes
        self._most_together_bytes = most_together_bytes
        self._sizes: dict[asyncio.Timeout, int] = {}  # of bodies being read, oldest first

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Return a request's body.

        Raises BodyTooLarge, TooManyBodies, BadHeader or ClientDisconnected. The rest is then
        unread, so the connection cannot be used again.
        """
        self._check(scope)
        timeout = asyncio.timeout(None)  # rescheduled to expire when another body needs the memory
        self._sizes[timeout] = 0
        try:
            async with timeout:
                return await self._pieces(timeout, receive)
        except TimeoutError:
            raise TooManyBodies from None
        finally:
            self._sizes.pop(timeout, None)

    async def _pieces(self, own: asyncio.Timeout, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self.most_bytes:
                raise BodyTooLarge
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if own not in self._sizes:  # evicted, but its timeout has not fired yet
                raise TooManyBodies
            self._sizes[own] = size
            if size > SMALL_BYTES:
                self._make_room(own)

    def _make_room(self, own: asyncio.Timeout) -> None:
        """Evict the oldest large bodies until the rest fit."""
        large = [each for each, size in self._sizes.items() if size > SMALL_BYTES]
        total_bytes = sum(self._sizes[each] for each in large)
        for oldest in large:
            if total_bytes <= self._most_together_bytes:
                return
            total_bytes -= self._sizes.pop(oldest)
            if oldest is own:
                raise TooManyBodies
            oldest.reschedule(0.0)

    def _check(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"upgrade":  # httptools would treat the body as the other protocol's data
                raise BadHeader("Upgrade is not supported: send the request as plain HTTP/1.1")
            if name != b"content-length":
                continue
            if not value.isdigit():
                raise BadHeader(f"Content-Length {value[:20]!r} is not a number of bytes")
            if len(value) > _MOST_DIGITS or int(value) > self.most_bytes:
                raise BodyTooLarge
