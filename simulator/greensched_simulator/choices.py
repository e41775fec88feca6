"""The two decisions of the engine, when and where, each by the policies' own compiled functions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.catalogue import WHEN_RULES, WHERE_RULES
from greensched_policies.cost import (
    CostModel,
    Floats,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from greensched_policies.missing_data import mean_filled
from greensched_policies.observation import Observation, Weights, encode_where
from greensched_policies.slots import SlotColumns
from greensched_simulator.compiled import callee, compiled, fast, inlined
from greensched_simulator.grid_table import (
    CARBON,
    PRICE,
    GridTable,
    integral_at,
    means_over,
    step_at,
)

Integers = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

MOST_SLOTS = 672  # a week of quarter hours
_EPSILON = 1e-9  # share of a capacity that sums of floats may be off by
_LEAST_MAGNITUDE = 1e-30

_mean_filled = compiled(mean_filled)


class Terms(NamedTuple):
    """What holds for a whole run."""

    slot_s: float  # starts are considered this far apart
    nodes_to_score: int  # feasible nodes that are looked at; kube-scheduler's own limit
    weights: Weights
    model: CostModel


class Rules(NamedTuple):
    """The policies' functions that decide, each in a tuple of one: called by its address."""

    when: tuple[Callable[[SlotColumns, Floats], Floats]]
    observe: tuple[Callable[..., Observation]]
    where: tuple[Callable[[Singles, Singles], Singles]]


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


def rules_of(when: str, where: str) -> Rules:
    """Return two rules of the catalogue and the encoding between them, compiled or loaded."""
    one = np.ones((1, 1))
    nodes, workload = NodeColumns._make([one] * 12), WorkloadColumns._make([one[0]] * 4)
    model, weights = CostModel(one[0], 1.0, 1.0, False), Weights(1.0, 1.0, 1.0)
    samples = (nodes, workload, ZoneColumns(one, one), model, weights)
    nodes_seen = np.ones((2, 2, 2), np.float32).transpose((0, 2, 1))  # neither C nor F
    slots = SlotColumns._make([one] * 6)
    return Rules(
        callee(WHEN_RULES[when], slots, one[0]),
        callee(observe, *samples),
        callee(WHERE_RULES[where], nodes_seen, np.ones((1, 1), np.float32)),
    )


def observe(
    nodes: NodeColumns,
    workload: WorkloadColumns,
    zones: ZoneColumns,
    model: CostModel,
    weights: Weights,
) -> Observation:
    """Return what a `where` policy sees of its candidates, as the extender reckons it."""
    cost = placement_cost(nodes, workload, zones, model)
    return encode_where(nodes, workload, zones, cost, model, weights)


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
    seen = rules.observe[0](
        gathered(cluster.columns, rows), workload, zones, terms.model, terms.weights
    )
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


@fast
def choose_start(
    grid: GridTable, terms: Terms, rules: Rules, now_s: float, runtime_s: float, latest_s: float
) -> float:
    """Return the start from `now_s` to `latest_s` that the `when` rule likes best."""
    count = min(int((latest_s - now_s) // terms.slot_s) + 1, MOST_SLOTS)
    if count <= 1:
        return now_s
    slots = slot_columns(grid, terms, now_s, runtime_s, count)
    cost = rules.when[0](slots, np.array([runtime_s]))
    return now_s + np.argmin(cost[0]) * terms.slot_s


@fast
def slot_columns(
    grid: GridTable, terms: Terms, now_s: float, runtime_s: float, count: int
) -> SlotColumns:
    """Return the candidate starts of one workload, the grid being that of the best zone of each."""
    zones = grid.starts.size - 1
    seen = np.empty((4, zones, count))
    for zone in range(zones):
        watch_run(grid, zone, terms.slot_s, now_s, runtime_s, seen)
    for signal in range(4):
        fill_gaps(seen[signal])
    by_carbon = terms.weights.carbon / max(mean_magnitude(seen[1]), _LEAST_MAGNITUDE)
    by_price = terms.weights.energy / max(mean_magnitude(seen[3]), _LEAST_MAGNITUDE)
    wait_s, weighted_over_run = np.empty((1, count)), np.empty((1, count))
    at_best = np.empty((4, 1, count))
    for place in range(count):
        best, least = 0, np.inf
        for zone in range(zones):
            weighted = by_carbon * seen[1, zone, place] + by_price * seen[3, zone, place]
            if weighted < least:
                best, least = zone, weighted
        wait_s[0, place] = place * terms.slot_s
        weighted_over_run[0, place] = least
        for signal in range(4):
            at_best[signal, 0, place] = seen[signal, best, place]
    return SlotColumns(wait_s, at_best[0], at_best[1], at_best[2], at_best[3], weighted_over_run)


@fast
def watch_run(
    grid: GridTable, zone: int, slot_s: float, now_s: float, runtime_s: float, seen: Floats
) -> None:
    """Fill in `seen`, [4,zones,slots], for one zone: carbon at the start and over the run, price.

    The steps that hold at a run's begin and end only move on from slot to slot.
    """
    begin, end = step_at(grid, zone, now_s), step_at(grid, zone, now_s + runtime_s)
    last, times_s = grid.starts[zone + 1] - 1, grid.times_s
    for signal in (CARBON, PRICE):
        values, sums, gaps_s = grid.values[signal], grid.sums[signal], grid.gaps_s[signal]
        at_start, over_run = seen[2 * signal, zone], seen[2 * signal + 1, zone]
        at, until = begin, end
        for place in range(at_start.size):
            begin_s = now_s + place * slot_s
            end_s = begin_s + runtime_s
            while at < last and times_s[at + 1] <= begin_s:
                at += 1
            while until < last and times_s[until + 1] <= end_s:
                until += 1
            at_start[place] = values[at]
            if at == until:
                over_run[place] = values[at]
            elif gaps_s[until] > gaps_s[at]:
                over_run[place] = np.nan
            else:
                whole = integral_at(times_s, values, sums, until, end_s)
                whole -= integral_at(times_s, values, sums, at, begin_s)
                over_run[place] = whole / runtime_s


@fast
def mean_magnitude(values: Floats) -> float:
    """Return the mean of the magnitudes of [zones, slots] values."""
    total = 0.0
    for zone in range(values.shape[0]):
        for place in range(values.shape[1]):
            total += abs(values[zone, place])
    return total / values.size


@fast
def fill_gaps(values: Floats) -> None:
    """Put the mean of what is known where [zones, slots] have no data; 1 if nothing is known."""
    known, count = 0.0, 0
    for zone in range(values.shape[0]):
        for place in range(values.shape[1]):
            if not np.isnan(values[zone, place]):
                known += values[zone, place]
                count += 1
    if count == values.size:
        return
    mean = known / count if count else 1.0
    for zone in range(values.shape[0]):
        for place in range(values.shape[1]):
            if np.isnan(values[zone, place]):
                values[zone, place] = mean
