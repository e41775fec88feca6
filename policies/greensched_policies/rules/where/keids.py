"""Rule: little energy, little carbon, and few neighbours to interfere with."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import (
    CARBON,
    CPU_BEFORE,
    ENERGY,
    MEMORY_AFTER,
    MEMORY_SHARE,
    MEMORY_SIZE,
)


def keids(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return the mean of relative energy, relative carbon and 0.5 plus interference, [B,N].

    The three objectives of Kaur et al., "KEIDS: Kubernetes-based energy and interference driven
    scheduler for industrial IoT in edge-cloud ecosystem", IEEE IoT Journal 7(5), 2020, added up
    for one workload at a time instead of an integer programme; all weigh the same, whatever the
    context's weights. Nobody measures interference here: it is the mean share of CPU and memory
    that others hold, since containers contend for those. EcoKube (TDIS 2026) adds up too, but
    carbon, runtime and queueing.
    """
    share = context[:, MEMORY_SHARE].copy().reshape((-1, 1))
    asked = share / np.maximum(nodes[:, :, MEMORY_SIZE], np.float32(1e-6))
    others = (
        np.maximum(nodes[:, :, MEMORY_AFTER] - asked, np.float32(0.0)) + nodes[:, :, CPU_BEFORE]
    )
    total = nodes[:, :, ENERGY] + nodes[:, :, CARBON] + np.float32(0.5) * (np.float32(1.0) + others)
    relative_cost: npt.NDArray[np.float32] = total * np.float32(1.0 / 3.0)
    return relative_cost
