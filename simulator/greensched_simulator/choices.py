"""Where a job runs: the nodes with room, scored by the policies' own compiled functions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.catalogue import (
    BAD_WHEN_RULES,
    BAD_WHERE_RULES,
    ORDER_RULES,
    WHEN_RULES,
    WHERE_RULES,
)
from greensched_policies.cost import (
    CostModel,
    Floats,
    NodeColumns,
    PlacementCost,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from greensched_policies.missing_data import mean_filled
from greensched_policies.observation import Observation, Weights, encode_where
from greensched_policies.queue_columns import QueueColumns
from greensched_policies.slots import SlotColumns
from greensched_simulator.compiled import callee, compiled, fast, inlined
from greensched_simulator.grid_table import (
    CARBON,
    PRICE,
    GridTable,
    means_over,
)

Integers = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

NOWHERE = -1  # the node of a job that has none
_EPSILON = 1e-9  # share of a capacity that sums of floats may be off by

_mean_filled = compiled(mean_filled)


class Terms(NamedTuple):
    """What holds for a whole run."""

    discipline: int  # of the queue: see `queueing`
    slot_s: float  # starts are considered this far apart
    nodes_to_score: int  # feasible nodes that are looked at; kube-scheduler's own limit
    weights: Weights
    model: CostModel
    may_reject: bool = False  # whether the `when` rule may give infinite costs


class Rules(NamedTuple):
    """The policies' functions that decide, each in a tuple of one: called by its address."""

    when: tuple[Callable[[SlotColumns], Floats]]
    price: tuple[Callable[..., PlacementCost]]
    encode: tuple[Callable[..., Observation]]
    where: tuple[Callable[[Singles, Singles], Singles]]
    order: tuple[Callable[[QueueColumns], Floats]]


class Cluster(NamedTuple):
    """The nodes as they are now; `columns` are the fields of NodeColumns in their order."""

    columns: Floats  # [12, N]
    cpu_free: Floats  # [N] cores not requested
    memory_free: Floats  # [N] bytes not requested
    gpu_free: Floats  # [N] boards not requested
    zone: Integers  # [N]
    pods: Integers  # [N] jobs that run there
    next_node: Integers  # [1] where the next search begins
    found: Integers  # [N] room for the search


def rules_of(when: str, where: str, order: str = "first-come") -> Rules:
    """Return rules of the catalogue, the costs and the encoding, compiled or loaded."""
    one = np.ones((1, 1))
    nodes, workload = NodeColumns._make([one] * 12), WorkloadColumns._make([one[0]] * 4)
    model, weights = CostModel(one[0], 1.0, 1.0, False), Weights(1.0, 1.0, 1.0)
    zones, cost = ZoneColumns(one, one), PlacementCost._make([one] * 6)
    nodes_seen = np.ones((2, 2, 2), np.float32).transpose((0, 2, 1))  # neither C nor F
    slots = SlotColumns._make([one] * 8)
    queue = QueueColumns._make([one] * 4)
    return Rules(
        callee({**WHEN_RULES, **BAD_WHEN_RULES}[when], slots),
        callee(placement_cost, nodes, workload, zones, model),
        callee(encode_where, nodes, workload, zones, cost, model, weights),
        callee({**WHERE_RULES, **BAD_WHERE_RULES}[where], nodes_seen, np.ones((1, 1), np.float32)),
        callee(ORDER_RULES[order], queue),
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
def search(cluster: Cluster, cpu_cores: float, memory_bytes: float, gpus: float, most: int) -> int:
    """Find up to `most` nodes with room, going on where the last search stopped; return how many.

    Their places stand in `cluster.found`.
    """
    count, nodes, first = 0, cluster.cpu_free.size, cluster.next_node[0]
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
        workload.cpu_cores[0],
        workload.memory_bytes[0],
        workload.gpus[0],
        terms.nodes_to_score,
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
    zones = zones_of(cluster, rows, grid, now_s, now_s + workload.runtime_s[0])
    nodes = gathered(cluster.columns, rows)
    cost = rules.price[0](nodes, workload, zones, terms.model)
    seen = rules.encode[0](nodes, workload, zones, cost, terms.model, terms.weights)
    return rules.where[0](seen.nodes, seen.context)[0]


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
    return ZoneColumns(_mean_filled(carbon)[0], _mean_filled(price)[0])


@fast
def gathered(table: Floats, rows: Integers) -> NodeColumns:
    """Return some rows' columns of a table [12,N] as those of one decision, [1,rows] each."""
    return NodeColumns(
        _column(table[0], rows), _column(table[1], rows), _column(table[2], rows),
        _column(table[3], rows), _column(table[4], rows), _column(table[5], rows),
        _column(table[6], rows), _column(table[7], rows), _column(table[8], rows),
        _column(table[9], rows), _column(table[10], rows), _column(table[11], rows),
    )  # fmt: skip


@inlined
def _column(values: Floats, rows: Integers) -> Floats:
    column = np.empty((1, rows.size))
    for place in range(rows.size):
        column[0, place] = values[rows[place]]
    return column
