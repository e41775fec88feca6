"""Rule: the fullest candidate first."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import CPU_AFTER, MEMORY_AFTER


def bin_pack(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 1.5 less the mean of CPU and memory use after placement, [B,N], 0.5 when full.

    kube-scheduler's NodeResourcesFit with strategy MostAllocated (CPU and memory, weight 1
    each), on expected utilisation instead of requested CPU. The energy-only baseline.
    """
    fullness = nodes[:, :, CPU_AFTER] + nodes[:, :, MEMORY_AFTER]
    return np.float32(1.5) - np.float32(0.5) * fullness
