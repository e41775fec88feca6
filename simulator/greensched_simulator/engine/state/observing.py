"""The `where` rule's view of nodes with room: the policies' encoding, node by node, compiled."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.billing.transfers import with_transfer
from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.cost import (
    Floats,
    Integers,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from greensched_policies.costs.sleeping import with_waking
from greensched_policies.encoding.missing_data import mean_filled
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
from greensched_policies.kernel.grid_means import fill_means
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable
from greensched_simulator.arrays.moving import Data, moving_seen
from greensched_simulator.engine.state.cluster import ClusterState, columns_of, is_empty
from greensched_simulator.engine.state.power_states import sleep_seen
from greensched_simulator.engine.state.terms import RunConfig

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


class Scratch(NamedTuple):
    """Working memory for up to K candidates; its contents last for one observation."""

    means: Floats  # [2,Z] each zone's mean carbon and price over the run
    values: Floats  # [8,K] RELATIVE_FEATURES before the division by their means
    mean: Floats  # [8] their mean magnitudes


class NewWorker(NamedTuple):
    """One worker that needs a node now."""

    workload: WorkloadColumns  # its requests, each a number
    data: Data
    now_s: float
    planned_zone: int  # whose nodes are preferred; -1: none


class NodesShown(NamedTuple):
    """What a `where` rule is shown of nodes; the candidates fill the first columns."""

    features: Singles  # [1,16,K]
    context: Singles  # [1,8]
    with_room: bool  # whether the ROOM_FEATURES are filled in


@fast
def empty_scratch(zones: int, most: int) -> Scratch:
    """Return working memory for up to `most` candidates."""
    kinds = len(RELATIVE_FEATURES)
    return Scratch(np.empty((2, zones)), np.empty((kinds, most)), np.empty(kinds))


@borrowing
def observe(
    cluster: ClusterState,
    rows: Integers,
    worker: NewWorker,
    terms: RunConfig,
    scratch: Scratch,
    shown: NodesShown,
) -> None:
    """Fill in what a rule is shown of some nodes of a cluster: `encode_where`, node by node.

    The caller has filled in the scratch's zone means.
    """
    describe(cluster, rows, worker, terms, scratch, shown)
    is_known = fill_mean_magnitudes(scratch.values, rows.size, scratch.mean)
    make_features_relative(scratch.values, rows.size, scratch.mean, shown.features)
    fill_context(worker.workload, terms.weights, scratch.mean, rows.size, shown.context)
    if not is_known:
        _leave_out(scratch.mean, shown.features)


@borrowing
def describe(
    cluster: ClusterState,
    rows: Integers,
    worker: NewWorker,
    terms: RunConfig,
    scratch: Scratch,
    shown: NodesShown,
) -> None:
    """Fill in the RELATIVE_FEATURES in `scratch`, and the ROOM_FEATURES in `shown`."""
    workload, data, links, means = worker.workload, worker.data, terms.links, scratch.means
    is_brought = links.shape[1] > 0 and data.size_bytes > 0.0
    for place in range(rows.size):
        row: Any = np.uintp(rows[place])
        node, zone = columns_of(cluster, row), cluster.zone[row]
        signals = ZoneColumns(means[CARBON, zone], means[PRICE, zone])
        cost = _placement_cost(node, workload, signals, terms.model)
        if cluster.sleep.shape[1] > 0:
            sleep = sleep_seen(cluster.sleep, row, is_empty(cluster, row), worker.now_s)
            cost = _with_waking(cost, node, sleep, signals)
        if is_brought:
            cost = _with_transfer(cost, moving_seen(links, data, zone, means))
        _put(_relative_columns(node, signals, cost), scratch.values, place, _IN_ORDER)
        if shown.with_room:
            room = _room_columns(node, workload, cost, terms.model)
            _put(room, shown.features[0], place, ROOM_FEATURES)


@fast
def _leave_out(mean: Floats, features: Singles) -> None:
    _leave_out_unknown(features, np.isfinite(mean).reshape((1, mean.size)))


@inlined
def _put(column: _Eight, table: npt.NDArray[Any], place: int, rows: _Rows) -> None:
    """Put one candidate's eight values into rows of a table [K,N]; loops over them are slower."""
    table[rows[0], place], table[rows[1], place] = column[0], column[1]
    table[rows[2], place], table[rows[3], place] = column[2], column[3]
    table[rows[4], place], table[rows[5], place] = column[4], column[5]
    table[rows[6], place], table[rows[7], place] = column[6], column[7]


@borrowing
def fill_mean_magnitudes(values: Floats, count: int, mean: Floats) -> bool:
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
def make_features_relative(values: Floats, count: int, mean: Floats, features: Singles) -> None:
    """Divide each row of [8,K] by its mean magnitude, into its place in the features [1,16,K]."""
    for kind in range(mean.size):
        factor, offset = _relative_scale(mean[kind])
        own, seen = values[kind], features[0, RELATIVE_PLACES[kind]]
        for place in range(count):
            seen[place] = own[place] * factor + offset


@borrowing
def fill_context(
    workload: WorkloadColumns, weights: Weights, mean: Floats, count: int, context: Singles
) -> None:
    """Fill in the features that all candidates share, [1,8]."""
    has_carbon = np.isfinite(mean[RELATIVE_ZONE_CARBON])
    memory = mean[RELATIVE_MEMORY_SIZE]
    shared = _context_columns(workload, weights, has_carbon, memory, count)
    _put(shared, context.T, 0, _IN_ORDER)


@borrowing
def fill_zone_means(
    zone: Integers, rows: Integers, grid: GridTable, begin_s: float, end_s: float, means: Floats
) -> None:
    """Fill in the zones' means from `begin_s` to `end_s`, [2,Z]; NaN where all lack data.

    A zone without data gets the mean of the candidates, `rows`, that have data.
    """
    fill_means(grid, begin_s, end_s, means)
    for place in range(grid.per_step.size):
        if np.isnan(means[CARBON, place]) or np.isnan(means[PRICE, place]):
            _fill_gaps(zone, rows, means)
            return


@fast
def _fill_gaps(zone: Integers, rows: Integers, means: Floats) -> None:
    for signal in (CARBON, PRICE):
        known = means[signal, zone[rows]].reshape((1, rows.size))
        filled = _mean_filled(known)[0]
        for place in range(rows.size):
            means[signal, zone[rows[place]]] = filled[0, place]
