"""Requests' bodies, read up to a limit: of one, and of all large ones that are read at a time."""

import asyncio

from starlette.types import Receive, Scope

# A body up to this always finds room, whoever else sends: the number of connections bounds them.
# 512 that stop there hold 32 MiB, the buffers of TLS not counted in.
SMALL_BYTES = 64 * 2**10
_MOST_DIGITS = 18  # of a Content-Length; int() itself refuses thousands


class BodyTooLarge(Exception):
    """The body is larger than we read."""


class TooManyBodies(Exception):
    """So much is being read that this body, which has been read longest, had to go."""


class BadHeader(Exception):
    """A header says that the body cannot be had."""


class GoneAway(Exception):
    """The caller hung up before its body was complete."""


class Bodies:
    """Reads bodies; what is read of all that are not complete takes a bounded piece of memory."""

    def __init__(self, most_bytes: int, most_together_bytes: int) -> None:
        """Give all bodies of more than 64 KiB `most_together_bytes` between them."""
        self.most_bytes = most_bytes
        self._most_together_bytes = most_together_bytes
        self._sizes: dict[asyncio.Timeout, int] = {}  # of those being read, the longest first

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Return a request's body.

        Raises BodyTooLarge, TooManyBodies, BadHeader or GoneAway, the rest unread: the connection
        cannot be used again.
        """
        self._check(scope)
        patience = asyncio.timeout(None)  # runs out when another needs the room
        self._sizes[patience] = 0
        try:
            async with patience:
                return await self._pieces(patience, receive)
        except TimeoutError:
            raise TooManyBodies from None
        finally:
            self._sizes.pop(patience, None)

    async def _pieces(self, own: asyncio.Timeout, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneAway
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self.most_bytes:
                raise BodyTooLarge
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if own not in self._sizes:  # ousted, and not yet told
                raise TooManyBodies
            self._sizes[own] = size
            if size > SMALL_BYTES:
                self._make_room(own)

    def _make_room(self, own: asyncio.Timeout) -> None:
        """Oust those that have been read longest until the large ones fit."""
        large = [each for each, size in self._sizes.items() if size > SMALL_BYTES]
        together = sum(self._sizes[each] for each in large)
        for longest in large:
            if together <= self._most_together_bytes:
                return
            together -= self._sizes.pop(longest)
            if longest is own:
                raise TooManyBodies
            longest.reschedule(0.0)

    def _check(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"upgrade":  # httptools takes the body for the other protocol's
                raise BadHeader("Upgrade is not supported: send the request as plain HTTP/1.1")
            if name != b"content-length":
                continue
            if not value.isdigit():
                raise BadHeader(f"Content-Length {value[:20]!r} is not a number of bytes")
            if len(value) > _MOST_DIGITS or int(value) > self.most_bytes:
                raise BodyTooLarge
