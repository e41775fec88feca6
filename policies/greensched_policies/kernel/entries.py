"""The functions of the library: each makes arrays of its addresses, and calls what decides.

`library/functions.py` has the places of all that they take.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import CostModel, WorkloadColumns
from greensched_policies.costs.merit_order import MERIT_STEPS
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    NODE_FEATURES,
    DecisionToMake,
)
from greensched_policies.encoding.power_cap_observation import POWER_CAP_FEATURES, CappedDomain
from greensched_policies.encoding.slot_observation import SLOT_FEATURES, ComingDay
from greensched_policies.encoding.timing import Timing
from greensched_policies.encoding.weights import CarbonLimit, Weights
from greensched_policies.kernel.later_room import ALL_ROOM
from greensched_policies.kernel.nets import empty_net_scratch
from greensched_policies.kernel.nets import rate_candidates as _rate_candidates
from greensched_policies.kernel.node_names import EntryNames
from greensched_policies.kernel.node_names import find_rows as _find_rows
from greensched_policies.kernel.node_names import hash_names as _hash_names
from greensched_policies.kernel.node_names import write_scores as _write_scores
from greensched_policies.kernel.plan import Plan
from greensched_policies.kernel.planning import Basis, Many
from greensched_policies.kernel.planning import plan_starts as _plan_starts
from greensched_policies.kernel.scores import spread_scores as _spread_scores
from greensched_policies.kernel.seeing_nodes import (
    NodesShown,
    PodToPlace,
    are_within,
    empty_scratch,
    fill_missing_zones,
    fill_of_day,
    rows_of_table,
)
from greensched_policies.kernel.seeing_nodes import see_nodes as _see_nodes
from greensched_policies.kernel.seeing_power_caps import fill_power_caps
from greensched_policies.kernel.seeing_starts import fill_starts
from greensched_policies.kernel.slot_choice import SeenSlots, SlotWork, see_all_slots
from greensched_policies.kernel.slot_choice import choose_slots as _choose_slots
from greensched_policies.kernel.starts import SLOT_COLUMNS, PendingWork, as_slots
from greensched_policies.library import functions as at
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable
from greensched_policies.library.nets import FEATURES, SHARED, PackedNet
from greensched_policies.library.node_table import FIXED_COLUMNS, MOVING_COLUMNS, NodeTable

_OWN, _SHARED = len(NODE_FEATURES), len(CONTEXT_FEATURES)  # of a candidate, of a decision
_OF_A_CAP, _CAP_COLUMNS = len(POWER_CAP_FEATURES), len(CapColumns._fields)


def _pointer_to(kind: Any) -> Any:
    """Return what makes a pointer of an address."""

    def pointer(_context: Any, address: Any) -> Any:
        def code(target: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], target.get_value_type(types.CPointer(kind)))

        return types.CPointer(kind)(types.int64), code

    return intrinsic(pointer)


_floats: Any = _pointer_to(types.float64)
_integers: Any = _pointer_to(types.int64)
_flags: Any = _pointer_to(types.boolean)
_singles: Any = _pointer_to(types.float32)
_small: Any = _pointer_to(types.int32)
_tiny: Any = _pointer_to(types.int8)
_bytes: Any = _pointer_to(types.uint8)
_unsigned: Any = _pointer_to(types.uint64)


@fast
def _basis(whole: Any, numbers: Any) -> Basis:
    zones, steps = whole[at.ZONES], whole[at.STEPS]
    by_step = carray(_floats(whole[at.BY_STEP_AT]), (8, steps))
    by_zone = carray(_floats(whole[at.BY_ZONE_AT]), (5, zones))
    grid = GridTable(
        carray(_integers(whole[at.STARTS_AT]), (zones + 1,)), by_zone[0], by_step[0], by_step[1],
        by_step[2:4], by_step[4:6], by_step[6:8], np.ones((2, steps)), np.zeros((2, steps)),
        by_zone[1],
    )  # fmt: skip
    cores = carray(_floats(whole[at.CORES_AT]), (zones, whole[at.SLOTS]))
    gpus = carray(_floats(whole[at.GPUS_AT]), (zones, whole[at.GPU_SLOTS]))
    memory = carray(_floats(whole[at.MEMORY_AT]), (zones, whole[at.MEMORY_SLOTS]))
    merit = carray(_floats(whole[at.MERIT_AT]), (2, zones, MERIT_STEPS))
    plan = Plan(cores, by_zone[2], gpus, by_zone[3], memory, by_zone[4], merit)
    return Basis(grid, plan, numbers[at.NOW_S], numbers[at.SLOT_S], numbers[at.BUSY_SHARE])


def plan_starts(integers_at: Any, numbers_at: Any) -> None:
    """Decide for many workloads: see `planning.plan_starts`."""
    whole, numbers = carray(integers_at, (at.PLANNING,)), carray(numbers_at, (3,))
    zones, count = whole[at.ZONES], whole[at.COUNT]
    in_zones = carray(_floats(whole[at.IN_ZONES_AT]), (2, count, zones))
    asked = carray(_floats(whole[at.ASKED_AT]), (at.ASKED, count))
    order = carray(_integers(whole[at.ORDER_AT]), (2, whole[at.DECISIONS]))
    found = carray(_floats(whole[at.FOUND_AT]), (at.FOUND, count))
    quiet_s = carray(_floats(whole[at.QUIET_AT]), (2, whole[at.POLICIES], whole[at.SPANS]))
    many = Many(asked, in_zones[0], in_zones[1], quiet_s)
    _plan_starts(_basis(whole, numbers), many, order, whole[at.ASK_AT], found)


def see_slots(integers_at: Any, numbers_at: Any) -> None:
    """Write what a `when` rule sees of the next slots: see `starts.watch_slots`."""
    whole = carray(integers_at, (at.RAW_AT + 1,))
    numbers = carray(numbers_at, (at.TIME_WEIGHT + 1,))
    zones, count = whole[at.ZONES], whole[at.SLOTS_SEEN]
    runs = carray(_floats(whole[at.RUNS_AT]), (2, zones))
    columns = carray(_floats(whole[at.COLUMNS_AT]), (SLOT_COLUMNS, zones, count))
    raw = carray(_floats(whole[at.RAW_AT]), (3, zones, count))
    basis = _basis(whole, numbers)
    work = PendingWork(
        basis.now_s, runs[0], numbers[at.CORES], numbers[at.GPUS_REQUESTED],
        numbers[at.MEMORY_REQUESTED], ALL_ROOM, runs[0] * runs[1],
    )  # fmt: skip
    weights = Weights(numbers[at.COST_WEIGHT], numbers[at.CARBON_WEIGHT], numbers[at.TIME_WEIGHT])
    see_all_slots(basis, work, weights, columns, raw)


def choose_slots(integers_at: Any, numbers_at: Any) -> None:
    """Write the slots in which work runs that may be suspended: see `slot_choice`."""
    whole, numbers = carray(integers_at, (at.CHOICE_AT + 1,)), carray(numbers_at, (10,))
    zones, slots = whole[at.SLOT_ZONES], whole[at.OF_COST]
    runs = carray(_floats(whole[at.SLOT_RUNS_AT]), (2, zones))
    columns = carray(_floats(whole[at.SLOTS_AT]), (SLOT_COLUMNS, zones, slots))
    seen = SeenSlots(
        carray(_floats(whole[at.COST_AT]), (zones, slots)), columns[6], columns[7],
        carray(_floats(whole[at.RAW_SLOTS_AT]), (3, zones, slots)),
        carray(_integers(whole[at.COUNTS_AT]), (zones,)),
    )  # fmt: skip
    work = SlotWork(
        runs[0], runs[1], numbers[at.RESTART_S], numbers[at.MOST_RESTARTS], whole[at.RUNNING_IN],
        int(numbers[at.FIRST_SLOT]), numbers[at.KEPT_SLOT], numbers[at.SLOT_SAVING],
        numbers[at.SLOT_CHANGE],
        CarbonLimit(numbers[at.SLOT_PRICE_PER_G], numbers[at.SLOT_AT_ARRIVAL_G]),
        numbers[at.SLOT_WAITS] != 0.0,
    )  # fmt: skip
    choice = _choose_slots(seen, work, numbers[at.LENGTH_S])
    chosen, found = carray(_flags(whole[at.CHOSEN_AT]), (slots,)), choice.chosen
    for slot in range(found.size):
        chosen[slot] = found[slot]
    told = carray(_floats(whole[at.CHOICE_AT]), (at.CHOICE,))
    told[at.CHOICE_ZONE], told[at.CHOICE_ZONE_NOW] = choice.zone, choice.zone_now
    told[at.CHOICE_WHY], told[at.CHOICE_SLOTS] = choice.why, found.size
    told[at.CHOICE_SAVING], told[at.CHOICE_HAS_ROOM] = choice.saving, choice.has_room
    _copy(choice.run, told[at.CHOICE_RUN :])
    _copy(choice.run_now, told[at.CHOICE_RUN + 4 :])


def see_nodes(integers_at: Any, numbers_at: Any) -> None:
    """Write what a `where` policy sees of nodes, and their costs: see `seeing_nodes.see_nodes`."""
    whole, numbers = carray(integers_at, (at.SEEN_NODES,)), carray(numbers_at, (at.PLACING,))
    count, zones = whole[at.CANDIDATES], whole[at.NODE_ZONES]
    rows = carray(_integers(whole[at.ROWS_AT]), (count,))
    lacked = carray(_integers(whole[at.LACKED_AT]), (2,))
    if not are_within(rows, whole[at.NODES]):
        lacked[0] = at.NO_SUCH_ROW
        return
    table, scratch = rows_of_table(_node_table(whole), rows), empty_scratch(zones, count)
    signals = carray(_floats(whole[at.SIGNALS_AT]), (4, zones))
    _copy(signals[0], scratch.means[CARBON])
    _copy(signals[1], scratch.means[PRICE])
    lacked[0], lacked[1] = fill_missing_zones(table.zone, np.arange(count), scratch.means)
    fill_of_day(scratch.means, signals[2:], scratch.of_day)
    all_shown = carray(_singles(whole[at.SHOWN_AT]), (_SHARED + _OWN * count,))
    features = all_shown[_SHARED:].reshape((1, _OWN, count))
    shown = NodesShown(features, all_shown[:_SHARED].reshape((1, _SHARED)), True, True)
    costs = carray(_singles(whole[at.COSTS_AT]), (2, count))
    _see_nodes(table, _placing(whole, numbers), scratch, shown, costs)


@fast
def _node_table(whole: Any) -> NodeTable:
    nodes = whole[at.NODES]
    return NodeTable(
        carray(_floats(whole[at.FIXED_AT]), (nodes, FIXED_COLUMNS)),
        carray(_floats(whole[at.MOVING_AT]), (nodes, MOVING_COLUMNS)),
        carray(_small(whole[at.NODE_ZONE_AT]), (nodes,)),
        carray(_floats(whole[at.SHARES_AT]), (whole[at.SHARES],)),
    )


@fast
def _placing(whole: Any, numbers: Any) -> PodToPlace:
    curves = carray(_floats(whole[at.CURVES_AT]), (whole[at.CURVE_WATTS],))
    sleeps = numbers[at.EMPTY_NODES_SLEEP] != 0.0
    return PodToPlace(
        WorkloadColumns(
            numbers[at.POD_CORES], numbers[at.POD_MEMORY], numbers[at.POD_GPUS],
            numbers[at.POD_RUNTIME_S],
        ),
        CostModel(curves, numbers[at.UTILISATION_RATIO], numbers[at.GPU_RATIO], sleeps),
        Weights(numbers[at.BY_COST], numbers[at.BY_GRAMS], numbers[at.BY_SPEED]),
        Timing(
            numbers[at.DECIDED_S], numbers[at.LEFT_S], numbers[at.ERROR], numbers[at.ON_TIME]
        ),
        int(numbers[at.PLANNED_ZONE]),
    )  # fmt: skip


def spread_scores(integers_at: Any, _numbers_at: Any) -> None:
    """Write the scores of relative costs, and the place of the best: see `scores.spread_scores`."""
    whole = carray(integers_at, (at.BEST_AT + 1,))
    count = whole[at.SCORED]
    cost = carray(_singles(whole[at.SCORED_COST_AT]), (count,))
    best = _spread_scores(cost, carray(_tiny(whole[at.SCORES_AT]), (count,)))
    carray(_integers(whole[at.BEST_AT]), (1,))[0] = best


def hash_names(integers_at: Any, _numbers_at: Any) -> None:
    """Fill in the hash table of the names of some entries: see `node_names.hash_names`."""
    whole = carray(integers_at, (at.HASHED_AT + 1,))
    _hash_names(_entry_names(whole), carray(_integers(whole[at.HASHED_AT]), (whole[at.HASHED],)))


def find_rows(integers_at: Any, _numbers_at: Any) -> None:
    """Write the rows of the names in a JSON array: see `node_names.find_rows`."""
    whole = carray(integers_at, (at.UNKNOWN_AT + 1,))
    text = carray(_bytes(whole[at.TEXT_AT]), (whole[at.TEXT_LEN],))
    found = carray(_integers(whole[at.FOUND_ROWS_AT]), (4, whole[at.NAMES]))
    unknown = _find_rows(_entry_names(whole), text, found[0], found[1:])
    carray(_integers(whole[at.UNKNOWN_AT]), (1,))[0] = unknown


def write_scores(integers_at: Any, _numbers_at: Any) -> None:
    """Write a JSON array of entries with their scores: see `node_names.write_scores`."""
    whole = carray(integers_at, (at.WRITTEN_AT + 1,))
    count, width = whole[at.WRITTEN], whole[at.ENTRY_WIDTH]
    rows = carray(_integers(whole[at.WRITTEN_ROWS_AT]), (count,))
    scores = carray(_tiny(whole[at.WRITTEN_SCORES_AT]), (count,))
    written = carray(_bytes(whole[at.WRITTEN_AT]), (1 + max(count * width, 1),))
    _write_scores(_entry_names(whole), rows, scores, written)


def rate_candidates(integers_at: Any, _numbers_at: Any) -> None:
    """Write the relative costs of candidates by a net: see `nets.rate_candidates`."""
    whole = carray(integers_at, (at.RATED_COSTS_AT + 1,))
    net = PackedNet(
        carray(_integers(whole[at.NET_SIZES_AT]), (whole[at.NET_SIZES],)),
        carray(_singles(whole[at.NET_NUMBERS_AT]), (whole[at.NET_NUMBERS],)),
    )
    batch, count = whole[at.RATINGS], whole[at.RATED]
    own, shared = net.sizes[FEATURES], net.sizes[SHARED]
    features = carray(_singles(whole[at.RATED_FEATURES_AT]), (batch, own, count))
    context = carray(_singles(whole[at.RATED_CONTEXT_AT]), (batch, shared))
    costs, scratch = (
        carray(_singles(whole[at.RATED_COSTS_AT]), (batch, count)),
        empty_net_scratch(net),
    )
    for each in range(batch):
        _rate_candidates(net, features[each], context[each], scratch, costs[each])


def see_starts(integers_at: Any, numbers_at: Any) -> None:
    """Write what a learned `when` policy sees of starts: see `seeing_starts.fill_starts`."""
    whole = carray(integers_at, (at.START_CONTEXT_AT + 1,))
    numbers = carray(numbers_at, (at.SEEING_STARTS,))
    batch, count = whole[at.SEEN_DECISIONS], whole[at.SEEN_STARTS]
    slots = as_slots(carray(_floats(whole[at.STARTS_TABLE_AT]), (SLOT_COLUMNS, batch, count)))
    features = carray(_singles(whole[at.START_FEATURES_AT]), (batch, len(SLOT_FEATURES), count))
    context = carray(_singles(whole[at.START_CONTEXT_AT]), (batch, _SHARED))
    day = ComingDay(numbers[at.DAY_CARBON], numbers[at.DAY_PRICE])
    fill_starts(slots, _to_make(numbers), day, features, context)


def see_power_caps(integers_at: Any, _numbers_at: Any) -> None:
    """Write what a learned `how_fast` policy sees: see `seeing_power_caps.fill_power_caps`."""
    whole = carray(integers_at, (at.CAP_CONTEXT_AT + 1,))
    batch, count = whole[at.CAPPED_DECISIONS], whole[at.SEEN_CAPS]
    table = carray(_floats(whole[at.CAPS_TABLE_AT]), (batch, _CAP_COLUMNS, count))
    numbers = carray(_floats(whole[at.CAPPED_AT]), (batch, at.SEEING_CAPS))
    features = carray(_singles(whole[at.CAP_FEATURES_AT]), (batch, _OF_A_CAP, count))
    context = carray(_singles(whole[at.CAP_CONTEXT_AT]), (batch, _SHARED))
    for each in range(batch):
        own = numbers[each]
        domain = CappedDomain(
            own[at.CAP_DEARNESS], own[at.NEEDED_SPEED], own[at.OF_GPU], own[at.OF_METER],
            own[at.CORES_BUSY], own[at.CORES_WAITING], own[at.CORES_PLANNED],
        )  # fmt: skip
        fill_power_caps(table[each], domain, _to_make(own), features[each], context[each])


@fast
def _to_make(numbers: Any) -> DecisionToMake:
    """Return what a decision rests on besides its candidates."""
    work = WorkloadColumns(
        numbers[at.WORK_CORES], numbers[at.WORK_MEMORY], numbers[at.WORK_GPUS],
        numbers[at.WORK_RUNTIME_S],
    )  # fmt: skip
    weights = Weights(numbers[at.FOR_COST], numbers[at.FOR_CARBON], numbers[at.FOR_SPEED])
    timing = Timing(
        numbers[at.ASKED_S], numbers[at.ASKED_LEFT_S], numbers[at.ASKED_ERROR],
        numbers[at.ASKED_ON_TIME],
    )  # fmt: skip
    return DecisionToMake(work, weights, numbers[at.MEAN_MEMORY], timing)


@fast
def _entry_names(whole: Any) -> EntryNames:
    entries = carray(_bytes(whole[at.ENTRIES_AT]), (whole[at.ENTRIES_LEN], whole[at.ENTRY_WIDTH]))
    bits = whole[at.HASH_BITS]
    slots = carray(_unsigned(whole[at.HASHES_AT]), (1 << bits,))
    return EntryNames(entries, slots, bits, np.uint64(whole[at.HASH_FACTOR]))


@fast
def _copy(values: Any, target: Any) -> None:
    for place in range(values.size):
        target[place] = values[place]


Entry = Callable[[Any, Any], None]
ENTRIES: dict[str, Entry] = {
    "plan_starts": plan_starts,
    "see_slots": see_slots,
    "choose_slots": choose_slots,
    "see_nodes": see_nodes,
    "spread_scores": spread_scores,
    "hash_names": hash_names,
    "find_rows": find_rows,
    "write_scores": write_scores,
    "rate_candidates": rate_candidates,
    "see_starts": see_starts,
    "see_power_caps": see_power_caps,
}
