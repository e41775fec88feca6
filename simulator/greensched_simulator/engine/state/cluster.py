"""The nodes of a run: their constant properties, and what jobs leave free now."""

from typing import Any, NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import (
    CORE_SPEED,
    CPU_CAPACITY,
    CURVE_CLASS,
    CURVE_POINTS,
    GPU_CAPACITY,
    GPU_IDLE_W,
    GPU_PEAK_W,
    MEMORY_CAPACITY,
    PUE,
    Floats,
    Integers,
    NodeColumns,
)
from greensched_simulator.arrays.nodes import NodeArrays

AWAY = -1.0  # cores free on a node that has failed or is off: fewer than any job asks for


class ClusterState(NamedTuple):
    """The nodes; runs may share the arrays that never change."""

    nodes: Floats  # [8,N] rows as `cost` names them; never changes
    zone: Integers  # [N] never changes
    sleep: Floats  # [6,N] see `power_states`; [6,0] where no node ever sleeps
    cap: Floats  # [5,N] see `progress`; [5,0] without power caps
    cpu_free: Floats  # [N] cores not requested
    memory_free: Floats  # [N] bytes not requested
    gpu_free: Floats  # [N] GPUs not requested
    gpu_shares: (
        Floats  # [N,B] free part of each GPU; [N,0] if all jobs ask for whole ones: `gpu_shares`
    )
    busy: Floats  # [N] utilisation of the cores, 0..1
    busy_w: Floats  # [N] watts of the CPU part at that utilisation
    pods: Integers  # [N] jobs that run there
    next_node: Integers  # [1] where the next search begins
    found: Integers  # [N] room for the search


@inlined
def is_empty(cluster: ClusterState, node: int) -> bool:
    """Return whether nothing runs on a node."""
    return bool(cluster.pods[node] == 0)


@inlined
def is_away(cluster: ClusterState, node: int) -> bool:
    """Return whether a node has failed, is off, or is never used."""
    return bool(cluster.cpu_free[node] <= 0.5 * AWAY)


@fast
def with_own_room(cluster: ClusterState) -> ClusterState:
    """Return the cluster with a copy of its free room, to try out what would fit."""
    return ClusterState(
        cluster.nodes, cluster.zone, cluster.sleep, cluster.cap, cluster.cpu_free.copy(),
        cluster.memory_free.copy(), cluster.gpu_free.copy(), cluster.gpu_shares.copy(),
        cluster.busy, cluster.busy_w, cluster.pods, cluster.next_node, cluster.found,
    )  # fmt: skip


@inlined
def columns_of(cluster: ClusterState, node: int) -> NodeColumns:
    """Return one node as policies see it now, each column a number.

    Negative free amounts become 0: sums of floats do not cancel exactly.
    """
    nodes, at = cluster.nodes, np.uintp(node)
    nothing: Any = 0.0
    empty: Any = 1.0 if cluster.pods[at] == 0 else 0.0
    return NodeColumns(
        nodes[CPU_CAPACITY, at], cluster.busy[at],
        nodes[MEMORY_CAPACITY, at], max(cluster.memory_free[at], nothing),
        nodes[GPU_CAPACITY, at], max(cluster.gpu_free[at], nothing),
        nodes[GPU_IDLE_W, at], nodes[GPU_PEAK_W, at], nodes[CURVE_CLASS, at],
        nodes[CORE_SPEED, at], nodes[PUE, at], empty,
    )  # fmt: skip


def node_table(nodes: NodeArrays | NodeColumns) -> Floats:
    """Return the constant properties of nodes, [8,N], for `ClusterState.nodes`."""
    return np.stack([
        nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity, nodes.gpu_idle_w,
        nodes.gpu_peak_w, nodes.curve_class, nodes.speed, nodes.pue,
    ])  # fmt: skip


def idle_cluster(
    nodes: NodeArrays,
    table: Floats,
    gpus: Floats,
    sleep: Floats,
    curve_watts: Floats,
    *,
    capped: bool = False,
    only_node_0: bool = False,
) -> ClusterState:
    """Return nodes without jobs; `table` is their `node_table`, `gpus` each job's request.

    `curve_watts` are those of the cost model. With `only_node_0` no other node ever has room.
    """
    jobs_share = bool((gpus != np.floor(gpus)).any())
    count = nodes.zone.size
    cpu_free = nodes.cpu_capacity.copy()
    if only_node_0:
        cpu_free[1:] = AWAY
    return ClusterState(
        nodes=table,
        zone=nodes.zone,
        sleep=sleep,
        cap=np.repeat([[1.0], [1.0], [0.0], [0.0]], count if capped else 0, axis=1),
        cpu_free=cpu_free,
        memory_free=nodes.memory_capacity.copy(),
        gpu_free=nodes.gpu_capacity.copy(),
        gpu_shares=_free_gpus(nodes) if jobs_share else np.empty((count, 0)),
        busy=np.zeros(count),
        busy_w=curve_watts[CURVE_POINTS * nodes.curve_class.astype(np.int64)],
        pods=np.zeros(count, np.int64),
        next_node=np.zeros(1, np.int64),
        found=np.empty(count, np.int64),
    )


def _free_gpus(nodes: NodeArrays) -> Floats:
    """Return the free part of each GPU while all are free, [N,B]; see `gpu_shares`."""
    gpu = np.arange(int(nodes.gpu_capacity.max()))
    return np.where(gpu < nodes.gpu_capacity[:, None], 1.0, -1.0)
