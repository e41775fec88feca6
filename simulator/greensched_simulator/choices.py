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
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from greensched_policies.courses import Integers
from greensched_policies.missing_data import mean_filled
from greensched_policies.observation import (
    NODE_FEATURES,
    RELATIVE_FEATURES,
    ROOM_FEATURES,
    Observation,
    Weights,
    relative_columns,
    room_columns,
    with_relative,
)
from greensched_policies.pausing import PauseColumns
from greensched_policies.queue_columns import QueueColumns
from greensched_policies.sleeping import SleepColumns, with_waking
from greensched_policies.slots import SlotColumns
from greensched_simulator.compiled import callee, compiled, fast, inlined
from greensched_simulator.grid_table import (
    CARBON,
    PRICE,
    GridTable,
    means_over,
)
from greensched_simulator.power_states import sleep_seen

Singles = npt.NDArray[np.float32]

NOWHERE = -1  # the node of a job that has none
_EPSILON = 1e-9  # share of a capacity that sums of floats may be off by

_RELATIVE = (0, 1, 2, 3, 4, 5, 6, 7)  # their places are their order
_Eight = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
_Rows = tuple[int, int, int, int, int, int, int, int]

_mean_filled = compiled(mean_filled)
_placement_cost = compiled(placement_cost, inlined)
_relative_columns = compiled(relative_columns, inlined)
_room_columns = compiled(room_columns, inlined)
_with_relative = compiled(with_relative)
_with_waking = compiled(with_waking, inlined)


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
    cap: Floats  # [4, N] see `running`; [4, 0] where nobody caps
    cpu_free: Floats  # [N] cores not requested
    memory_free: Floats  # [N] bytes not requested
    gpu_free: Floats  # [N] boards not requested
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
    )


@fast
def choose_node(
    cluster: Cluster,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
    workload: WorkloadColumns,
    now_s: float,
) -> int:
    """Return the node that the `where` rule likes best of those with room, -1 if there is none."""
    count = search(
        cluster,
        workload.cpu_cores[0, 0],
        workload.memory_bytes[0, 0],
        workload.gpus[0, 0],
        terms.nodes_to_score,
        terms.goes_on,
    )
    if count == 0:
        return -1
    rows = cluster.found[:count]
    relative_cost = score_nodes(cluster, rows, grid, terms, rules, workload, now_s)
    return rows[np.argmin(relative_cost)]


@fast
def score_nodes(
    cluster: Cluster,
    rows: Integers,
    grid: GridTable,
    terms: Terms,
    rules: Rules,
    workload: WorkloadColumns,
    now_s: float,
) -> Singles:
    """Return the relative cost of each of `rows` by the `where` rule, [N], as the extender does."""
    seen = candidates_seen(cluster, rows, grid, terms, workload, now_s)
    return rules.where[0](seen.nodes, seen.context)[0]


@fast
def candidates_seen(
    cluster: Cluster,
    rows: Integers,
    grid: GridTable,
    terms: Terms,
    workload: WorkloadColumns,
    now_s: float,
) -> Observation:
    """Return what a `where` rule sees of `rows` now, by the forecast of this moment."""
    zones = zones_of(cluster, rows, grid, now_s, now_s + workload.runtime_s[0, 0])
    asleep = sleep_seen(cluster.sleep, cluster.columns[11], rows, now_s)
    return observed(cluster.columns, asleep, rows, zones, workload, terms.model, terms.weights)


@fast
def observed(
    table: Floats,
    asleep: Floats,
    rows: Integers,
    zones: ZoneColumns,
    workload: WorkloadColumns,
    model: CostModel,
    weights: Weights,
) -> Observation:
    """Return what a rule sees of some rows of a table [12,N]: `encode_where`, node by node.

    `asleep` holds what sleep does to each of them, [3,K], or nothing, [3,0].
    """
    features = np.empty((1, len(NODE_FEATURES), rows.size), np.float32)
    values = np.empty((1, len(RELATIVE_FEATURES), rows.size))
    asked = WorkloadColumns(
        workload.cpu_cores[0, 0], workload.memory_bytes[0, 0],
        workload.gpus[0, 0], workload.runtime_s[0, 0],
    )  # fmt: skip
    for place in range(rows.size):
        row = rows[place]
        node = NodeColumns(
            table[0, row], table[1, row], table[2, row], table[3, row],
            table[4, row], table[5, row], table[6, row], table[7, row],
            table[8, row], table[9, row], table[10, row], table[11, row],
        )  # fmt: skip
        zone = ZoneColumns(zones.carbon_g_per_kwh[0, place], zones.price_per_mwh[0, place])
        cost = _placement_cost(node, asked, zone, model)
        if asleep.shape[1] > 0:
            sleep = SleepColumns(asleep[0, place], asleep[1, place], asleep[2, place])
            cost = _with_waking(cost, node, sleep, zone)
        _put(_relative_columns(node, zone, cost), values, place, _RELATIVE)
        _put(_room_columns(node, asked, cost, model), features, place, ROOM_FEATURES)
    return _with_relative(features, values, workload, weights)


@inlined
def _put(column: _Eight, table: npt.NDArray[Any], place: int, rows: _Rows) -> None:
    """Put one candidate's eight values into rows of a table [1,K,N]; loops over them are slower."""
    table[0, rows[0], place], table[0, rows[1], place] = column[0], column[1]
    table[0, rows[2], place], table[0, rows[3], place] = column[2], column[3]
    table[0, rows[4], place], table[0, rows[5], place] = column[4], column[5]
    table[0, rows[6], place], table[0, rows[7], place] = column[6], column[7]


@fast
def zones_of(
    cluster: Cluster, rows: Integers, grid: GridTable, begin_s: float, end_s: float
) -> ZoneColumns:
    """Return the grid behind each of `rows` from `begin_s` to `end_s`; NaN where all lack data."""
    means = means_over(grid, begin_s, end_s)
    zone = cluster.zone
    carbon, price = np.empty((1, rows.size)), np.empty((1, rows.size))
    for place in range(rows.size):
        carbon[0, place] = means[CARBON, zone[rows[place]]]
        price[0, place] = means[PRICE, zone[rows[place]]]
    if np.isnan(means).any():
        return ZoneColumns(_mean_filled(carbon)[0], _mean_filled(price)[0])
    return ZoneColumns(carbon, price)
