"""The free part of each GPU, for jobs that share GPUs: a part must be free on a single GPU.

The table [N,B] holds the free part of each GPU, 0 to 1, and a negative value where a node has no
such GPU. It has no columns if all jobs ask for whole GPUs: then their number is enough.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, inlined
from greensched_policies.costs.cost import Floats

_EPSILON = 1e-9  # of a GPU; rounding error of sums of shares


@inlined
def have_room(shares: Floats, node: int, gpus: float) -> bool:
    """Return whether a node has `gpus` whole GPUs free, or that part of one.

    The table has columns, and `gpus` is not 0: `fits` sees to it.
    """
    share, missing = min(gpus, 1.0), gpus
    for gpu in range(shares.shape[1]):
        if shares[node, gpu] >= share - _EPSILON:
            missing -= share
    return bool(missing < _EPSILON)


@borrowing
def take_gpus(shares: Floats, node: int, gpus: float) -> int:
    """Take the first free whole GPUs, or a part of the GPU with the least left; return a bit mask.

    This is best fit, as in the GPU plugins that share GPUs; Weng et al. compare it in "Beware of
    Fragmentation", USENIX ATC 2023.
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
    """Give back the GPUs of a bit mask that `take_gpus` returned."""
    share = min(gpus, 1.0)
    for gpu in range(shares.shape[1]):
        if (taken >> gpu) & 1:
            free = shares[node, gpu] + share
            shares[node, gpu] = 1.0 if free > 1.0 - _EPSILON else free


@borrowing
def how_often(shares: Floats, node: int, gpus: float, gpu_free: float) -> float:
    """Return how many requests for `gpus` GPUs fit on a node that has `gpu_free` free GPUs."""
    if shares.shape[1] == 0:
        return gpu_free / gpus
    share, found = min(gpus, 1.0), 0.0
    for gpu in range(shares.shape[1]):
        found += np.floor(max(shares[node, gpu], 0.0) / share + _EPSILON)
    return float(found * share / gpus)
