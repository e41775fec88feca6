"""Clean-up after Ctrl-C and after SIGTERM, which `timeout` and CI runners send."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143  # exit statuses of shells after SIGINT and SIGTERM


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; code that cleans up after Ctrl-C handles it too."""


def exit_status_of(ended: KeyboardInterrupt) -> int:
    """Return the exit status of a command that this interrupt ended."""
    return TERMINATED if isinstance(ended, Terminated) else INTERRUPTED


@contextmanager
def cancelling_asyncio() -> Iterator[None]:
    """Let Ctrl-C and the first SIGTERM cancel asyncio.run in the block, so clean-up completes.

    Raises Terminated after SIGTERM. Restores SIGINT, which background commands of a shell without
    job control ignore.
    """
    is_terminated = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal is_terminated
        is_terminated = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.raise_signal(signal.SIGINT)

    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except KeyboardInterrupt as ended:
        if is_terminated:
            raise Terminated from ended
        raise
    finally:
        signal.signal(signal.SIGINT, kept)
        signal.signal(signal.SIGTERM, before)


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
