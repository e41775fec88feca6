"""The history of the grid: carbon and price of each zone, recorded as they were valid."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from greensched_core.clock import Clock
from greensched_core.signals.chain import GridSignals

NOTED_EVERY_S = 5.0  # so that a new node's zone is known when the node's first pod starts
_KEPT_S = 8 * 86_400.0  # longer than a Job runs
_BEFORE_S = (
    2 * NOTED_EVERY_S
)  # before the first note, which counts there too: grids change by the quarter hour
_LONGEST_GAP_S = 300.0  # between two notes; in a longer gap the values are unknown

Known = tuple[float | None, float | None]  # carbon in g/kWh, price per MWh; None is no data
_UNKNOWN: Known = (None, None)


@dataclass(slots=True)
class _ZoneHistory:
    """Values of one zone; each is valid until the next start."""

    starts: list[float] = field(default_factory=list)
    values: list[Known] = field(default_factory=list)
    noted_s: float = -math.inf

    def note(self, at_s: float, known: Known) -> None:
        """Record the values that are valid now."""
        if self.starts and at_s - self.noted_s > _LONGEST_GAP_S:
            self._add(self.noted_s, _UNKNOWN)
        if not self.values or self.values[-1] != known:
            self._add(at_s, known)
        self.noted_s = at_s
        while len(self.starts) > 1 and self.starts[1] < at_s - _KEPT_S:
            del self.starts[0], self.values[0]

    def _add(self, at_s: float, known: Known) -> None:
        self.starts.append(at_s)
        self.values.append(known)

    def mean(self, begin_s: float, until_s: float) -> Known:
        """Return the means over a span; None where part of it is not known."""
        if self.starts and begin_s >= self.starts[0] - _BEFORE_S:
            begin_s = max(begin_s, self.starts[0])
        first = bisect_right(self.starts, begin_s) - 1
        if first < 0 or until_s > self.noted_s + _LONGEST_GAP_S:
            return _UNKNOWN
        if until_s <= begin_s:
            return self.values[first]
        totals: list[float | None] = [0.0, 0.0]
        for place in range(first, max(bisect_right(self.starts, until_s), first + 1)):
            end_s = self.starts[place + 1] if place + 1 < len(self.starts) else until_s
            valid_s = min(end_s, until_s) - max(self.starts[place], begin_s)
            if valid_s > 0:
                totals = [
                    None if total is None or value is None else total + value * valid_s
                    for total, value in zip(totals, self.values[place], strict=True)
                ]
        length_s = until_s - begin_s
        carbon, price = (None if total is None else total / length_s for total in totals)
        return carbon, price


KnownNow = Callable[[str, float], Known]  # of a zone at a time


def known_from(signals: GridSignals) -> KnownNow:
    """Return a function that returns a zone's values as decisions use them, with fallbacks."""

    def known(zone: str, now_s: float) -> Known:
        state = signals.zone(zone, now_s)
        return state.carbon.value, state.price.value

    return known


class GridHistory:
    """Remembers the past signals of all zones."""

    def __init__(self, known: KnownNow, clock: Clock) -> None:
        self._known = known
        self._clock = clock
        self._histories: dict[str, _ZoneHistory] = {}

    def note(self, zones: Iterable[str]) -> None:
        """Record the values that are valid in these zones now."""
        now_s = self._clock.now()
        for zone in zones:
            self._histories.setdefault(zone, _ZoneHistory()).note(now_s, self._known(zone, now_s))

    def mean(self, zone: str, begin_s: float, until_s: float) -> Known:
        """Return the mean carbon and price of a zone over a span; None is no data."""
        history = self._histories.get(zone)
        return _UNKNOWN if history is None else history.mean(begin_s, until_s)
