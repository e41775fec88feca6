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
)
from greensched_policies.encoding.observation import (
    RELATIVE_FEATURES,
    RELATIVE_MEMORY_SIZE,
    RELATIVE_PLACES,
    RELATIVE_ZONE_CARBON,
    ROOM_FEATURES,
    context_columns,
    leave_out_unknown,
    relative_columns,
    relative_scale,
    room_columns,
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

_IN_ORDER = (0, 1, 2, 3, 4, 5, 6, 7)
_Eight = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
_Rows = tuple[int, int, int, int, int, int, int, int]

cost_of_placing = compiled(placement_cost, inlined)
_relative_columns = compiled(relative_columns, inlined)
_room_columns = compiled(room_columns, inlined)
_relative_scale = compiled(relative_scale, inlined)
_context_columns = compiled(context_columns, inlined)
_leave_out_unknown = compiled(leave_out_unknown)


class Scratch(NamedTuple):
    """Working memory for up to K candidates; its contents last for one observation."""

    means: Floats  # [2,Z] each zone's mean carbon and price over the run
    values: Floats  # [8,K] RELATIVE_FEATURES before the division by their means
    mean: Floats  # [8] their mean magnitudes


class NodesShown(NamedTuple):
    """What a `where` rule is shown of nodes; the candidates fill the first columns."""

    features: Singles  # [1,16,K]
    context: Singles  # [1,8]
    with_room: bool  # whether the ROOM_FEATURES are filled in


class PodToPlace(NamedTuple):
    """A pod that needs a node, and what decides besides nodes and zones."""

    workload: WorkloadColumns  # its requests, each a number
    model: CostModel
    weights: Weights


@fast
def empty_scratch(zones: int, most: int) -> Scratch:
    """Return working memory for up to `most` candidates."""
    kinds = len(RELATIVE_FEATURES)
    return Scratch(np.empty((2, zones)), np.empty((kinds, most)), np.empty(kinds))


@fast
def see_nodes(
    table: NodeTable,
    placing: PodToPlace,
    scratch: Scratch,
    shown: NodesShown,
    costs: Singles,
) -> None:
    """Fill in what a policy is shown of the N nodes of a table, and their costs.

    The scratch has the zones' means, without gaps. `costs`, [2,N], are the watts that the pod adds
    at the meter, and its expected runtime in seconds.
    """
    _describe(table, placing, scratch, shown, costs)
    complete_observation(placing.workload, placing.weights, scratch, table.zone.size, shown)


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
        own = CostModel(
            model.curve_watts, model.utilisation_ratio, gpu_ratio, model.empty_nodes_sleep
        )
        cost = cost_of_placing(node, placing.workload, signals, own)
        put_relative(node, signals, cost, scratch.values, place)
        put_room(node, placing.workload, cost, own, shown.features, place)
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
    """Put the ROOM_FEATURES of one candidate into the features [1,16,K]."""
    _put(_room_columns(node, workload, cost, model), features[0], place, ROOM_FEATURES)


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
    """Divide each row of [8,K] by its mean magnitude, into its place in the features [1,16,K]."""
    for kind in range(mean.size):
        factor, offset = _relative_scale(mean[kind])
        own, seen = values[kind], features[0, RELATIVE_PLACES[kind]]
        for place in range(count):
            seen[place] = own[place] * factor + offset


@borrowing
def _fill_context(
    workload: WorkloadColumns, weights: Weights, mean: Floats, count: int, context: Singles
) -> None:
    """Fill in the features that all candidates share, [1,8]."""
    has_carbon = np.isfinite(mean[RELATIVE_ZONE_CARBON])
    memory = mean[RELATIVE_MEMORY_SIZE]
    shared = _context_columns(workload, weights, has_carbon, memory, count)
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
