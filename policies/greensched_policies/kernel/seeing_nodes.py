"""What a `where` policy sees of nodes, and what each would cost, node by node.

The simulator's engine calls the parts with its own columns of nodes, the library `see_nodes`.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.cost import (
    CORE_SPEED,
    CPU_CAPACITY,
    CURVE_CLASS,
    GPU_CAPACITY,
    GPU_IDLE_W,
    GPU_PEAK_W,
    MEMORY_CAPACITY,
    PUE,
    CostModel,
    Floats,
    Integers,
    NodeColumns,
    PlacementCost,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
    with_gpu_ratio,
)
from greensched_policies.encoding.observation import (
    CARBON_OF_DAY,
    DAY_COS,
    DAY_SIN,
    IS_MEASURED,
    IS_PLANNED_ZONE,
    LOG_SLACK,
    ON_TIME_NINES,
    POWER_CAP,
    PRICE_OF_DAY,
    RELATIVE_FEATURES,
    RELATIVE_MEMORY_SIZE,
    RELATIVE_PLACES,
    RELATIVE_ZONE_CARBON,
    ROOM_FEATURES,
    RUNTIME_ERROR,
    SPEED,
    WEEK_COS,
    WEEK_SIN,
    leave_out_unknown,
    relative_columns,
    relative_scale,
    room_columns,
    work_columns,
)
from greensched_policies.encoding.timing import (
    Timing,
    relative_to_day,
    timing_columns,
)
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.grid_table import CARBON, PRICE
from greensched_policies.library.node_table import (
    CPU_BEFORE,
    FIXED_COLUMNS,
    GPU_FREE,
    IS_EMPTY,
    MEMORY_FREE,
    MOVING_COLUMNS,
    NodeTable,
)

Singles = npt.NDArray[np.float32]

NO_CAP = 1.0  # the power cap of a node without one
_IN_ORDER = (0, 1, 2, 3, 4, 5, 6, 7)
_Eight = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
_Rows = tuple[int, int, int, int, int, int, int, int]

cost_of_placing = compiled(placement_cost, inlined)
of_gpu_ratio = compiled(with_gpu_ratio, inlined)
_relative_columns = compiled(relative_columns, inlined)
_room_columns = compiled(room_columns, inlined)
_relative_scale = compiled(relative_scale, inlined)
_work_columns = compiled(work_columns, inlined)
_timing_columns = compiled(timing_columns, inlined)
_relative_to_day = compiled(relative_to_day, inlined)
_leave_out_unknown = compiled(leave_out_unknown)


class Scratch(NamedTuple):
    """Working memory for up to K candidates; its contents last for one observation."""

    means: Floats  # [2,Z] each zone's mean carbon and price over the run
    of_day: Floats  # [2,Z] the same, relative to the zone's coming day
    values: Floats  # [8,K] RELATIVE_FEATURES before the division by their means
    mean: Floats  # [8] their mean magnitudes


class NodesShown(NamedTuple):
    """What a `where` rule is shown of nodes; the candidates fill the first columns."""

    features: Singles  # [1,22,K]
    context: Singles  # [1,15]
    with_room: bool  # whether the ROOM_FEATURES are filled in
    # Whether the LEARNED_FEATURES and the TIMING_FEATURES are, which no rule reads.
    with_all: bool


class NodeKnown(NamedTuple):
    """What only learned policies are shown of a node."""

    power_cap: float  # of its CPUs, 1 without one
    is_measured: bool
    planned_zone: int  # of the workload; -1: none


class PodToPlace(NamedTuple):
    """A pod that needs a node, and what decides besides nodes and zones."""

    workload: WorkloadColumns  # its requests, each a number
    model: CostModel
    weights: Weights
    timing: Timing
    planned_zone: int  # -1: none


@fast
def empty_scratch(zones: int, most: int) -> Scratch:
    """Return working memory for up to `most` candidates."""
    kinds = len(RELATIVE_FEATURES)
    means, of_day = np.empty((2, zones)), np.empty((2, zones))
    return Scratch(means, of_day, np.empty((kinds, most)), np.empty(kinds))


@fast
def see_nodes(
    table: NodeTable,
    placing: PodToPlace,
    scratch: Scratch,
    shown: NodesShown,
    costs: Singles,
) -> None:
    """Fill in what a policy is shown of the N nodes of a table, and their costs.

    The scratch has the zones' means, without gaps, and the same relative to their day. `costs`,
    [2,N], are the watts that the pod adds at the meter, and its expected runtime in seconds.
    """
    _describe(table, placing, scratch, shown, costs)
    complete_observation(placing.workload, placing.weights, scratch, table.zone.size, shown)
    put_timing(placing.timing, placing.workload, shown.context)


@borrowing
def are_within(rows: Integers, end: int) -> bool:
    """Return whether all rows are at least 0 and before an end."""
    least, most = 0, -1
    for row in rows:
        least, most = min(least, row), max(most, row)
    return 0 <= least and most < end


@fast
def rows_of_table(table: NodeTable, rows: Integers) -> NodeTable:
    """Return a table of some rows, in their order.

    Memory is then fetched for many nodes at once, instead of for one while its costs wait.
    """
    count = rows.size
    near = NodeTable(
        np.empty((count, FIXED_COLUMNS)),
        np.empty((count, MOVING_COLUMNS)),
        np.empty(count, np.int32),
        np.empty(count if table.gpu_share.size > 0 else 0),
    )
    _gather(table, rows, near)
    return near


@borrowing
def _gather(table: NodeTable, rows: Integers, near: NodeTable) -> None:
    for place in range(rows.size):
        row: Any = np.uintp(rows[place])
        for column in range(FIXED_COLUMNS):
            near.fixed[place, column] = table.fixed[row, column]
        for column in range(MOVING_COLUMNS):
            near.moving[place, column] = table.moving[row, column]
        near.zone[place] = table.zone[row]
        if near.gpu_share.size > 0:
            near.gpu_share[place] = table.gpu_share[row]


@borrowing
def _describe(
    table: NodeTable,
    placing: PodToPlace,
    scratch: Scratch,
    shown: NodesShown,
    costs: Singles,
) -> None:
    model, means, has_shares = placing.model, scratch.means, table.gpu_share.size > 0
    for place in range(table.zone.size):
        row: Any = np.uintp(place)
        node, zone = _columns_of(table, row), table.zone[row]
        signals = ZoneColumns(means[CARBON, zone], means[PRICE, zone])
        gpu_ratio = model.gpu_ratio
        if has_shares and not np.isnan(table.gpu_share[row]):
            gpu_ratio = table.gpu_share[row]
        own = of_gpu_ratio(model, gpu_ratio)
        cost = cost_of_placing(node, placing.workload, signals, own)
        put_relative(node, signals, cost, scratch.values, place)
        put_room(node, placing.workload, cost, own, shown.features, place)
        is_measured = has_shares and not np.isnan(table.gpu_share[row])
        is_measured = is_measured and bool(placing.workload.gpus > 0.0)
        known = NodeKnown(NO_CAP, is_measured, placing.planned_zone)
        put_learned(node, known, zone, scratch.of_day, shown.features, place)
        costs[0, place], costs[1, place] = cost.power_w, cost.runtime_s


@inlined
def _columns_of(table: NodeTable, row: int) -> NodeColumns:
    """Return one node, each column a number."""
    fixed, moving = table.fixed, table.moving
    return NodeColumns(
        fixed[row, CPU_CAPACITY], moving[row, CPU_BEFORE],
        fixed[row, MEMORY_CAPACITY], moving[row, MEMORY_FREE],
        fixed[row, GPU_CAPACITY], moving[row, GPU_FREE],
        fixed[row, GPU_IDLE_W], fixed[row, GPU_PEAK_W], fixed[row, CURVE_CLASS],
        fixed[row, CORE_SPEED], fixed[row, PUE], moving[row, IS_EMPTY],
    )  # fmt: skip


@inlined
def put_relative(
    node: NodeColumns, signals: ZoneColumns, cost: PlacementCost, values: Floats, place: int
) -> None:
    """Put the RELATIVE_FEATURES of one candidate into [8,K], before the division."""
    _put(_relative_columns(node, signals, cost), values, place, _IN_ORDER)


@inlined
def put_room(
    node: NodeColumns,
    workload: WorkloadColumns,
    cost: PlacementCost,
    model: CostModel,
    features: Singles,
    place: int,
) -> None:
    """Put the ROOM_FEATURES of one candidate into the features [1,22,K]."""
    _put(_room_columns(node, workload, cost, model), features[0], place, ROOM_FEATURES)


@inlined
def put_learned(
    node: NodeColumns, known: NodeKnown, zone: int, of_day: Floats, features: Singles, place: int
) -> None:
    """Put the LEARNED_FEATURES of one candidate into the features [1,22,K].

    `of_day`, [2,Z], are the zones' carbon and price, relative to the coming day.
    """
    seen = features[0]
    seen[SPEED, place], seen[POWER_CAP, place] = node.speed, known.power_cap
    seen[IS_MEASURED, place] = 1.0 if known.is_measured else 0.0
    seen[CARBON_OF_DAY, place] = of_day[CARBON, zone]
    seen[PRICE_OF_DAY, place] = of_day[PRICE, zone]
    seen[IS_PLANNED_ZONE, place] = 1.0 if zone == known.planned_zone else 0.0


@borrowing
def put_timing(found: Timing, workload: WorkloadColumns, context: Singles) -> None:
    """Put the TIMING_FEATURES of one decision into the context [1,15]."""
    seen, column = context[0], _timing_columns(found, workload.runtime_s)
    seen[LOG_SLACK], seen[RUNTIME_ERROR], seen[ON_TIME_NINES] = column[0], column[1], column[2]
    seen[DAY_SIN], seen[DAY_COS] = column[3], column[4]
    seen[WEEK_SIN], seen[WEEK_COS] = column[5], column[6]


@borrowing
def fill_of_day(means: Floats, day: Floats, of_day: Floats) -> None:
    """Fill in the zones' means relative to those over their coming day, [2,Z]; NaN: not known.

    `of_day` may be `day` itself.
    """
    for signal in (CARBON, PRICE):
        for zone in range(means.shape[1]):
            of_day[signal, zone] = _relative_to_day(means[signal, zone], day[signal, zone])


@inlined
def _put(column: _Eight, table: npt.NDArray[Any], place: int, rows: _Rows) -> None:
    """Put one candidate's eight values into rows of a table [K,N]; loops over them are slower."""
    table[rows[0], place], table[rows[1], place] = column[0], column[1]
    table[rows[2], place], table[rows[3], place] = column[2], column[3]
    table[rows[4], place], table[rows[5], place] = column[4], column[5]
    table[rows[6], place], table[rows[7], place] = column[6], column[7]


@borrowing
def complete_observation(
    workload: WorkloadColumns, weights: Weights, scratch: Scratch, count: int, shown: NodesShown
) -> None:
    """Make the relative features of `count` candidates relative, and fill in the context.

    Every value is then finite. Missing data is never a zero for one node: if any candidate lacks a
    price, the price is left out for all, and `cost` becomes relative energy. If any lacks a carbon
    intensity, `carbon` is 1 for all, and its weight in the context is 0.
    """
    is_known = _fill_mean_magnitudes(scratch.values, count, scratch.mean)
    _make_relative(scratch.values, count, scratch.mean, shown.features)
    _fill_context(workload, weights, scratch.mean, count, shown.context)
    if not is_known:
        _leave_out(scratch.mean, shown.features)


@fast
def _leave_out(mean: Floats, features: Singles) -> None:
    _leave_out_unknown(features, np.isfinite(mean).reshape((1, mean.size)))


@borrowing
def _fill_mean_magnitudes(values: Floats, count: int, mean: Floats) -> bool:
    """Fill in the mean magnitude of the first `count` values of each row, [8].

    Return whether all means are finite.
    """
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # independent: additions run in parallel
    for place in range(count):
        at: Any = np.uintp(place)
        sums = (
            sums[0] + abs(values[0, at]), sums[1] + abs(values[1, at]),
            sums[2] + abs(values[2, at]), sums[3] + abs(values[3, at]),
            sums[4] + abs(values[4, at]), sums[5] + abs(values[5, at]),
            sums[6] + abs(values[6, at]), sums[7] + abs(values[7, at]),
        )  # fmt: skip
    in_all = 0.0
    for kind in range(mean.size):
        mean[kind] = sums[kind] / count
        in_all += mean[kind]
    return bool(np.isfinite(in_all))


@borrowing
def _make_relative(values: Floats, count: int, mean: Floats, features: Singles) -> None:
    """Divide each row of [8,K] by its mean magnitude, into its place in the features [1,22,K]."""
    for kind in range(mean.size):
        factor, offset = _relative_scale(mean[kind])
        own, seen = values[kind], features[0, RELATIVE_PLACES[kind]]
        for place in range(count):
            seen[place] = own[place] * factor + offset


@borrowing
def _fill_context(
    workload: WorkloadColumns, weights: Weights, mean: Floats, count: int, context: Singles
) -> None:
    """Fill in the WORK_FEATURES of the context, [1,15]."""
    has_carbon = np.isfinite(mean[RELATIVE_ZONE_CARBON])
    memory = mean[RELATIVE_MEMORY_SIZE]
    shared = _work_columns(workload, weights, has_carbon, memory, count)
    _put(shared, context.T, 0, _IN_ORDER)


@borrowing
def fill_missing_zones(zone: npt.NDArray[Any], rows: Integers, means: Floats) -> tuple[int, int]:
    """Give zones without data, NaN in [2,Z], the mean of the candidates that have data.

    So they are neither preferred nor avoided. If no candidate of `rows` has data, all keep NaN.
    Return how many candidates lacked carbon, and how many a price.
    """
    return _fill_gap(zone, rows, means[CARBON]), _fill_gap(zone, rows, means[PRICE])


@borrowing
def _fill_gap(zone: npt.NDArray[Any], rows: Integers, means: Floats) -> int:
    known, total = 0, 0.0
    for place in range(rows.size):
        value = means[zone[rows[place]]]
        if not np.isnan(value):
            known, total = known + 1, total + value
    if 0 < known < rows.size:
        mean = total / known
        for place in range(rows.size):
            if np.isnan(means[zone[rows[place]]]):
                means[zone[rows[place]]] = mean
    return rows.size - known
