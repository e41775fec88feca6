"""Which GPUs are free where jobs share them: a part of a GPU must be free on a single one.

The table [N,B] holds what is free of each GPU, 0 to 1, and less than 0 where a node has no such
GPU. It has no columns where all jobs ask for whole GPUs: then their number is enough.
"""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.compiling.compiled import borrowing, inlined

_EPSILON = 1e-9  # of a GPU; sums of shares may be off by it


@inlined
def have_room(shares: Floats, node: int, gpus: float) -> bool:
    """Tell whether a node has so many whole GPUs free, or such a part of one."""
    if shares.shape[1] == 0 or gpus == 0.0:
        return True
    share, missing = min(gpus, 1.0), gpus
    for gpu in range(shares.shape[1]):
        if shares[node, gpu] >= share - _EPSILON:
            missing -= share
    return bool(missing < _EPSILON)


@borrowing
def take_gpus(shares: Floats, node: int, gpus: float) -> int:
    """Take whole GPUs, the first that are free, or a part of the one it leaves the least of.

    Returns which, a bit for each: that is best fit, as the GPU plugins that share GPUs have it
    and Weng et al. compare it, "Beware of Fragmentation", USENIX ATC 2023.
    """
    taken, missing, share = 0, gpus, min(gpus, 1.0)
    while shares.shape[1] > 0 and missing > _EPSILON:
        best, least = -1, 2.0
        for gpu in range(shares.shape[1]):
            free = shares[node, gpu]
            if share - _EPSILON <= free < least:
                best, least = gpu, free
        if best < 0:
            return taken
        shares[node, best] = max(least - share, 0.0)
        taken |= 1 << best
        missing -= share
    return taken


@borrowing
def give_gpus(shares: Floats, node: int, taken: int, gpus: float) -> None:
    """Give back what was taken."""
    share = min(gpus, 1.0)
    for gpu in range(shares.shape[1]):
        if (taken >> gpu) & 1:
            free = shares[node, gpu] + share
            shares[node, gpu] = 1.0 if free > 1.0 - _EPSILON else free


@borrowing
def how_often(shares: Floats, node: int, gpus: float, gpu_free: float) -> float:
    """Return how often a request for so many GPUs finds room on a node of `gpu_free` GPUs."""
    if shares.shape[1] == 0:
        return gpu_free / gpus
    share, found = min(gpus, 1.0), 0.0
    for gpu in range(shares.shape[1]):
        found += np.floor(max(shares[node, gpu], 0.0) / share + _EPSILON)
    return float(found * share / gpus)
