"""Rule: what an unmodified kube-scheduler prefers, as far as a workload's size decides it."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import (
    CPU_AFTER,
    CPU_BEFORE,
    MEMORY_AFTER,
    MEMORY_SHARE,
    MEMORY_SIZE,
)


def kubernetes_default(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 0.5 plus the mean use after placement plus a quarter of what imbalance grows, [B,N].

    The sum of kube-scheduler's default scores that differ between nodes with room, weight 1 each,
    over 100 and turned round. NodeResourcesFit: LeastAllocated, 1 − (cpu + memory) / 2.
    NodeResourcesBalancedAllocation since v1.36 (kubernetes#135573): 0.75 plus half of
    |cpu − memory| / 2 before less the same after. Upstream takes requested CPU and whole
    hundredths, this rule expected utilisation and no rounding; boards score nothing in either.
    """
    share = context[:, MEMORY_SHARE].copy().reshape((-1, 1))
    asked = share / np.maximum(nodes[:, :, MEMORY_SIZE], np.float32(1e-6))
    cpu, memory = nodes[:, :, CPU_AFTER], nodes[:, :, MEMORY_AFTER]
    imbalance = np.abs(cpu - memory)
    imbalance -= np.abs(nodes[:, :, CPU_BEFORE] - np.maximum(memory - asked, np.float32(0.0)))
    relative_cost: npt.NDArray[np.float32] = np.float32(0.25) * imbalance
    relative_cost += np.float32(0.5) + np.float32(0.5) * (cpu + memory)
    return relative_cost
