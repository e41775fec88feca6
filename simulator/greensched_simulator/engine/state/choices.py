"""The node of a job: those with room, scored by the policies' own compiled functions."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from greensched_policies.compiling.compiled import TRIED, borrowing, callee, compiled, fast, inlined
from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import (
    CPU_CAPACITY,
    MEMORY_CAPACITY,
    Floats,
    Integers,
)
from greensched_policies.costs.pausing import PauseColumns
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    NODE_FEATURES,
)
from greensched_policies.encoding.queue_columns import QueueColumns
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.zone_preference import prefer_zone
from greensched_policies.kernel.nets import rate_candidates
from greensched_policies.kernel.seeing_nodes import NodesShown, Scratch, Singles
from greensched_policies.library.grid_table import GridTable
from greensched_policies.library.nets import NO_NET, PackedNet
from greensched_policies.rules.catalogue import (
    BAD_WHEN_RULES,
    CAP_RULES,
    ORDER_RULES,
    PAUSE_RULES,
    WHEN_RULES,
    WHERE_RULES,
)
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.gpu_shares import have_room
from greensched_simulator.engine.state.memory import NodesMemory
from greensched_simulator.engine.state.observing import (
    NewWorker,
    fill_zone_days,
    fill_zone_means,
    observe,
)
from greensched_simulator.engine.state.terms import RunConfig

NOWHERE = -1  # the node of a job that has none
_prefer_zone = compiled(prefer_zone)
_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class RuleSet(NamedTuple):
    """The policies' deciding functions, each in a tuple of one and called by its address.

    Where there is a net, it decides, and the rule only if the net gives no number.
    """

    when: tuple[Callable[[SlotColumns], Floats]]
    where: tuple[Callable[[Singles, Singles], Singles]]
    order: tuple[Callable[[QueueColumns], Floats]]
    cap: tuple[Callable[[CapColumns], Floats]]
    pause: tuple[Callable[[PauseColumns], Floats]]
    where_net: PackedNet = NO_NET
    cap_net: PackedNet = NO_NET


# The rules that the engine calls, by field of RuleSet.
COMPILED_RULES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "when": WHEN_RULES | BAD_WHEN_RULES,
    "where": WHERE_RULES,
    "order": ORDER_RULES,
    "cap": CAP_RULES,
    "pause": PAUSE_RULES,
}


def rules_of(
    when: str,
    where: str,
    order: str = "first-come",
    cap: str = "full-speed",
    pause: str = "run-through",
) -> RuleSet:
    """Return rules of the catalogue, compiled or loaded; raise BadInput as `callee` does."""
    return RuleSet(
        compiled_rule("when", when),
        compiled_rule("where", where),
        compiled_rule("order", order),
        compiled_rule("cap", cap),
        compiled_rule("pause", pause),
    )


def compiled_rule(kind: str, name: str) -> tuple[Callable[..., Any]]:
    """Return one of COMPILED_RULES, compiled or loaded; raise BadInput as `callee` does."""
    one, single = np.ones(TRIED), np.float32
    decisions, candidates = TRIED
    features = np.ones((decisions, len(NODE_FEATURES), candidates), single)
    nodes_seen = features.transpose((0, 2, 1))  # neither C nor F order, as in the engine
    context = np.ones((decisions, len(CONTEXT_FEATURES)), single)
    samples: dict[str, tuple[Any, ...]] = {
        "when": (SlotColumns._make([one] * len(SlotColumns._fields)),),
        "where": (nodes_seen, context),
        "order": (QueueColumns._make([one] * 4),),
        "cap": (CapColumns._make([one] * 6),),
        "pause": (PauseColumns._make([one] * 3),),
    }
    returned = single if kind == "where" else np.float64
    return callee(COMPILED_RULES[kind][name], returned, *samples[kind])


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
    cluster: ClusterState,
    cpu_cores: float,
    memory_bytes: float,
    gpus: float,
    most: int,
    goes_on: bool,
) -> int:
    """Write up to `most` nodes with room into `cluster.found`, and return their number.

    The search begins at the first node, or, if it `goes_on`, where the last search stopped.
    """
    count, nodes = 0, cluster.cpu_free.size
    first = cluster.next_node[0] if goes_on else 0
    looked_at = 0
    while looked_at < nodes and count < most:
        node = first + looked_at
        node -= nodes if node >= nodes else 0
        at: Any = np.uintp(node)  # a signed index makes compiled code check for negative values
        cluster.found[np.uintp(count)] = node  # the next one overwrites it unless it fits
        count += fits(cluster, at, cpu_cores, memory_bytes, gpus)
        looked_at += 1
    cluster.next_node[0] = (first + looked_at) % nodes
    return count


@inlined
def fits(
    cluster: ClusterState, node: int, cpu_cores: float, memory_bytes: float, gpus: float
) -> bool:
    """Return whether a node has room for the request."""
    has_cores = cpu_cores <= cluster.cpu_free[node] + _EPSILON * cluster.nodes[CPU_CAPACITY, node]
    has_memory = (
        memory_bytes <= cluster.memory_free[node] + _EPSILON * cluster.nodes[MEMORY_CAPACITY, node]
    )
    has_gpus = gpus <= cluster.gpu_free[node] + _EPSILON
    # Evaluates all: short-circuit branches mispredict, and are slower if every other node is full.
    has_all = has_cores & has_memory & has_gpus
    if gpus == 0.0 or cluster.gpu_shares.shape[1] == 0:
        return has_all
    return has_all and have_room(cluster.gpu_shares, node, gpus)


@borrowing
def choose_node(
    cluster: ClusterState,
    grid: GridTable,
    terms: RunConfig,
    rules: RuleSet,
    worker: NewWorker,
    memory: NodesMemory,
) -> int:
    """Return the best node with room by the `where` rule, -1 if there is none."""
    asked = worker.workload
    count = search(
        cluster,
        float(asked.cpu_cores),
        float(asked.memory_bytes),
        float(asked.gpus),
        terms.nodes_to_score,
        terms.goes_on,
    )
    if count == 0:
        return -1
    return best_of(cluster, cluster.found[:count], grid, terms, rules, worker, memory)


@fast
def best_of(
    cluster: ClusterState,
    rows: Integers,
    grid: GridTable,
    terms: RunConfig,
    rules: RuleSet,
    worker: NewWorker,
    memory: NodesMemory,
) -> int:
    """Return the one of `rows` with the least cost by the `where` rule."""
    return int(rows[np.argmin(score_nodes(cluster, rows, grid, terms, rules, worker, memory))])


@fast
def score_nodes(
    cluster: ClusterState,
    rows: Integers,
    grid: GridTable,
    terms: RunConfig,
    rules: RuleSet,
    worker: NewWorker,
    memory: NodesMemory,
) -> Singles:
    """Return each row's relative cost by the `where` rule or head, [N], as the extender does."""
    kinds = len(NODE_FEATURES)
    features = memory.features[: kinds * rows.size].reshape((1, kinds, rows.size))
    shown = NodesShown(features, memory.context, terms.sees_room, rules.where_net.sizes.size > 0)
    see_candidates(cluster, rows, grid, terms, worker, memory.scratch, shown)
    cost = _costs_of(features, rules, memory)
    if worker.planned_zone == NOWHERE:
        return cost
    return _prefer_zone(cost, cluster.zone[rows] == worker.planned_zone)


@fast
def _costs_of(features: Singles, rules: RuleSet, memory: NodesMemory) -> Singles:
    """Return the costs, [N], of nodes with features [1,22,N]."""
    net, costs = rules.where_net, memory.costs[: features.shape[2]]
    if net.sizes.size > 0:
        rate_candidates(net, features[0], memory.context[0], memory.net, costs)
        if np.isfinite(costs).all():
            return costs
    # Transposed; numba's `transpose` makes three arrays.
    strides = (features.strides[0], features.strides[2], features.strides[1])
    nodes_seen = as_strided(features, (1, costs.size, features.shape[1]), strides)
    return rules.where[0](nodes_seen, memory.context)[0]


@borrowing
def see_candidates(
    cluster: ClusterState,
    rows: Integers,
    grid: GridTable,
    terms: RunConfig,
    worker: NewWorker,
    scratch: Scratch,
    shown: NodesShown,
) -> None:
    """Fill in what a `where` rule is shown of `rows`, with the forecast of this moment.

    The candidates fill the first columns; the other columns are left as they are.
    """
    end_s = worker.now_s + float(worker.workload.runtime_s)
    fill_zone_means(cluster.zone, rows, grid, worker.now_s, end_s, scratch.means)
    if shown.with_all:
        fill_zone_days(grid, worker.now_s, scratch)
    observe(cluster, rows, worker, terms, scratch, shown)
