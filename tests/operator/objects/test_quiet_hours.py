"""Quiet hours at their boundaries, over the days on which clocks change, and as invariants."""

import math
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.objects.quiet_fields import EVERY_DAY
from greensched_operator.objects.quiet_hours import QUIET_HOURS, QuietHours, QuietWindow

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata",
                                     "Australia/Lord_Howe", "Pacific/Apia")]  # fmt: skip
MONDAY, FRIDAY = 0, 4
SUNDAY, OTHER_DAYS = frozenset({6}), frozenset(range(6))


def minute(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def quiet(begin: str, end: str, days: frozenset[int] = EVERY_DAY) -> QuietHours:
    return QuietHours((QuietWindow(minute(begin), minute(end), BERLIN, days),))


def at(text: str) -> float:
    """Return an instant; without an offset it is Berlin's time."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=BERLIN)).timestamp()


NIGHT = quiet("22:00", "06:00")


@pytest.mark.parametrize(
    ("hours", "now", "is_quiet"),
    [
        pytest.param(NIGHT, "2026-01-14T21:59:59", False, id="before-it-begins"),
        pytest.param(NIGHT, "2026-01-14T22:00:00", True, id="begins-on-time"),
        pytest.param(NIGHT, "2026-01-15T00:00:00", True, id="across-midnight"),
        pytest.param(NIGHT, "2026-01-15T05:59:59", True, id="until-its-end"),
        pytest.param(NIGHT, "2026-01-15T06:00:00", False, id="ends-on-time"),
        pytest.param(NIGHT, "2026-07-14T21:30:00+00:00", True, id="by-the-zones-summer-time"),
        pytest.param(NIGHT, "2026-01-14T20:30:00+00:00", False, id="by-the-zones-winter-time"),
        pytest.param(quiet("00:00", "24:00"), "2026-01-14T23:59:59", True, id="a-whole-day"),
        pytest.param(QuietHours(), "2026-01-14T00:00:00", False, id="no-windows"),
        pytest.param(
            quiet("22:00", "06:00", frozenset({FRIDAY})), "2026-01-17T03:00:00", True,
            id="fridays-night-ends-on-saturday",
        ),
        pytest.param(
            quiet("22:00", "06:00", frozenset({FRIDAY})), "2026-01-16T03:00:00", False,
            id="thursdays-night-is-not-fridays",
        ),
    ],
)  # fmt: skip
def test_it_is_quiet_from_the_first_second_to_before_the_last(
    hours: QuietHours, now: str, is_quiet: bool
) -> None:
    assert hours.is_quiet(at(now)) is is_quiet


@pytest.mark.parametrize(
    ("hours", "begin", "end"),
    [
        # 2026-03-29: 02:00 CET is 03:00 CEST, at 01:00 UTC.
        pytest.param(
            NIGHT, "2026-03-28T22:00+01:00", "2026-03-29T06:00+02:00", id="spring-night-is-short"
        ),
        pytest.param(
            quiet("02:30", "05:00"), "2026-03-29T01:00+00:00", "2026-03-29T05:00+02:00",
            id="spring-begins-with-the-skipped-hours-end",
        ),
        pytest.param(
            quiet("00:30", "02:30"), "2026-03-29T00:30+01:00", "2026-03-29T01:00+00:00",
            id="spring-ends-with-the-skipped-hours-begin",
        ),
        # 2026-10-25: 03:00 CEST is 02:00 CET, at 01:00 UTC.
        pytest.param(
            NIGHT, "2026-10-24T22:00+02:00", "2026-10-25T06:00+01:00", id="autumn-night-is-long"
        ),
        pytest.param(
            quiet("02:30", "05:00"), "2026-10-25T02:30+02:00", "2026-10-25T05:00+01:00",
            id="autumn-begins-in-the-first-of-two-hours",
        ),
        pytest.param(
            quiet("00:30", "02:30"), "2026-10-25T00:30+02:00", "2026-10-25T02:30+01:00",
            id="autumn-ends-in-the-second-of-two-hours",
        ),
    ],
)  # fmt: skip
def test_a_night_on_which_clocks_change_stays_one_piece(
    hours: QuietHours, begin: str, end: str
) -> None:
    first, last = at(begin), at(end)
    assert not hours.is_quiet(first - 1.0)
    assert hours.spans(first - 1.0, last + 1.0) == ((first, last),)
    assert hours.next_allowed(first) == last
    assert hours.next_allowed(last - 1.0) == last


def test_hours_that_a_day_skips_whole_are_not_quiet_on_it() -> None:
    hours, noon = quiet("02:00", "03:00"), at("2026-03-28T12:00")
    assert hours.spans(noon, noon + 86_400.0) == ()
    assert len(hours.spans(noon - 86_400.0, noon)) == 1


def test_windows_that_touch_are_passed_together() -> None:
    hours = QuietHours((*quiet("20:00", "22:00").windows, *NIGHT.windows))
    assert hours.next_allowed(at("2026-01-14T20:30")) == at("2026-01-15T06:00")
    assert hours.spans(at("2026-01-14T12:00"), at("2026-01-15T12:00")) == (
        (at("2026-01-14T20:00"), at("2026-01-15T06:00")),
    )


def test_where_every_hour_is_quiet_nothing_is_ever_allowed() -> None:
    assert quiet("00:00", "24:00").next_allowed(at("2026-01-14T12:00")) == math.inf
    only_mondays = quiet("00:00", "24:00", frozenset({MONDAY}))
    assert only_mondays.next_allowed(at("2026-01-12T12:00")) == at("2026-01-13T00:00")


def test_an_hour_of_the_week_is_found_also_when_clocks_skip_it_once() -> None:
    parts = [("00:00", "24:00", OTHER_DAYS), ("00:00", "02:00", SUNDAY), ("03:00", "24:00", SUNDAY)]
    hours = QuietHours(tuple(window for part in parts for window in quiet(*part).windows))
    assert hours.next_allowed(at("2026-03-15T03:00")) == at("2026-03-22T02:00")
    assert hours.next_allowed(at("2026-03-22T03:00")) == at("2026-04-05T02:00")


windows = st.builds(
    lambda begin, length, zone, days: QuietWindow(
        begin, (begin + length) % 1440 or 1440, zone, frozenset(days)
    ),
    st.integers(0, 1439),
    st.integers(1, 1439),
    st.sampled_from(ZONES),
    st.sets(st.integers(0, 6), min_size=1),
)
several = st.lists(windows, max_size=4).map(lambda some: QuietHours(tuple(some)))
instants = st.floats(0.0, 4e9)  # 1970 to 2096


@given(several, instants)
def test_the_next_instant_allowed_is_never_quiet_and_never_past(
    hours: QuietHours, now: float
) -> None:
    allowed = hours.next_allowed(now)
    if allowed < math.inf:
        assert allowed >= now
        assert not hours.is_quiet(allowed)
        assert (allowed == now) is not hours.is_quiet(now)


@given(windows, instants)
def test_whenever_the_wall_clock_reads_a_time_within_it_is_quiet(
    window: QuietWindow, now: float
) -> None:
    local = datetime.fromtimestamp(now, window.zone)
    reads, today = local.hour * 60 + local.minute, local.weekday()
    if window.from_minute < window.to_minute:
        within = window.from_minute <= reads < window.to_minute and today in window.days
    else:
        yesterday = (local.date() - timedelta(days=1)).weekday()
        evening = reads >= window.from_minute and today in window.days
        within = evening or (reads < window.to_minute and yesterday in window.days)
    if within:
        assert QuietHours((window,)).is_quiet(now)


@given(several, instants, st.floats(0.0, 2e6))
def test_spans_are_in_order_apart_and_say_what_each_instant_says(
    hours: QuietHours, begin: float, length: float
) -> None:
    spans = hours.spans(begin, begin + length)
    assert all(one.end < other.begin for one, other in zip(spans, spans[1:], strict=False))
    assert all(begin <= span.begin < span.end <= begin + length for span in spans)
    for moment in (begin + length * share for share in (0.0, 0.3, 0.7)):
        if moment < begin + length:
            within = any(span.begin <= moment < span.end for span in spans)
            assert within == hours.is_quiet(moment)


def test_hours_that_are_always_quiet_in_summer_only_are_one_span_there() -> None:
    """In winter the hour before six in Berlin is free; the plan must not take July for it."""
    windows = [{"from": "06:00", "to": "23:00", "timeZone": "Europe/Berlin"},
               {"from": "21:00", "to": "04:00", "timeZone": "UTC"}]  # fmt: skip
    hours = QUIET_HOURS.read(windows, "quietHours")
    assert hours.next_allowed(at("2026-01-14T06:00:00")) < math.inf
    assert hours.next_allowed(at("2026-07-14T06:00:00")) == math.inf
    (begin_s,), (end_s,) = hours.spans_ahead(at("2026-07-14T06:00:00"))
    assert begin_s <= at("2026-07-14T06:00:00") < at("2026-07-28T06:00:00") <= end_s
