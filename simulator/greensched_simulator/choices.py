"""Where a job runs: the nodes with room, scored by the policies' own compiled functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.capping import CapColumns
from greensched_policies.catalogue import (
    BAD_WHEN_RULES,
    CAP_RULES,
    ORDER_RULES,
    PAUSE_RULES,
    WHEN_RULES,
    WHERE_RULES,
)
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
    CONTEXT_FEATURES,
    NODE_FEATURES,
    RELATIVE_FEATURES,
    RELATIVE_MEMORY_SIZE,
    RELATIVE_PLACES,
    RELATIVE_ZONE_CARBON,
    ROOM_FEATURES,
    Observation,
    Weights,
    context_columns,
    leave_out_unknown,
    relative_columns,
    relative_scale,
    room_columns,
)
from greensched_policies.pausing import PauseColumns
from greensched_policies.queue_columns import QueueColumns
from greensched_policies.scaling import NO_SCALING
from greensched_policies.sleeping import SleepColumns, with_waking
from greensched_policies.slots import SlotColumns
from greensched_policies.transfers import TransferColumns, with_transfer
from greensched_simulator.boards import have_room
from greensched_simulator.compiled import borrowing, callee, compiled, fast, inlined
from greensched_simulator.grid_table import (
    CARBON,
    PRICE,
    GridTable,
    means_over,
)
from greensched_simulator.moving import NO_LINKS, Data, moving_seen
from greensched_simulator.power_states import sleep_seen

Singles = npt.NDArray[np.float32]

NOWHERE = -1  # the node of a job that has none
_EPSILON = 1e-9  # share of a capacity that sums of floats may be off by

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


class Terms(NamedTuple):
    """What holds for a whole run."""

    discipline: int  # of the queue: see `queueing`
    slot_s: float  # starts are considered this far apart
    nodes_to_score: int  # nodes with room that a search looks for
    weights: Weights
    model: CostModel
    goes_on: bool = True  # a search begins where the last one stopped, else at the first node
    may_reject: bool = False  # whether the `when` rule may give infinite costs
    may_suspend: bool = False  # whether the `pause` rule may have anything suspended
    scaling: Floats = NO_SCALING  # the world's curves; NO_SCALING where the pause rule keeps sizes
    links: Floats = NO_LINKS  # between zones: see `moving`


class Rules(NamedTuple):
    """The policies' functions that decide, each in a tuple of one: called by its address."""

    when: tuple[Callable[[SlotColumns], Floats]]
    where: tuple[Callable[[Singles, Singles], Singles]]
    order: tuple[Callable[[QueueColumns], Floats]]
    cap: tuple[Callable[[CapColumns], Floats]]
    pause: tuple[Callable[[PauseColumns], Floats]]


class Cluster(NamedTuple):
    """The nodes as they are now; `columns` are the fields of NodeColumns in their order."""

    columns: Floats  # [12, N]
    sleep: Floats  # [6, N] see `power_states`; [6, 0] where no node ever sleeps
    cap: Floats  # [4, N] see `progress`; [4, 0] where nobody caps
    cpu_free: Floats  # [N] cores not requested
    memory_free: Floats  # [N] bytes not requested
    gpu_free: Floats  # [N] boards not requested
    boards: Floats  # [N,B] what is free of each; [N,0] where all ask for whole ones: see `boards`
    zone: Integers  # [N]
    pods: Integers  # [N] jobs that run there
    next_node: Integers  # [1] where the next search begins
    found: Integers  # [N] room for the search


def rules_of(
    when: str,
    where: str,
    order: str = "first-come",
    cap: str = "full-speed",
    pause: str = "run-through",
) -> Rules:
    """Return rules of the catalogue, compiled or loaded."""
    one = np.ones((1, 1))
    nodes_seen = np.ones((2, 2, 2), np.float32).transpose((0, 2, 1))  # neither C nor F
    return Rules(
        callee((WHEN_RULES | BAD_WHEN_RULES)[when], SlotColumns._make([one] * 8)),
        callee(WHERE_RULES[where], nodes_seen, np.ones((1, 1), np.float32)),
        callee(ORDER_RULES[order], QueueColumns._make([one] * 4)),
        callee(CAP_RULES[cap], CapColumns._make([one] * 6)),
        callee(PAUSE_RULES[pause], PauseColumns._make([one] * 3)),
    )


def nodes_to_score(nodes: int) -> int:
    """Return how many feasible nodes kube-scheduler looks for before it scores.

    numFeasibleNodesToFind of kubernetes/pkg/scheduler/schedule_one.go with its default: all up to
    100 nodes, then 50 % less 1 % per 125 nodes, at least 5 %, and never less than 100 nodes.
    """
    if nodes < 100:
        return nodes
    percentage = max(50 - nodes // 125, 5)
    return max(nodes * percentage // 100, 100)


@inlined
def search(
    cluster: Cluster,
    cpu_cores: float,
    memory_bytes: float,
    gpus: float,
    most: int,
    goes_on: bool,
) -> int:
    """Find up to `most` nodes with room, from the first or from where the last search stopped.

    Return how many; their places stand in `cluster.found`.
    """
    count, nodes = 0, cluster.cpu_free.size
    first = cluster.next_node[0] if goes_on else 0
    looked_at = 0
    while looked_at < nodes and count < most:
        node = first + looked_at
        node -= nodes if node >= nodes else 0
        if fits(cluster, node, cpu_cores, memory_bytes, gpus):
            cluster.found[count] = node
            count += 1
        looked_at += 1
    cluster.next_node[0] = (first + looked_at) % nodes
    return count


@inlined
def fits(cluster: Cluster, node: int, cpu_cores: float, memory_bytes: float, gpus: float) -> bool:
    """Tell whether a node has room for the request."""
    return (
        cpu_cores <= cluster.cpu_free[node] + _EPSILON * cluster.columns[0, node]
        and memory_bytes <= cluster.memory_free[node] + _EPSILON * cluster.columns[2, node]
        and gpus <= cluster.gpu_free[node] + _EPSILON
        and have_room(cluster.boards, node, gpus)
    )


@borrowing
def choose_node(
    cluster: Cluster,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
    workload: WorkloadColumns,
    data: Data,
    now_s: float,
) -> int:
    """Return the node that the `where` rule likes best of those with room, -1 if there is none."""
    count = search(
        cluster,
        float(workload.cpu_cores),
        float(workload.memory_bytes),
        float(workload.gpus),
        terms.nodes_to_score,
        terms.goes_on,
    )
    if count == 0:
        return -1
    return best_of(cluster, cluster.found[:count], grid, terms, rules, workload, data, now_s)


@fast
def best_of(
    cluster: Cluster,
    rows: Integers,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
    workload: WorkloadColumns,
    data: Data,
    now_s: float,
) -> int:
    """Return the one of `rows` that the `where` rule likes best."""
    relative_cost = score_nodes(cluster, rows, grid, terms, rules, workload, data, now_s)
    return int(rows[np.argmin(relative_cost)])


@fast
def score_nodes(
    cluster: Cluster,
    rows: Integers,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
    workload: WorkloadColumns,
    data: Data,
    now_s: float,
) -> Singles:
    """Return the relative cost of each of `rows` by the `where` rule, [N], as the extender does."""
    seen = candidates_seen(cluster, rows, grid, terms, workload, data, now_s)
    return rules.where[0](seen.nodes, seen.context)[0]


@fast
def candidates_seen(
    cluster: Cluster,
    rows: Integers,
    grid: GridTable,
    terms: Terms,
    workload: WorkloadColumns,
    data: Data,
    now_s: float,
) -> Observation:
    """Return what a `where` rule sees of `rows` now, by the forecast of this moment."""
    means = zone_means(cluster.zone, rows, grid, now_s, now_s + float(workload.runtime_s))
    asleep = sleep_seen(cluster.sleep, cluster.columns[11], rows, now_s)
    moved = moving_seen(terms.links, data, cluster.zone, rows, means)
    return observed(
        cluster.columns, asleep, moved, rows, cluster.zone, means, workload, terms.model,
        terms.weights,
    )  # fmt: skip


@fast
def observed(
    table: Floats,
    asleep: Floats,
    moved: Floats,
    rows: Integers,
    zone: Integers,
    means: Floats,
    workload: WorkloadColumns,
    model: CostModel,
    weights: Weights,
) -> Observation:
    """Return what a rule sees of some rows of a table [12,N]: `encode_where`, node by node.

    `asleep` holds what sleep does to each of them, [3,K], or nothing, [3,0]; `moved` likewise what
    bringing data there takes, [4,K]; `means` are those of each zone's carbon and price over the
    run, [2,Z], and `zone` tells whose a row has, [N]. The workload is one, in numbers.
    """
    features = np.empty((1, len(NODE_FEATURES), rows.size), np.float32)
    context = np.empty((1, len(CONTEXT_FEATURES)), np.float32)
    values = np.empty((len(RELATIVE_FEATURES), rows.size))
    magnitudes = np.empty((len(RELATIVE_FEATURES), rows.size))
    shares, mean = np.empty(rows.size), np.empty(len(RELATIVE_FEATURES))
    describe(table, asleep, moved, rows, zone, means, workload, model, values, features)
    prepare_means(values, magnitudes, shares)
    np.dot(magnitudes, shares, mean)
    make_relative(values, mean, features)
    fill_context(workload, weights, mean, rows.size, context)
    if not np.isfinite(mean.sum()):
        _leave_out_unknown(features, np.isfinite(mean).reshape((1, mean.size)))
    return Observation(features.transpose((0, 2, 1)), context)


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
    values: Floats,
    features: Singles,
) -> None:
    """Fill in what is to be made relative, [8,K], and what room is left, in `features` [1,16,K]."""
    for place in range(rows.size):
        row = rows[place]
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
