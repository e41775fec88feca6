"""What is known of many workloads' candidate starts before any plan, a block of them at a time.

Only how busy a zone is depends on what was decided before. All else is reckoned here for a block of
workloads that have equally many candidate starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import FULL, SlotColumns, with_overload
from greensched_policies.encoding.weights import Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import (
    Outlook,
    fill_gaps,
    seen_from,
    weighed,
)
from greensched_policies.rules.catalogue import WhenPolicy

MOST_STARTS = 672  # a week of quarter hours, as in the simulator
BLOCK = 128  # workloads: their arrays stay within a core's cache
_WEIGHTED, _RUNTIME, COLUMNS = 4, 5, 6  # beside what is seen, in a block's columns


@dataclass(frozen=True, slots=True, eq=False)
class StartRequest:
    """One workload whose start is to be chosen."""

    runtime_s: Floats  # [Z] expected in each zone; infinite where no node can take it
    latest_s: float  # the latest start, in seconds since the epoch; infinity: whenever
    cpu_cores: float
    weights: Weights
    when: WhenPolicy
    kept_start_s: float | None = None  # what was planned before


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """B workloads with `count` candidate starts each."""

    asked: Sequence[StartRequest]
    count: int
    wait_s: Floats  # [1,count]
    place: Integers  # [count] 0, 1, 2 …
    widths: list[list[int]]  # [B][Z] slots of the plan that a run touches
    raw: Floats  # [4,B,Z,count] what is seen; NaN where data is missing
    seen: Floats  # the same, with means where data is missing
    weighted: Floats  # [B,Z,count] carbon and price over the run in one figure
    ranked: Floats  # the same, infinite where the zone is no choice
    spread: Floats  # [B] how far weighted costs lie apart at most
    columns: Floats  # [6,B,count] of the zones that are best while there is room
    zones: Integers  # [B,count] those


def block_of(
    outlook: Outlook, plan: CorePlan, asked: Sequence[StartRequest], now_s: float, count: int
) -> Block:
    """Return what is seen of workloads from `now_s` on; so many starts each."""
    runtime_s = np.stack([each.runtime_s for each in asked])
    raw = seen_from(outlook, now_s, runtime_s, count)
    seen = fill_gaps(raw)
    by_carbon = np.array([each.weights.carbon for each in asked])
    by_price = np.array([each.weights.cost for each in asked])
    weighted = weighed(seen, by_carbon, by_price)
    ranked = _without_what_is_no_choice(outlook, now_s, runtime_s, weighted)
    zones = ranked.argmin(axis=1)
    columns = np.empty((COLUMNS, len(asked), count))
    row, place = np.arange(len(asked))[:, None], np.arange(count)
    columns[:_WEIGHTED] = seen[:, row, zones, place]
    columns[_WEIGHTED], columns[_RUNTIME] = weighted[row, zones, place], runtime_s[row, zones]
    return Block(
        asked=asked,
        count=count,
        wait_s=(place * np.float64(outlook.slot_s))[None],
        place=place,
        widths=plan.widths(now_s, runtime_s).tolist(),
        raw=raw,
        seen=seen,
        weighted=weighted,
        ranked=ranked,
        spread=weighted.max(axis=(1, 2)) - weighted.min(axis=(1, 2)),
        columns=columns,
        zones=zones,
    )


def starts_to_choose(
    outlook: Outlook, now_s: float, runtime_s: Floats, latest_s: Floats
) -> Integers:
    """Return how many starts each workload has, [B], at least one: now.

    They end with the latest start, [B], and with the forecast of the zones that can take the
    workload.
    """
    slack_s = np.minimum(latest_s - now_s, MOST_STARTS * outlook.slot_s)
    by_deadline = np.maximum(slack_s // outlook.slot_s, 0.0).astype(np.int64) + 1
    known = np.where(np.isfinite(runtime_s), outlook.slots_ahead(now_s), 0).max(axis=1)
    counts: Integers = np.maximum(np.minimum(np.minimum(by_deadline, MOST_STARTS), known), 1)
    return counts


def _without_what_is_no_choice(
    outlook: Outlook, now_s: float, runtime_s: Floats, weighted: Floats
) -> Floats:
    """Return weighted costs, infinite where no node can take a workload, or nobody forecasts."""
    count, ahead = weighted.shape[2], np.maximum(outlook.slots_ahead(now_s), 1)
    is_no_choice = np.isinf(runtime_s)[:, :, None] | (np.arange(count) >= ahead[:, None])
    return np.where(is_no_choice, np.inf, weighted) if is_no_choice.any() else weighted


def columns_of(block: Block, row: int, busiest: Floats) -> tuple[SlotColumns, Integers]:
    """Return the candidate starts of one workload, [1,count], and the best zone of each.

    `busiest`, [Z,count], is how full a run finds each zone.
    """
    place, columns, zones = block.place, block.columns[:, row], block.zones[row]
    load = busiest[zones, place]
    # Overload only adds to costs: where the best zone has room, it stays the best one.
    if load.max() > FULL:
        ranked = with_overload(block.ranked[row], busiest, block.spread[row])
        zones = ranked.argmin(axis=0)
        columns = np.empty((COLUMNS, block.count))
        columns[:_WEIGHTED] = block.seen[:, row, zones, place]
        columns[_WEIGHTED] = block.weighted[row, zones, place]
        columns[_RUNTIME] = block.asked[row].runtime_s[zones]
        load = busiest[zones, place]
    seen = columns[:_RUNTIME, None]
    slots = SlotColumns._make((block.wait_s, columns[_RUNTIME][None], *seen, load[None]))
    return slots, zones
