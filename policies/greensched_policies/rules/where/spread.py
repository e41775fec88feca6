"""Rule: the emptiest candidate first."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import CPU_AFTER, MEMORY_AFTER


def spread(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 0.5 plus the mean of CPU and memory use after placement, [B,N], 1.5 when full.

    kube-scheduler's NodeResourcesFit with its default strategy LeastAllocated (CPU and
    memory, weight 1 each), on expected utilisation instead of requested CPU.
    """
    fullness = nodes[:, :, CPU_AFTER] + nodes[:, :, MEMORY_AFTER]
    return np.float32(0.5) + np.float32(0.5) * fullness
