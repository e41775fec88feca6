"""When a decision is made, and how much time its work has: features that all heads share.

All functions stay within numba's subset.
"""

from typing import Any, NamedTuple

import numpy as np

from greensched_core.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

USUAL_ON_TIME_TARGET = 0.995  # where nobody says another: the default of a GreenPolicy
USUAL_RUNTIME_ERROR = 0.2  # likewise

TIMING_FEATURES = (
    "log_slack",  # ln(1 + hours until the deadline beyond the expected runtime)
    "runtime_error",  # standard deviation of ln(true / expected runtime)
    "on_time_nines",  # −log10(1 − share of runs that must end in time): 99 % is 2
    "day_sin",  # of the time since midnight UTC, a day being a circle
    "day_cos",
    "week_sin",  # of the time since Thursday 0:00 UTC, a week being a circle
    "week_cos",
)
MOST_SLACK_H = 672.0  # four weeks: more is as good as no deadline
MOST_RELATIVE = 4.0  # bounds what is relative to the coming day
MOST_MARGIN = 5.0  # standard deviations; a deadline so far away is not missed
_LEAST_ERROR = 0.05  # no runtime is known better
_LEAST_MAGNITUDE = 1e-30
_SECONDS_PER_WEEK = 7.0 * SECONDS_PER_DAY


class Timing(NamedTuple):
    """When B decisions are made, and how much time their work has: each [B], or a number."""

    now_s: Any  # seconds since the epoch
    left_s: Any  # until the deadline; infinite without one
    runtime_error: Any  # standard deviation of ln(true / expected runtime)
    on_time_target: Any  # 0..1, below 1


def timing_columns(found: Timing, runtime_s: Any) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return the TIMING_FEATURES of work with an expected runtime, each [B] or a number."""
    slack_h = (found.left_s - runtime_s) / SECONDS_PER_HOUR
    day = found.now_s * (2.0 * np.pi / SECONDS_PER_DAY)
    week = found.now_s * (2.0 * np.pi / _SECONDS_PER_WEEK)
    return (
        np.log1p(np.minimum(np.maximum(slack_h, 0.0), MOST_SLACK_H)),
        found.runtime_error,
        -np.log10(1.0 - found.on_time_target),
        np.sin(day),
        np.cos(day),
        np.sin(week),
        np.cos(week),
    )


def relative_to_day(value: float, day: float) -> float:
    """Return carbon or a price relative to its magnitude over a coming day, −4 to 4.

    The result is 1 where anything is not known, or the day's is nothing.
    """
    magnitude = abs(day)
    if np.isnan(value) or not magnitude > _LEAST_MAGNITUDE:  # nor if it is not a number
        return 1.0
    return min(max(value / magnitude, -MOST_RELATIVE), MOST_RELATIVE)


def deadline_margin(left_s: Any, runtime_s: Any, runtime_error: Any) -> Any:
    """Return how surely runs end in time: −1 is late, 1 is safe, 0 is as likely as not.

    It is the number of standard deviations, over MOST_MARGIN, by which a run may take longer than
    expected. Runtimes are log-normal, as in `planning.lateness`.
    """
    room = np.log(np.maximum(left_s, 1.0) / runtime_s) / np.maximum(runtime_error, _LEAST_ERROR)
    return np.minimum(np.maximum(room / MOST_MARGIN, -1.0), 1.0)
