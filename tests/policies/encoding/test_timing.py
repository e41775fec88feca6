"""What all heads are told of time: of day and week, until the deadline, and against the day."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.objects.green_policy import BUILT_IN
from greensched_policies.costs.late_runs import late_share
from greensched_policies.encoding.timing import (
    MOST_SLACK_H,
    TIMING_FEATURES,
    USUAL_ON_TIME_TARGET,
    USUAL_RUNTIME_ERROR,
    Timing,
    deadline_margin,
    relative_to_day,
    timing_columns,
)

HOUR_S = 3600.0
THURSDAY_S = 7 * 86_400.0  # a week after the epoch, at midnight
NAN = math.nan


def told(
    now_s: float = THURSDAY_S, left_s: float = math.inf, runtime_s: float = HOUR_S
) -> dict[str, float]:
    found = timing_columns(Timing(now_s, left_s, 0.3, 0.999), runtime_s)
    return dict(zip(TIMING_FEATURES, map(float, found), strict=True))


@pytest.mark.parametrize(
    ("left_s", "slack_h"),
    [
        pytest.param(-HOUR_S, 0.0, id="late"),
        pytest.param(HOUR_S, 0.0, id="just-in-time"),
        pytest.param(3 * HOUR_S, 2.0, id="two-hours"),
        pytest.param(math.inf, MOST_SLACK_H, id="no-deadline"),
    ],
)
def test_slack_is_what_the_run_leaves_of_the_time_until_the_deadline(
    left_s: float, slack_h: float
) -> None:
    assert told(left_s=left_s)["log_slack"] == pytest.approx(math.log1p(slack_h))


def test_the_target_is_told_in_nines_and_the_error_as_it_is() -> None:
    assert told()["on_time_nines"] == pytest.approx(3.0)
    assert told()["runtime_error"] == 0.3


@pytest.mark.parametrize(
    ("after_h", "day", "week"),
    [
        pytest.param(0, (0, 1), (0, 1), id="thursday-midnight"),
        pytest.param(6, (1, 0), None, id="in-the-morning"),
        pytest.param(12, (0, -1), None, id="noon"),
        pytest.param(84, None, (0, -1), id="half-a-week-later"),
        pytest.param(168, (0, 1), (0, 1), id="a-week-later"),
    ],
)
def test_time_goes_round_in_a_day_and_in_a_week(
    after_h: int, day: tuple[int, int] | None, week: tuple[int, int] | None
) -> None:
    found = told(THURSDAY_S + after_h * HOUR_S)
    for name, wanted in (("day", day), ("week", week)):
        if wanted is not None:
            assert (found[f"{name}_sin"], found[f"{name}_cos"]) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "day", "relative"),
    [
        pytest.param(50.0, 100.0, 0.5, id="half-as-dirty"),
        pytest.param(-50.0, 100.0, -0.5, id="paid-to-run"),
        pytest.param(-50.0, -100.0, -0.5, id="on-a-day-below-zero"),
        pytest.param(900.0, 100.0, 4.0, id="bounded"),
        pytest.param(50.0, NAN, 1.0, id="no-forecast"),
        pytest.param(NAN, 100.0, 1.0, id="no-value"),
        pytest.param(50.0, 0.0, 1.0, id="a-day-of-nothing"),
    ],
)
def test_carbon_and_price_are_told_relative_to_the_coming_day(
    value: float, day: float, relative: float
) -> None:
    assert relative_to_day(value, day) == relative


@given(st.floats(-1e4, 1e7), st.floats(1.0, 1e6), st.floats(0.0, 3.0))
def test_the_margin_is_safe_where_hardly_any_run_is_late(
    left_s: float, runtime_s: float, error: float
) -> None:
    margin = float(deadline_margin(left_s, runtime_s, error))
    assert -1.0 <= margin <= 1.0
    if error >= 0.05 and left_s >= 1.0:
        late = late_share(left_s, runtime_s, error)
        assert (margin > 0.0) == (late < 0.5) or late == pytest.approx(0.5, abs=1e-6)
        assert margin < 1.0 or late < 1e-6


def test_who_says_nothing_gets_the_defaults_of_a_green_policy() -> None:
    assert BUILT_IN.on_time_target == pytest.approx(USUAL_ON_TIME_TARGET)
    assert BUILT_IN.runtime_error == pytest.approx(USUAL_RUNTIME_ERROR)
