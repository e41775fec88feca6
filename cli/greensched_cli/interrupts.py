"""Ends by Ctrl-C and by SIGTERM, of `timeout` or a CI's runner: what was begun is cleaned up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143  # as shells say that SIGINT or SIGTERM ended a command


class Terminated(KeyboardInterrupt):
    """SIGTERM came; whoever cleans up after Ctrl-C does so after this."""


def status_of(ended: KeyboardInterrupt) -> int:
    """Return the exit status of a command that was ended so."""
    return TERMINATED if isinstance(ended, Terminated) else INTERRUPTED


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Have the first SIGTERM raise within; a second one would leave half of it, and is ignored."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
