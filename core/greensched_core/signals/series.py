"""Step series over time: each value holds until the next start; integrals are exact."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from greensched_core.units import SECONDS_PER_HOUR

_DAY_S = 86_400.0
_HOURS = 24
_ONLY_SLOT_S = SECONDS_PER_HOUR  # length of a single slot without an end
TimedValue = tuple[float, float, float]  # start, end, value


class SignalSeries:
    """One signal of one zone: known step values, and estimates around them.

    In gaps and after the end it gives the mean of the known values in the same UTC hour of day,
    else the last known value before. Before the start it gives the first value.
    """

    __slots__ = (
        "_cumulative",
        "_day",
        "_day_cumulative",
        "_estimated",
        "_starts",
        "_values",
        "end",
    )

    def __init__(
        self, slots: Sequence[tuple[float, float | None]], end: float | None = None
    ) -> None:
        """`slots` are (start in epoch seconds, value or None), by strictly ascending start.

        Raises ValueError if no slot has a value, or starts do not ascend.
        """
        if not any(value is not None for _, value in slots):
            raise ValueError("a series needs at least one value")
        if any(later[0] <= earlier[0] for earlier, later in pairwise(slots)):
            raise ValueError("starts must rise")
        starts = [start for start, _ in slots]
        self.end = _end(starts, end)
        edges = [*starts[1:], self.end]
        known = [
            (start, stop, value)
            for (start, value), stop in zip(slots, edges, strict=True)
            if value is not None
        ]
        hours = _hour_means(known)
        last = known[-1][2]
        self._starts = starts
        self._estimated = [value is None for _, value in slots]
        self._values = _filled(slots, hours)
        self._cumulative = [0.0, *accumulate(
            value * (stop - start)
            for start, stop, value in zip(starts, edges, self._values, strict=True)
        )]  # fmt: skip
        self._day = [last if mean is None else mean for mean in hours]
        self._day_cumulative = [0.0, *accumulate(mean * SECONDS_PER_HOUR for mean in self._day)]

    @property
    def start(self) -> float:
        """Epoch seconds of the first slot."""
        return self._starts[0]

    def at(self, when: float) -> float:
        """Return the value that holds at `when` (epoch seconds)."""
        if when >= self.end:
            return self._day[int(when % _DAY_S // SECONDS_PER_HOUR) % _HOURS]
        return self._values[max(bisect_right(self._starts, when) - 1, 0)]

    def extremes(self) -> tuple[float, float]:
        """Return the least and the greatest value, estimates included."""
        return min(*self._values, *self._day), max(*self._values, *self._day)

    def is_estimated_at(self, when: float) -> bool:
        """Return whether the value at `when` is an estimate and not a known slot."""
        if when >= self.end or when < self._starts[0]:
            return True
        return self._estimated[bisect_right(self._starts, when) - 1]

    def mean(self, begin: float, until: float) -> float:
        """Return the time-weighted mean over [begin, until); if empty, the value at `begin`."""
        if not until > begin:
            return self.at(begin)
        starts = self._starts
        first = bisect_right(starts, begin) - 1
        if first < 0 or until > self.end:
            return (self._integral(until) - self._integral(begin)) / (until - begin)
        last = bisect_right(starts, until, first) - 1
        if first == last:
            return self._values[first]
        total = self._cumulative[last] + self._values[last] * (until - starts[last])
        total -= self._cumulative[first] + self._values[first] * (begin - starts[first])
        return total / (until - begin)

    def _integral(self, when: float) -> float:
        """Return value x seconds from the first start to `when`; negative before it."""
        if when > self.end:
            return self._cumulative[-1] + self._day_integral(when) - self._day_integral(self.end)
        place = max(bisect_right(self._starts, when) - 1, 0)
        return self._cumulative[place] + self._values[place] * (when - self._starts[place])

    def _day_integral(self, when: float) -> float:
        """Integrate the estimated day from the midnight before the end, to keep numbers small."""
        days, second = divmod(when - self.end // _DAY_S * _DAY_S, _DAY_S)
        hour = min(int(second // SECONDS_PER_HOUR), _HOURS - 1)
        part = self._day[hour] * (second - hour * SECONDS_PER_HOUR)
        return days * self._day_cumulative[-1] + self._day_cumulative[hour] + part


def _end(starts: Sequence[float], end: float | None) -> float:
    if end is not None and end > starts[-1]:
        return end
    width_s = starts[-1] - starts[-2] if len(starts) > 1 else _ONLY_SLOT_S
    return starts[-1] + min(width_s, _DAY_S)


def _hour_means(known: Sequence[TimedValue]) -> list[float | None]:
    """Return the time-weighted mean of each UTC hour of day; None if no slot touches it."""
    sums, seconds = [0.0] * _HOURS, [0.0] * _HOURS
    for start, stop, value in known:
        for hour, held_s in _by_hour(start, stop):
            sums[hour] += value * held_s
            seconds[hour] += held_s
    return [
        total / held_s if held_s > 0 else None for total, held_s in zip(sums, seconds, strict=True)
    ]


def _by_hour(start: float, stop: float) -> list[tuple[int, float]]:
    """Split [start, stop) into (UTC hour of day, seconds); a day or longer counts as one day."""
    if stop - start >= _DAY_S:
        return [(hour, SECONDS_PER_HOUR) for hour in range(_HOURS)]
    parts = []
    first = math.floor(start / SECONDS_PER_HOUR)
    for hour in range(first, math.ceil(stop / SECONDS_PER_HOUR)):
        begin = max(start, hour * SECONDS_PER_HOUR)
        parts.append((hour % _HOURS, min(stop, (hour + 1) * SECONDS_PER_HOUR) - begin))
    return parts


def _filled(slots: Sequence[tuple[float, float | None]], hours: list[float | None]) -> list[float]:
    """Fill gaps with the mean of their hour of day, else the value before, else the next one."""
    values: list[float] = []
    before = next(value for _, value in slots if value is not None)
    for start, value in slots:
        if value is None:
            mean = hours[int(start % _DAY_S // SECONDS_PER_HOUR) % _HOURS]
            values.append(before if mean is None else mean)
        else:
            values.append(value)
            before = value
    return values
