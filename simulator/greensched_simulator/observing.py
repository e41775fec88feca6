"""What a `where` rule sees of nodes with room: the policies' encoding, node by node, compiled."""

from typing import Any

import numpy as np
import numpy.typing as npt

from greensched_policies.cost import (
    CostModel,
    Floats,
    Integers,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from greensched_policies.missing_data import mean_filled
from greensched_policies.observation import (
    RELATIVE_FEATURES,
    RELATIVE_MEMORY_SIZE,
    RELATIVE_PLACES,
    RELATIVE_ZONE_CARBON,
    ROOM_FEATURES,
    Weights,
    context_columns,
    leave_out_unknown,
    relative_columns,
    relative_scale,
    room_columns,
)
from greensched_policies.sleeping import SleepColumns, with_waking
from greensched_policies.transfers import TransferColumns, with_transfer
from greensched_simulator.compiled import borrowing, compiled, fast, inlined
from greensched_simulator.grid_table import CARBON, PRICE, GridTable, means_over

Singles = npt.NDArray[np.float32]

_IN_ORDER = (0, 1, 2, 3, 4, 5, 6, 7)
_Eight = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
_Rows = tuple[int, int, int, int, int, int, int, int]

_mean_filled = compiled(mean_filled)
_placement_cost = compiled(placement_cost, inlined)
_relative_columns = compiled(relative_columns, inlined)
_room_columns = compiled(room_columns, inlined)
_relative_scale = compiled(relative_scale, inlined)
_context_columns = compiled(context_columns, inlined)
_leave_out_unknown = compiled(leave_out_unknown)
_with_waking = compiled(with_waking, inlined)
_with_transfer = compiled(with_transfer, inlined)


@fast
def observe(
    table: Floats,
    asleep: Floats,
    moved: Floats,
    rows: Integers,
    zone: Integers,
    means: Floats,
    workload: WorkloadColumns,
    model: CostModel,
    weights: Weights,
    with_room: bool,
    features: Singles,
    context: Singles,
) -> None:
    """Fill in what a rule sees of some rows of a table [12,N]: `encode_where`, node by node.

    `asleep` holds what sleep does to each of them, [3,K], or no columns; `moved` likewise what
    bringing data there takes, [4,K]; `means` are those of each zone's carbon and price over the
    run, [2,Z], and `zone` tells whose a row has, [N]. The workload is one, in numbers. `features`
    are [1,16,K] or more columns, and `context` [1,8]; the ROOM_FEATURES are left as they are
    without `with_room`.
    """
    kinds = len(RELATIVE_FEATURES)
    room = np.empty((2 * kinds + 1, rows.size))  # one array: each takes a call
    values, magnitudes, shares = room[:kinds], room[kinds : 2 * kinds], room[2 * kinds]
    mean = np.empty(kinds)
    describe(table, asleep, moved, rows, zone, means, workload, model, with_room, values, features)
    prepare_means(values, magnitudes, shares)
    np.dot(magnitudes, shares, mean)
    make_relative(values, mean, features)
    fill_context(workload, weights, mean, rows.size, context)
    if not np.isfinite(mean.sum()):
        _leave_out_unknown(features, np.isfinite(mean).reshape((1, mean.size)))


@borrowing
def describe(
    table: Floats,
    asleep: Floats,
    moved: Floats,
    rows: Integers,
    zone: Integers,
    means: Floats,
    workload: WorkloadColumns,
    model: CostModel,
    with_room: bool,
    values: Floats,
    features: Singles,
) -> None:
    """Fill in what is to be made relative, [8,K], and what room is left, in `features` [1,16,K]."""
    for place in range(rows.size):
        row: Any = np.uintp(rows[place])
        node = NodeColumns(
            table[0, row], table[1, row], table[2, row], table[3, row],
            table[4, row], table[5, row], table[6, row], table[7, row],
            table[8, row], table[9, row], table[10, row], table[11, row],
        )  # fmt: skip
        signals = ZoneColumns(means[CARBON, zone[row]], means[PRICE, zone[row]])
        cost = _placement_cost(node, workload, signals, model)
        if asleep.shape[1] > 0:
            sleep = SleepColumns(asleep[0, place], asleep[1, place], asleep[2, place])
            cost = _with_waking(cost, node, sleep, signals)
        if moved.shape[1] > 0:
            transfer = TransferColumns(
                moved[0, place], moved[1, place], moved[2, place], moved[3, place]
            )
            cost = _with_transfer(cost, transfer)
        _put(_relative_columns(node, signals, cost), values, place, _IN_ORDER)
        if with_room:
            _put(_room_columns(node, workload, cost, model), features[0], place, ROOM_FEATURES)


@inlined
def _put(column: _Eight, table: npt.NDArray[Any], place: int, rows: _Rows) -> None:
    """Put one candidate's eight values into rows of a table [K,N]; loops over them are slower."""
    table[rows[0], place], table[rows[1], place] = column[0], column[1]
    table[rows[2], place], table[rows[3], place] = column[2], column[3]
    table[rows[4], place], table[rows[5], place] = column[4], column[5]
    table[rows[6], place], table[rows[7], place] = column[6], column[7]


@borrowing
def prepare_means(values: Floats, magnitudes: Floats, shares: Floats) -> None:
    """Fill in the magnitudes of [8,K] values, and the share of each in the mean, [K]."""
    shares[:] = 1.0 / shares.size
    for kind in range(values.shape[0]):
        own, positive = values[kind], magnitudes[kind]
        for place in range(own.size):
            positive[place] = abs(own[place])


@borrowing
def make_relative(values: Floats, mean: Floats, features: Singles) -> None:
    """Put [8,K] values, each row divided by its mean magnitude, in their places in [1,16,K]."""
    for kind in range(mean.size):
        factor, offset = _relative_scale(mean[kind])
        own, seen = values[kind], features[0, RELATIVE_PLACES[kind]]
        for place in range(own.size):
            seen[place] = own[place] * factor + offset


@borrowing
def fill_context(
    workload: WorkloadColumns, weights: Weights, mean: Floats, count: int, context: Singles
) -> None:
    """Fill in what all candidates share, [1,8]."""
    has_carbon = np.isfinite(mean[RELATIVE_ZONE_CARBON])
    memory = mean[RELATIVE_MEMORY_SIZE]
    shared = _context_columns(workload, weights, has_carbon, memory, count)
    _put(shared, context.T, 0, _IN_ORDER)


@fast
def zone_means(
    zone: Integers, rows: Integers, grid: GridTable, begin_s: float, end_s: float
) -> Floats:
    """Return the zones' means from `begin_s` to `end_s`, [2,Z]; NaN where all lack data.

    A zone without data gets the mean of the candidates, `rows`, that have some.
    """
    means = means_over(grid, begin_s, end_s)
    if np.isnan(means).any():
        for signal in (CARBON, PRICE):
            known = means[signal, zone[rows]].reshape((1, rows.size))
            filled = _mean_filled(known)[0]
            for place in range(rows.size):
                means[signal, zone[rows[place]]] = filled[0, place]
    return means
