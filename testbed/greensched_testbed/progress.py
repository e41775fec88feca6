"""Shows progress in one line on stderr."""

import shutil
import sys
import time
from typing import Self

_PLAIN_EVERY_S = 20.0


class LiveLine:
    """A line that changes in place on a terminal, and is repeated at intervals elsewhere."""

    def __init__(self, plain_every_s: float = _PLAIN_EVERY_S) -> None:
        """`plain_every_s`: interval at which the state is repeated without a terminal."""
        self._is_terminal = sys.stderr.isatty()
        self._shown = False
        self._plain_at = time.monotonic()
        self._plain_every_s = plain_every_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def say(self, text: str) -> None:
        """Write a permanent line."""
        self._clear()
        print(text, file=sys.stderr, flush=True)

    def update(self, text: str) -> None:
        """Show the current state."""
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[2K{text[:width]}", end="", file=sys.stderr, flush=True)
            self._shown = True
        elif time.monotonic() - self._plain_at > self._plain_every_s:
            self._plain_at = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
            self._shown = False
