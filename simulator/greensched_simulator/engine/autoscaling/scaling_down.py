"""Which nodes the autoscaler removes: those that nothing has needed for ten minutes.

Running work counts as `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`, so only empty
nodes are removed. A node with little work still counts: the autoscaler finds that its work cannot
move, and does not look at the node for five minutes, even if it becomes empty.

The constants are defaults of Cluster Autoscaler (config/flags/flags.go, config/const.go).
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import (
    CPU_CAPACITY,
    GPU_CAPACITY,
    MEMORY_CAPACITY,
    Integers,
)
from greensched_policies.rules.sleep import UNNEEDED_S  # --scale-down-unneeded-time
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.autoscaler import (
    IS_BLOCKED,
    LAST_ADDED_S,
    LOOKED_AT_FROM_S,
    SCAN_INTERVAL_S,
    UNNEEDED_FROM_S,
    UP_FROM_S,
    NodeAutoscaler,
    turn_node_off,
)
from greensched_simulator.engine.state.cluster import ClusterState, is_away, is_empty

# --scale-down-utilization-threshold, and --scale-down-gpu-utilization-threshold
NEEDED_SHARE = 0.5
AFTER_ADDED_S = 600.0  # --scale-down-delay-after-add
RECHECK_S = 300.0  # --unremovable-node-recheck-timeout
MOST_REMOVED = 10  # at a scan: --max-scale-down-parallelism
_ROUNDING = 1e-9  # rounding error of sums of floats, as a share of a capacity


@fast
def remove_unneeded(now_s: float, is_forbidden: bool, run: Run) -> None:
    """Note which nodes nothing needs; remove those for which that is so long enough.

    Of several nodes of a group, the last is removed first; `is_forbidden`: none is removed now.
    """
    autoscaler, cluster = run.autoscaler, run.cluster
    groups, nodes, times_s = autoscaler.groups, autoscaler.nodes, autoscaler.times_s
    _look_at_nodes(now_s, autoscaler, cluster)
    if is_forbidden or now_s < times_s[LAST_ADDED_S] + AFTER_ADDED_S:
        return
    sizes, left = _group_sizes(autoscaler), MOST_REMOVED
    for node in range(nodes.shape[1] - 1, -1, -1):
        group = groups.group[node]
        is_old = nodes[UNNEEDED_FROM_S, node] + UNNEEDED_S < now_s
        if left > 0 and is_old and sizes[group] > groups.min_nodes[group]:
            turn_node_off(node, now_s, autoscaler, cluster, run.off)
            sizes[group] -= 1
            left -= 1


@borrowing
def _look_at_nodes(now_s: float, autoscaler: NodeAutoscaler, cluster: ClusterState) -> None:
    """Note since when nothing needs each node that is up."""
    groups, nodes = autoscaler.groups, autoscaler.nodes
    for node in range(nodes.shape[1]):
        if groups.group[node] < 0 or nodes[UP_FROM_S, node] > -np.inf:
            continue
        if nodes[IS_BLOCKED, node] == 1.0:  # by the scans that were left out
            while nodes[LOOKED_AT_FROM_S, node] < now_s:
                nodes[LOOKED_AT_FROM_S, node] += RECHECK_S
        is_low = not is_away(cluster, node) and _is_low(node, cluster)
        is_looked_at = is_low and now_s >= nodes[LOOKED_AT_FROM_S, node]
        is_blocked = is_low and not is_empty(cluster, node)
        nodes[IS_BLOCKED, node] = 1.0 if is_blocked else 0.0
        if is_looked_at and is_blocked:
            nodes[LOOKED_AT_FROM_S, node] = now_s + RECHECK_S
        if is_looked_at and not is_blocked:
            nodes[UNNEEDED_FROM_S, node] = min(nodes[UNNEEDED_FROM_S, node], now_s)
        else:
            nodes[UNNEEDED_FROM_S, node] = np.inf


@inlined
def _is_low(node: int, cluster: ClusterState) -> bool:
    """Return whether less than half of a node is requested: of its cores and of its memory.

    Of a node with GPUs only these count, as in Cluster Autoscaler's simulator/utilization/info.go.
    """
    constant, free_share = cluster.nodes, 1.0 - NEEDED_SHARE + _ROUNDING
    if constant[GPU_CAPACITY, node] > 0.0:
        return bool(cluster.gpu_free[node] > free_share * constant[GPU_CAPACITY, node])
    return bool(
        cluster.cpu_free[node] > free_share * constant[CPU_CAPACITY, node]
        and cluster.memory_free[node] > free_share * constant[MEMORY_CAPACITY, node]
    )


@fast
def _group_sizes(autoscaler: NodeAutoscaler) -> Integers:
    """Return how many nodes of each group are up or start, [G]."""
    groups, nodes = autoscaler.groups, autoscaler.nodes
    sizes = np.zeros(groups.min_nodes.size, np.int64)
    for node in range(nodes.shape[1]):
        if groups.group[node] >= 0 and nodes[UP_FROM_S, node] < np.inf:
            sizes[groups.group[node]] += 1
    return sizes


@fast
def next_removal_s(
    now_s: float, is_forbidden: bool, autoscaler: NodeAutoscaler, cluster: ClusterState
) -> float:
    """Return the next scan that may note or remove an unneeded node if nothing else happens."""
    groups, nodes, next_s = autoscaler.groups, autoscaler.nodes, np.inf
    allowed_s, sizes = autoscaler.times_s[LAST_ADDED_S] + AFTER_ADDED_S, _group_sizes(autoscaler)
    for node in range(nodes.shape[1]):
        group, since_s = groups.group[node], nodes[UNNEEDED_FROM_S, node]
        if group < 0 or nodes[UP_FROM_S, node] > -np.inf or is_away(cluster, node):
            continue
        if since_s < np.inf and not is_forbidden and sizes[group] > groups.min_nodes[group]:
            next_s = min(next_s, max(since_s + UNNEEDED_S + SCAN_INTERVAL_S, allowed_s))
        elif since_s == np.inf and is_empty(cluster, node):
            next_s = min(next_s, nodes[LOOKED_AT_FROM_S, node])
    return max(next_s, now_s + SCAN_INTERVAL_S)
