"""Times as the clock on a user's wall shows them."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_cli.reading.local_times import LocalTimes
from greensched_core.signals.timestamps import parse_timestamp

BERLIN = ZoneInfo("Europe/Berlin")
NOW_S = parse_timestamp("2026-10-24T22:30:00Z")  # half past midnight of the 25th, summer time
LAST_S = parse_timestamp("9999-12-31T23:59:59Z")


@pytest.mark.parametrize(("at", "told"), [
    pytest.param("2026-10-24T23:00:00Z", "01:00", id="today-there"),
    pytest.param("2026-10-24T21:00:00Z", "24 Oct 23:00", id="yesterday-there"),
    pytest.param("2026-10-25T02:30:00Z", "03:30 CET", id="after-the-clock-change"),
    pytest.param("2027-01-01T00:00:00Z", "01 Jan 2027 01:00 CET", id="another-year"),
    pytest.param("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", id="a-year-that-berlin-lacks"),
])  # fmt: skip
def test_a_time_is_reported_with_what_differs_from_now(at: str, told: str) -> None:
    assert LocalTimes(NOW_S, BERLIN).short(parse_timestamp(at)) == told


@pytest.mark.parametrize(("away_s", "told"), [
    (12_000.0, "in 3h20m"), (0.4, "in 0s"), (-0.4, "in 0s"), (-0.6, "1s ago"), (-90.0, "1m30s ago"),
])  # fmt: skip
def test_a_distance_is_reported_from_now(away_s: float, told: str) -> None:
    assert LocalTimes(NOW_S, UTC).away(NOW_S + away_s) == told


def test_the_zone_is_named_with_its_distance_from_utc() -> None:
    assert LocalTimes(NOW_S, BERLIN).zone_text == "CEST (UTC+02:00)"
    assert LocalTimes(NOW_S, UTC).zone_text == "UTC"


@given(st.floats(-6e10, LAST_S), st.sampled_from([None, UTC, BERLIN]))
def test_no_time_that_an_annotation_can_hold_breaks_it(at_s: float, zone: ZoneInfo | None) -> None:
    times = LocalTimes(NOW_S, zone)
    assert times.short(at_s) and times.whole(at_s)


def test_no_time_is_reported_as_such() -> None:
    times = LocalTimes(NOW_S, UTC)
    assert times.short(None) == times.whole(None) == times.away(None) == "–"
