"""Computes what candidate starts cost before any plan, for a block of workloads at a time.

Only the load of a zone depends on earlier decisions. All else is computed here for a block of
workloads that have equally many candidate starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import FULL, SlotColumns, with_overload
from greensched_policies.encoding.weights import UNLIMITED, CarbonLimit, Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import (
    CARBON_OVER_RUN,
    Outlook,
    fill_gaps,
    seen_from,
    weighed,
)
from greensched_policies.rules.catalogue import WhenPolicy

MOST_STARTS = 672  # a week of quarter hours, as in the simulator
BLOCK = 128  # workloads: their arrays stay within a core's cache
_WEIGHTED, _RUNTIME, COLUMNS = 4, 5, 6  # in a block's columns, after the signals


@dataclass(frozen=True, slots=True, eq=False)
class StartRequest:
    """One workload whose start is to be chosen."""

    runtime_s: Floats  # [Z] expected in each zone; infinite where no node can take it
    latest_s: float  # the latest start, in seconds since the epoch; infinity: no limit
    cpu_cores: float
    power_w: Floats  # [Z] that it adds to its node's power in each zone, with the site's PUE
    weights: Weights
    when: WhenPolicy
    limit: CarbonLimit = UNLIMITED
    gpus: float = 0.0
    kept_start_s: float | None = None  # the start planned before


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """B workloads with `count` candidate starts each."""

    requests: Sequence[StartRequest]
    count: int
    wait_s: Floats  # [1,count]
    place: Integers  # [count] 0, 1, 2 …
    widths: list[list[int]]  # [B][Z] slots of the plan that a run touches
    raw: Floats  # [4,B,Z,count] the signals; NaN where data is missing
    seen: Floats  # the same, with means where data is missing
    weighted: Floats  # [B,Z,count] weighted sum of carbon and price over the run
    ranked: Floats  # the same, infinite where the zone cannot be chosen
    spread: Floats  # [B] the largest difference of weighted costs
    has_carbon: npt.NDArray[np.bool_]  # [B] whether any carbon over a run is forecast
    columns: Floats  # [6,B,count] of the zones that are best as long as they have room
    zones: Integers  # [B,count] these zones


def block_of(
    outlook: Outlook, plan: CorePlan, requests: Sequence[StartRequest], now_s: float, count: int
) -> Block:
    """Return the block of some workloads, with `count` starts each from `now_s` on."""
    runtime_s = np.stack([each.runtime_s for each in requests])
    raw = seen_from(outlook, now_s, runtime_s, count)
    seen = fill_gaps(raw)
    by_carbon = np.array([each.weights.carbon for each in requests])
    by_price = np.array([each.weights.cost for each in requests])
    weighted = weighed(seen, by_carbon, by_price)
    ranked = _possible_costs(outlook, now_s, runtime_s, weighted)
    zones = ranked.argmin(axis=1)
    columns = np.empty((COLUMNS, len(requests), count))
    row, place = np.arange(len(requests))[:, None], np.arange(count)
    columns[:_WEIGHTED] = seen[:, row, zones, place]
    columns[_WEIGHTED], columns[_RUNTIME] = weighted[row, zones, place], runtime_s[row, zones]
    return Block(
        requests=requests,
        count=count,
        wait_s=(place * np.float64(outlook.slot_s))[None],
        place=place,
        widths=plan.widths(now_s, runtime_s).tolist(),
        raw=raw,
        seen=seen,
        weighted=weighted,
        ranked=ranked,
        spread=weighted.max(axis=(1, 2)) - weighted.min(axis=(1, 2)),
        has_carbon=~np.isnan(raw[CARBON_OVER_RUN]).all(axis=(1, 2)),
        columns=columns,
        zones=zones,
    )


def starts_to_choose(
    outlook: Outlook, now_s: float, runtime_s: Floats, latest_s: Floats
) -> Integers:
    """Return the number of starts of each workload, [B]; at least one, now.

    Starts end with the latest start, [B], and with the forecast of the zones that can take the
    workload.
    """
    slack_s = np.minimum(latest_s - now_s, MOST_STARTS * outlook.slot_s)
    by_deadline = np.maximum(slack_s // outlook.slot_s, 0.0).astype(np.int64) + 1
    known = np.where(np.isfinite(runtime_s), outlook.slots_ahead(now_s), 0).max(axis=1)
    counts: Integers = np.maximum(np.minimum(np.minimum(by_deadline, MOST_STARTS), known), 1)
    return counts


def _possible_costs(outlook: Outlook, now_s: float, runtime_s: Floats, weighted: Floats) -> Floats:
    """Return weighted costs, infinite where no node can take a workload or no forecast exists."""
    count, ahead = weighted.shape[2], np.maximum(outlook.slots_ahead(now_s), 1)
    is_impossible = np.isinf(runtime_s)[:, :, None] | (np.arange(count) >= ahead[:, None])
    return np.where(is_impossible, np.inf, weighted) if is_impossible.any() else weighted


def columns_of(block: Block, row: int, busiest: Floats) -> tuple[SlotColumns, Integers]:
    """Return the candidate starts of one workload, [1,count], and the best zone of each.

    `busiest`, [Z,count], is the load that a run finds in each zone.
    """
    place, columns, zones = block.place, block.columns[:, row], block.zones[row]
    load = busiest[zones, place]
    # Overload only adds to costs: a best zone with room stays the best.
    if load.max() > FULL:
        ranked = with_overload(block.ranked[row], busiest, block.spread[row])
        zones = ranked.argmin(axis=0)
        columns = np.empty((COLUMNS, block.count))
        columns[:_WEIGHTED] = block.seen[:, row, zones, place]
        columns[_WEIGHTED] = block.weighted[row, zones, place]
        columns[_RUNTIME] = block.requests[row].runtime_s[zones]
        load = busiest[zones, place]
    seen = columns[:_RUNTIME, None]
    slots = SlotColumns._make((block.wait_s, columns[_RUNTIME][None], *seen, load[None]))
    return slots, zones
