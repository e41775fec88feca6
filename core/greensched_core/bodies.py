"""Requests' bodies, read up to a limit: of one, and of all that are being read at a time."""

from starlette.types import Receive, Scope

_MOST_DIGITS = 18  # of a Content-Length; int() itself refuses thousands


class BodyTooLarge(Exception):
    """The body is larger than we read."""


class TooManyBodies(Exception):
    """So much is being read that this body must wait."""


class BadHeader(Exception):
    """A header says that the body cannot be had."""


class GoneAway(Exception):
    """The caller hung up before its body was complete."""


class Bodies:
    """Reads bodies; what is read of all that are not complete takes a bounded piece of memory."""

    def __init__(self, most_bytes: int, most_together_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._most_together_bytes = most_together_bytes
        self._together_bytes = 0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Return a request's body.

        Raises BodyTooLarge, TooManyBodies, BadHeader or GoneAway, the rest unread: the connection
        cannot be used again.
        """
        self._check(scope)
        chunks: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise GoneAway
                chunk = message.get("body", b"")
                size += len(chunk)
                self._together_bytes += len(chunk)
                if size > self.most_bytes:
                    raise BodyTooLarge
                if self._together_bytes > self._most_together_bytes:
                    raise TooManyBodies
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        finally:
            self._together_bytes -= size

    def _check(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"upgrade":  # httptools takes the body for the other protocol's
                raise BadHeader("Upgrade is not served here: send the request as HTTP/1.1")
            if name != b"content-length":
                continue
            if not value.isdigit():
                raise BadHeader(f"Content-Length is {value[:20]!r}: it must be a number of bytes")
            if len(value) > _MOST_DIGITS or int(value) > self.most_bytes:
                raise BodyTooLarge
