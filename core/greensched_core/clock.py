"""Clocks that components are given, so that they never call `time.time()` themselves."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Gives the time."""

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards, from an arbitrary start."""
        ...


class WallClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never go backwards, from an arbitrary start."""
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class ScaledClock:
    """A clock on which a day passes in minutes, the same in each process; for tests and replays.

    At the wall time `since_s` it shows `shows_s`; from there it runs `rate` times as fast.
    `monotonic` is not scaled, so that connection timeouts stay the same.
    """

    since_s: float  # seconds since the epoch
    shows_s: float  # seconds since the epoch
    rate: float

    def now(self) -> float:
        """Return seconds since the Unix epoch, scaled."""
        return self.shows_s + (time.time() - self.since_s) * self.rate

    def monotonic(self) -> float:
        """Return seconds that never go backwards, from an arbitrary start."""
        return time.monotonic()


@dataclass
class ManualClock:
    """A clock that moves only by `advance`, for tests and simulation."""

    time_s: float = 0.0

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        return self.time_s

    def monotonic(self) -> float:
        """Return the same seconds as `now`."""
        return self.time_s

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`; raise ValueError if that is backwards."""
        if seconds < 0:
            raise ValueError(f"the clock cannot go back by {-seconds} s")
        self.time_s += seconds
