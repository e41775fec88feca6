"""The node autoscaler of a run: which of its nodes are up, and when it scans next.

It follows Kubernetes' Cluster Autoscaler with its defaults. Nodes that are off have no room, so
that no search finds them.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import CPU_CAPACITY, Floats, Integers
from greensched_simulator.arrays.nodes import AutoscaledGroups
from greensched_simulator.engine.state.cluster import AWAY, ClusterState, is_away

SCAN_INTERVAL_S = 10.0  # --scan-interval

# Rows of the table of nodes, [5,N].
UP_FROM_S = 0  # -infinity: it is up; finite: it starts and is ready then; infinity: it is off
UNNEEDED_FROM_S = 1  # infinity: it is needed
LOOKED_AT_FROM_S = 2  # scans before that do not look at it
IS_BLOCKED = 3  # 1 if only jobs that cannot move kept it at the last scan
SPAN = 4  # index of its last time off

# Rows of the times, [4]: infinity if there is none ahead, -infinity if there was none.
NEXT_SCAN_S, LAST_SCAN_S, LAST_ADDED_S, NEXT_READY_S = range(4)

# Node, since when it is off, and since when it starts; infinity: not yet.
OffSpans = list[tuple[int, float, float]]


class NodeAutoscaler(NamedTuple):
    """The autoscaled groups, and the state of their nodes."""

    groups: AutoscaledGroups
    nodes: Floats  # [5,N]; [5,0] without autoscaled groups
    times_s: Floats  # [4]
    scale_ups: Integers  # [1] number of times that nodes were started


@fast
def new_autoscaler(groups: AutoscaledGroups) -> NodeAutoscaler:
    """Return the autoscaler at a run's start, with all nodes up; it scans at 0 first."""
    count = groups.group.size
    nodes, times_s = np.zeros((5, count)), np.full(4, np.inf)
    nodes[UP_FROM_S], nodes[UNNEEDED_FROM_S] = -np.inf, np.inf
    times_s[LAST_SCAN_S] = times_s[LAST_ADDED_S] = -np.inf
    if count > 0:
        times_s[NEXT_SCAN_S] = 0.0
    return NodeAutoscaler(groups, nodes, times_s, np.zeros(1, np.int64))


@fast
def turn_off_beyond_min(autoscaler: NodeAutoscaler, cluster: ClusterState, off: OffSpans) -> None:
    """Turn all nodes off at a run's start, but the first of each group up to its minimum."""
    left = autoscaler.groups.min_nodes.copy()
    for node in range(autoscaler.groups.group.size):
        group = autoscaler.groups.group[node]
        if group < 0 or is_away(cluster, node):
            continue
        left[group] -= 1
        if left[group] < 0:
            turn_node_off(node, 0.0, autoscaler, cluster, off)


@fast
def turn_node_off(
    node: int, now_s: float, autoscaler: NodeAutoscaler, cluster: ClusterState, off: OffSpans
) -> None:
    """Turn an empty node off."""
    nodes = autoscaler.nodes
    nodes[UP_FROM_S, node] = nodes[UNNEEDED_FROM_S, node] = np.inf
    nodes[SPAN, node] = len(off)
    off.append((node, now_s, np.inf))
    cluster.cpu_free[node] = AWAY


@fast
def come_up(now_s: float, autoscaler: NodeAutoscaler, cluster: ClusterState) -> None:
    """Give the nodes that are ready now to the scheduler; they are empty."""
    nodes, times_s = autoscaler.nodes, autoscaler.times_s
    times_s[NEXT_READY_S] = np.inf
    for node in range(nodes.shape[1]):
        if nodes[UP_FROM_S, node] <= now_s and is_coming(node, autoscaler):
            nodes[UP_FROM_S, node] = -np.inf
            nodes[LOOKED_AT_FROM_S, node] = now_s
            cluster.cpu_free[node] = cluster.nodes[CPU_CAPACITY, node]
        elif is_coming(node, autoscaler):
            times_s[NEXT_READY_S] = min(times_s[NEXT_READY_S], nodes[UP_FROM_S, node])


@inlined
def is_coming(node: int, autoscaler: NodeAutoscaler) -> bool:
    """Return whether a node starts and is not ready yet."""
    return bool(np.isfinite(autoscaler.nodes[UP_FROM_S, node]))
