"""The arrays that a learned `when` policy sees: one row of features per candidate start.

Values are divided by the mean of a decision's candidates, as for `where`, so that a policy works on
grids that it was not trained on. Part of the same ENCODING_VERSION.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    DecisionToMake,
    fill_context,
    make_relative,
    work_columns,
)
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.timing import (
    MOST_RELATIVE,
    Timing,
    all_relative_to_day,
    deadline_margin,
)

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
_RELATIVE = 7  # the number of relative features, which come first
_BUSIEST, _SLACK_USED, _MARGIN, _CARBON_OF_DAY, _PRICE_OF_DAY, _OF_NOW, _SIN, _COS = range(7, 15)


class SlotObservation(NamedTuple):
    """The input of a learned `when` policy, float32; `slots` is feature-major in memory."""

    slots: npt.NDArray[np.float32]  # [B,S,15]
    context: npt.NDArray[np.float32]  # [B,15] CONTEXT_FEATURES


class ComingDay(NamedTuple):
    """Forecast means over the coming day, of all zones with data; NaN: there is none."""

    carbon_g_per_kwh: Floats  # [B]
    price_per_mwh: Floats  # [B]


def encode_when(slots: SlotColumns, asked: DecisionToMake, day: ComingDay) -> SlotObservation:
    """Encode B decisions over S candidate starts each; every value of the result is finite.

    The context is that of the `where` head, with the starts as candidates.
    """
    batch, count = slots.wait_s.shape
    values = np.empty((batch, _RELATIVE, count))
    values[:, 0], values[:, 1] = slots.wait_s, slots.runtime_s
    values[:, 2], values[:, 3] = slots.carbon_at_start, slots.carbon_over_run
    values[:, 4], values[:, 5] = slots.price_at_start, slots.price_over_run
    values[:, 6] = slots.weighted_over_run + slots.completion
    make_relative(values)
    features = np.empty((batch, len(SLOT_FEATURES), count), dtype=np.float32)
    features[:, :_RELATIVE] = values
    features[:, _BUSIEST] = slots.busiest_over_run
    features[:, _CARBON_OF_DAY] = all_relative_to_day(slots.carbon_over_run, day.carbon_g_per_kwh)
    features[:, _PRICE_OF_DAY] = all_relative_to_day(slots.price_over_run, day.price_per_mwh)
    _fill_starts(slots, asked.timing, features)
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    shared = work_columns(asked.workload, asked.weights, True, asked.mean_memory, count)
    fill_context(shared, asked.timing, asked.workload.runtime_s, context)
    return SlotObservation(features.transpose((0, 2, 1)), context)


def _fill_starts(slots: SlotColumns, found: Timing, features: npt.NDArray[np.float32]) -> None:
    """Fill in what a start has to do with the deadline, a start now, and the time of day."""
    left_s = _column(found.left_s, slots.wait_s)
    now_s = _column(found.now_s, slots.wait_s)
    error = _column(found.runtime_error, slots.wait_s)
    spare_s = np.maximum(left_s - slots.runtime_s, 1.0)
    features[:, _SLACK_USED] = np.minimum(slots.wait_s / spare_s, 1.0)
    features[:, _MARGIN] = deadline_margin(left_s - slots.wait_s, slots.runtime_s, error)
    emitted = slots.carbon_over_run * slots.runtime_s
    of_now = emitted / np.maximum(emitted[:, :1], 1e-30)
    features[:, _OF_NOW] = np.minimum(of_now, MOST_RELATIVE)
    angle = (now_s + slots.wait_s) * (2.0 * np.pi / SECONDS_PER_DAY)
    features[:, _SIN], features[:, _COS] = np.sin(angle), np.cos(angle)


def _column(value: Any, like: Floats) -> Floats:
    """Return [B] or a number as a column, [B,1]."""
    column: Floats = (np.zeros(like.shape[0]) + value).reshape((like.shape[0], 1))
    return column
