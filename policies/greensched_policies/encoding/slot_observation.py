"""The arrays that a learned `when` policy sees: one row of features per candidate start.

`kernel/seeing_starts.py` fills them in, start by start. Values are divided by the mean of a
decision's candidates, as for `where`, so that a policy works on grids that it was not trained on.
Part of the same ENCODING_VERSION.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SLOT_FEATURES = (
    "wait",  # until the start, relative to the mean candidate's
    "runtime",  # expected in the candidate's zone, relative
    "carbon_at_start",  # relative
    "carbon_over_run",  # relative
    "price_at_start",  # relative to the mean of its magnitude
    "price_over_run",  # relative to the mean of its magnitude
    "weighted_over_run",  # money, carbon and time of the run, relative to the mean magnitude
    "busiest_over_run",  # highest share of the zone's cores that run or are planned; 1 is full
    "slack_used",  # the wait, as a share of the time that the run does not need before its deadline
    "deadline_margin",  # how surely the run ends in time: −1 is late, 1 is safe
    "carbon_of_day",  # over the run, relative to the mean of the zones' coming day
    "price_of_day",  # over the run, relative to the mean of the zones' coming day
    "carbon_of_now",  # carbon intensity times runtime, relative to those of a start now, at most 4
    "day_sin",  # of the start's time since midnight UTC, a day being a circle
    "day_cos",
)
(
    WAIT,
    RUNTIME,
    CARBON_AT_START,
    CARBON_OVER_RUN,
    PRICE_AT_START,
    PRICE_OVER_RUN,
    WEIGHTED_OVER_RUN,
    BUSIEST,
    SLACK_USED,
    DEADLINE_MARGIN,
    CARBON_OF_DAY,
    PRICE_OF_DAY,
    CARBON_OF_NOW,
    DAY_SIN,
    DAY_COS,
) = range(15)


class SlotObservation(NamedTuple):
    """The input of a learned `when` policy, float32; `slots` is feature-major in memory."""

    slots: npt.NDArray[np.float32]  # [B,S,15]
    context: npt.NDArray[np.float32]  # [B,15] CONTEXT_FEATURES, with the starts as candidates


class ComingDay(NamedTuple):
    """Forecast means over the coming day, of all zones with data; NaN: there is none."""

    carbon_g_per_kwh: float
    price_per_mwh: float
