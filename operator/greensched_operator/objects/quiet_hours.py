"""Hours in which no held work is started, by the wall clock of a time zone.

It is quiet whenever the wall clock reads a time within a window. Each window begins and ends at an
instant, so it stays one piece on a night on which the clocks change: a skipped hour is not quiet,
and a repeated hour is quiet both times.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from greensched_core.custom_resources.fields import SchemaRule, custom_field, group, many
from greensched_core.errors import BadInput
from greensched_operator.objects.quiet_fields import BEGIN, END, EVERY_DAY, SOME_DAYS, ZONE
from greensched_policies.costs.quiet_spans import QuietSpans, after_quiet

MOST_WINDOWS = 20
_WEEK = timedelta(days=7)
_LOOKED_AHEAD = 2 * _WEEK  # a change of the clocks may skip an hour of the week once
_YEAR = timedelta(days=366)
_DAY_S = 86_400.0
_A_MONDAY = 1_767_571_200.0  # 5 January 2026, 00:00 UTC
_NO_ENDS = "quiet hours need from and to, such as 22:00 and 06:00"


class TimeSpan(NamedTuple):
    """A span of time in seconds since the Unix epoch; the end is exclusive."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class QuietWindow:
    """A quiet time from one time of the day to another, on the next day if that is not later."""

    from_minute: int = custom_field(  # since midnight, 0..1439
        "from", BEGIN, "Local time at which they begin.", needed=_NO_ENDS
    )
    to_minute: int = custom_field(  # 0..1440, not from_minute
        "to",
        END,
        "Local time at which they end, on the next day if it is before `from`; may be `24:00`.",
        needed=_NO_ENDS,
    )
    zone: ZoneInfo = custom_field(
        "timeZone", ZONE, "Time zone of both, by its IANA name.", default="UTC"
    )
    days: frozenset[int] = custom_field(  # 0 is Monday
        "days", SOME_DAYS, "Days on which they begin.", unset=EVERY_DAY, absent="every day"
    )

    def span(self, day: date) -> TimeSpan:
        """Return the window that begins on that day; it is empty if the clocks skip it."""
        ends = day if self.to_minute > self.from_minute else day + timedelta(days=1)
        return TimeSpan(
            _instant(self.zone, day, self.from_minute, is_end=False),
            _instant(self.zone, ends, self.to_minute, is_end=True),
        )


@dataclass(frozen=True, slots=True)
class QuietHours:
    """All quiet windows of a policy; without windows it is never quiet."""

    windows: tuple[QuietWindow, ...] = ()

    def spans(self, begin: float, end: float) -> tuple[TimeSpan, ...]:
        """Return the quiet spans between two instants, sorted, merged and cut to fit.

        Times are seconds since the Unix epoch; those far from today raise ValueError or
        OverflowError.
        """
        joined: list[TimeSpan] = []
        for span in sorted(self._spans(begin, end)):
            if joined and span.begin <= joined[-1].end:
                joined[-1] = TimeSpan(joined[-1].begin, max(joined[-1].end, span.end))
            else:
                joined.append(span)
        return tuple(
            TimeSpan(max(span.begin, begin), min(span.end, end))
            for span in joined
            if max(span.begin, begin) < min(span.end, end)
        )

    def is_quiet(self, now: float) -> bool:
        """Return whether `now`, in seconds since the Unix epoch, is quiet."""
        return any(span.begin <= now < span.end for span in self._spans(now, now))

    def next_allowed(self, now: float) -> float:
        """Return the first instant from now on that is not quiet; infinity if it is always quiet.

        It looks two weeks ahead.
        """
        if not self.windows:
            return now
        spans, until = _spans_ahead(self, now // _DAY_S * _DAY_S)
        allowed = after_quiet(now, *spans)
        return math.inf if allowed >= until else allowed

    def spans_ahead(self, now: float) -> QuietSpans:
        """Return the quiet spans of the coming week and more.

        If it is always quiet meanwhile, work starts at its latest start.
        """
        if not self.windows:
            return QuietSpans()
        return _spans_ahead(self, now // _DAY_S * _DAY_S)[0]

    def _spans(self, begin: float, end: float) -> Iterator[TimeSpan]:
        for window in self.windows:
            day = datetime.fromtimestamp(begin, window.zone).date() - timedelta(days=2)
            last = datetime.fromtimestamp(end, window.zone).date()
            while day <= last:
                if day.weekday() in window.days:
                    span = window.span(day)
                    if span.end > span.begin:
                        yield span
                day += timedelta(days=1)


def _window(found: QuietWindow, where: str) -> QuietWindow:
    if found.from_minute == found.to_minute:
        raise BadInput(f"{where}: from and to are the same; a whole day is 00:00 to 24:00")
    return found


def _hours(windows: tuple[QuietWindow, ...], where: str) -> QuietHours:
    if _is_always_quiet(windows):
        raise BadInput(
            f"{where}: it is always quiet, so no held work could start; leave some hours out"
        )
    return QuietHours(windows)


@lru_cache(maxsize=64)  # each event of a policy asks again
def _is_always_quiet(windows: tuple[QuietWindow, ...]) -> bool:
    # Windows in several zones may leave an hour free only until the clocks of one of them change.
    length = _YEAR if len({window.zone.key for window in windows}) > 1 else _LOOKED_AHEAD
    whole = TimeSpan(_A_MONDAY, _A_MONDAY + length.total_seconds())
    return whole in QuietHours(windows).spans(*whole)


QUIET_HOURS = many(
    group(
        QuietWindow,
        _window,
        SchemaRule("has(self.from) && has(self.to)", _NO_ENDS),
        SchemaRule(
            "!has(self.from) || !has(self.to) || self.from != self.to",
            "from and to are the same time; for a whole day write from 00:00 to 24:00",
        ),
    ),
    MOST_WINDOWS,
    _hours,
)


@lru_cache(maxsize=256)  # all held workloads of a policy ask about the same few days
def _spans_ahead(quiet: QuietHours, begin: float) -> tuple[QuietSpans, float]:
    """Return the quiet spans from an instant on, and until when all are known."""
    until = begin + _DAY_S + _LOOKED_AHEAD.total_seconds()
    spans = quiet.spans(begin, until)
    begins, ends = tuple(span.begin for span in spans), tuple(span.end for span in spans)
    return QuietSpans(begins, ends), until


@lru_cache(maxsize=4096)  # each replan asks about the same few days
def _instant(zone: ZoneInfo, day: date, minute: int, *, is_end: bool) -> float:
    """Return when the wall clock of a zone reads a time; for an end, when it last does so.

    For a skipped time it is the instant of the change.
    """
    wall = datetime.combine(day, time.min) + timedelta(minutes=minute)
    early, late = sorted(wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if datetime.fromtimestamp(early, zone).replace(tzinfo=None) != wall:
        return _change(zone, early, late)
    return late if is_end else early


def _change(zone: ZoneInfo, before: float, after: float) -> float:
    """Return the whole second of the one change of the clocks between two instants."""
    low, high = int(before), int(after)
    offset = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return float(high)
