"""Clean-up after Ctrl-C and after SIGTERM, which `timeout` and CI runners send."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143  # exit statuses of shells after SIGINT and SIGTERM


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; code that cleans up after Ctrl-C handles it too."""


def status_of(ended: KeyboardInterrupt) -> int:
    """Return the exit status of a command that this interrupt ended."""
    return TERMINATED if isinstance(ended, Terminated) else INTERRUPTED


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Raise Terminated in the block on the first SIGTERM; ignore others, so clean-up completes."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
