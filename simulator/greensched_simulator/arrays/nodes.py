"""The nodes of a world, as columns."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats, Integers


class NodeArrays(NamedTuple):
    """The nodes, one [N] array per column; float64, zones int64."""

    cpu_capacity: Floats  # cores
    memory_capacity: Floats  # bytes
    gpu_capacity: Floats  # GPUs
    gpu_idle_w: Floats  # watts per GPU
    gpu_peak_w: Floats  # watts per GPU
    curve_class: Floats  # row of the curve table; whole numbers
    speed: Floats  # throughput of a core relative to the reference core
    pue: Floats  # if it depends on the weather, its mean over the scenario's length
    sleep_w: Floats  # watts asleep, without PUE; idle watts if the node cannot sleep
    wake_s: Floats  # from asleep until jobs can run
    wake_w: Floats  # watts during those seconds, without PUE
    embodied_g_per_s: Floats  # carbon of making the node, spread over its life; 0: not given
    zone: npt.NDArray[np.int64]  # index in the world's zones


class Outages(NamedTuple):
    """When nodes fail and come back, [E], in order of time; empty if no node fails."""

    at_s: Floats
    node: Integers
    is_back: Integers  # 1 if the node comes back, 0 if it fails


class AutoscaledGroups(NamedTuple):
    """The groups of nodes that a Cluster Autoscaler starts and removes."""

    group: Integers  # [N] each node's group; -1 for a node that stays on; [0] without such groups
    min_nodes: Integers  # [G]
    wake_s: Floats  # [N] from off until jobs can run
    draws: Floats  # [D] random numbers below 1, for groups between which nothing else decides


NO_AUTOSCALED = AutoscaledGroups(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
)
