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
    pue: Floats  # where it goes by the weather, its mean over the scenario's length
    sleep_w: Floats  # watts asleep, without PUE; the idle ones where a node cannot sleep
    wake_s: Floats  # from asleep until jobs can run
    wake_w: Floats  # watts of those seconds, without PUE
    embodied_g_per_s: Floats  # carbon of making the node, spread over its life; 0: not given
    zone: npt.NDArray[np.int64]  # place in the world's zones


class Outages(NamedTuple):
    """When nodes fail and come back, [E], in the order of time; none where no node fails."""

    at_s: Floats
    node: Integers
    is_back: Integers  # 1 where the node comes back, else it fails
