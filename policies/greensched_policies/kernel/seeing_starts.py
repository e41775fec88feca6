"""What a learned `when` policy sees of candidate starts, start by start."""

import numpy as np

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    LEAST_MAGNITUDE,
    DecisionToMake,
    relative_scale,
)
from greensched_policies.encoding.slot_observation import (
    BUSIEST,
    CARBON_AT_START,
    CARBON_OF_DAY,
    CARBON_OF_NOW,
    CARBON_OVER_RUN,
    DAY_COS,
    DAY_SIN,
    DEADLINE_MARGIN,
    PRICE_AT_START,
    PRICE_OF_DAY,
    PRICE_OVER_RUN,
    RUNTIME,
    SLACK_USED,
    SLOT_FEATURES,
    WAIT,
    WEIGHTED_OVER_RUN,
    ComingDay,
)
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.timing import (
    MOST_RELATIVE,
    deadline_margin,
    relative_to_day,
)
from greensched_policies.kernel.filling import fill_relative, fill_shared
from greensched_policies.kernel.seeing_nodes import Singles

_RADIANS_PER_S = 2.0 * np.pi / SECONDS_PER_DAY

_relative_scale = compiled(relative_scale, inlined)
_relative_to_day = compiled(relative_to_day, inlined)
_deadline_margin = compiled(deadline_margin, inlined)


@fast
def encode_starts(
    slots: SlotColumns, asked: DecisionToMake, day: ComingDay
) -> tuple[Singles, Singles]:
    """Return features and context of B decisions over S candidate starts: see `fill_starts`."""
    batch, count = slots.wait_s.shape
    features = np.empty((batch, len(SLOT_FEATURES), count), np.float32)
    context = np.empty((batch, len(CONTEXT_FEATURES)), np.float32)
    fill_starts(slots, asked, day, features, context)
    return features, context


@borrowing
def fill_starts(
    slots: SlotColumns, asked: DecisionToMake, day: ComingDay, features: Singles, context: Singles
) -> None:
    """Fill in features [B,15,S] and context [B,15]; every value is finite.

    What is asked, and the coming day, are numbers: of all B decisions.
    """
    for row in range(features.shape[0]):
        own = features[row]
        fill_relative(slots.wait_s[row], own[WAIT])
        fill_relative(slots.runtime_s[row], own[RUNTIME])
        fill_relative(slots.carbon_at_start[row], own[CARBON_AT_START])
        fill_relative(slots.carbon_over_run[row], own[CARBON_OVER_RUN])
        fill_relative(slots.price_at_start[row], own[PRICE_AT_START])
        fill_relative(slots.price_over_run[row], own[PRICE_OVER_RUN])
        _fill_weighted(slots.weighted_over_run[row], slots.completion[row], own[WEIGHTED_OVER_RUN])
        _fill_others(row, slots, asked, day, own)
        fill_shared(asked, features.shape[2], context[row])


@borrowing
def _fill_weighted(weighted: Floats, completion: Floats, seen: Singles) -> None:
    """Do what `fill_relative` does, of sums."""
    total = 0.0
    for place in range(weighted.size):
        total += abs(weighted[place] + completion[place])
    factor, offset = _relative_scale(total / weighted.size)
    for place in range(weighted.size):
        seen[place] = (weighted[place] + completion[place]) * factor + offset


@borrowing
def _fill_others(
    row: int, slots: SlotColumns, asked: DecisionToMake, day: ComingDay, seen: Singles
) -> None:
    """Fill in the features that are not relative to the other starts, [15,S], of one decision."""
    found, wait_s, runtime_s = asked.timing, slots.wait_s[row], slots.runtime_s[row]
    carbon, price = slots.carbon_over_run[row], slots.price_over_run[row]
    now_g = max(carbon[0] * runtime_s[0], LEAST_MAGNITUDE)
    for place in range(wait_s.size):
        left_s = found.left_s - wait_s[place]
        spare_s = max(found.left_s - runtime_s[place], 1.0)
        seen[BUSIEST, place] = slots.busiest_over_run[row, place]
        seen[SLACK_USED, place] = min(wait_s[place] / spare_s, 1.0)
        seen[DEADLINE_MARGIN, place] = _deadline_margin(
            left_s, runtime_s[place], found.runtime_error
        )
        seen[CARBON_OF_DAY, place] = _relative_to_day(carbon[place], day.carbon_g_per_kwh)
        seen[PRICE_OF_DAY, place] = _relative_to_day(price[place], day.price_per_mwh)
        seen[CARBON_OF_NOW, place] = min(carbon[place] * runtime_s[place] / now_g, MOST_RELATIVE)
        angle = (found.now_s + wait_s[place]) * _RADIANS_PER_S
        seen[DAY_SIN, place], seen[DAY_COS, place] = np.sin(angle), np.cos(angle)
