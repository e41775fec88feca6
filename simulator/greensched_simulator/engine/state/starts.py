"""A job's candidate starts, and the one that its `when` rule prefers."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.kernel.later_room import ALL_ROOM, LaterRoom
from greensched_policies.kernel.plan import Plan
from greensched_policies.kernel.starts import (
    SEEN,
    SLOT_COLUMNS,
    as_slots,
    choose_zones,
    fill_all_gaps,
    most_slots,
    take_best,
    watch,
)
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.library.grid_table import GridTable
from greensched_simulator.arrays.moving import Data, transfer_surcharges
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet
from greensched_simulator.engine.state.memory import StartsMemory
from greensched_simulator.engine.state.terms import RunConfig


class Start(NamedTuple):
    """A job's planned start, and its best zone then; NaN if it is rejected."""

    start_s: float
    zone: int  # NOWHERE if it is rejected
    runtime_s: float  # expected there


class UnstartedJob(NamedTuple):
    """A job, or the rest of one, that may start now or later: a `Work`, and its data."""

    now_s: float
    runtime_s: Floats  # [Z] expected in each zone, infinite where no node can take it
    cpu_cores: float
    data: Data
    # [Z] joules of such a run: they weigh its carbon and price, and its data transfer is spread
    # over them
    run_j: Floats
    gpus: float = 0.0
    memory_bytes: float = 0.0
    later: LaterRoom = ALL_ROOM


@fast
def choose_start(
    grid: GridTable,
    plan: Plan,
    terms: RunConfig,
    rules: RuleSet,
    work: UnstartedJob,
    latest_s: float,
    memory: StartsMemory,
) -> Start:
    """Return the start up to `latest_s` with the least cost by the `when` rule.

    A rule that may reject jobs is also called for a single candidate.
    """
    count = starts_between(work.now_s, latest_s, terms)
    slots, zones = slot_columns(grid, plan, terms, work, count, memory)
    best = 0
    if count > 1 or terms.may_reject:
        cost = rules.when[0](slots)[0]
        best = int(np.argmin(cost))
        if np.isposinf(cost[best]):
            return Start(np.nan, NOWHERE, np.nan)
    zone = zones[best]
    return Start(work.now_s + best * terms.slot_s, zone, work.runtime_s[zone])


@inlined
def starts_between(now_s: float, latest_s: float, terms: RunConfig) -> int:
    """Return the number of candidate starts, at least one: now."""
    return min(max(int(np.floor((latest_s - now_s) / terms.slot_s)), 0) + 1, MOST_STARTS)


@fast
def slot_columns(
    grid: GridTable,
    plan: Plan,
    terms: RunConfig,
    work: UnstartedJob,
    count: int,
    memory: StartsMemory,
) -> tuple[SlotColumns, Integers]:
    """Return `count` candidate starts of one job, and the best zone of each, [S], in `memory`."""
    runtime_s, slot_s, numbers = work.runtime_s, terms.slot_s, memory.columns
    seen_end = SEEN * runtime_s.size * count
    columns_end = seen_end + SLOT_COLUMNS * count
    room_end = columns_end + 2 * (count + most_slots(runtime_s, slot_s))
    seen = numbers[:seen_end].reshape((SEEN, runtime_s.size, count))
    columns = numbers[seen_end:columns_end].reshape((SLOT_COLUMNS, 1, count))
    room = numbers[columns_end:room_end].reshape((2, (room_end - columns_end) // 2))
    best = memory.best[:count]
    surcharge = transfer_surcharges(terms.links, work.data, work.run_j)
    if watch(grid, plan, slot_s, work, surcharge, seen, room):
        fill_all_gaps(seen)
    each_s = choose_zones(grid, work, slot_s, terms.weights, seen, room, best)
    take_best(runtime_s, slot_s, each_s, seen, best, columns)
    return as_slots(columns), best
