"""Rule: the candidate whose free resources lie most in the direction of what is asked for."""

import numpy as np
import numpy.typing as npt

from greensched_policies.observation import (
    BOARDS_PER_NODE,
    CPU_AFTER,
    CPU_BEFORE,
    GPU_FREE_AFTER,
    GPU_SIZE,
    GPUS,
    MEMORY_AFTER,
    MEMORY_SHARE,
    MEMORY_SIZE,
)


def tetris(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 1.5 less the alignment relative to the best candidate's, [B,N], within 0.5 … 1.5.

    Grandl et al., "Multi-resource packing for cluster schedulers" (Tetris), SIGCOMM 2014: the dot
    product of demand and what is free before, both over the node's capacity; here of CPU, memory
    and boards, without disks and network. Memory and boards are what is requested; CPU is expected
    use, as in the paper, and understated where the node's load reaches its cores.
    """
    relative_cost = np.ones(nodes.shape[:2], dtype=np.float32)
    for row in range(nodes.shape[0]):
        seen, asked = nodes[row], context[row]
        cpu = seen[:, CPU_AFTER] - seen[:, CPU_BEFORE]
        memory = asked[MEMORY_SHARE] / np.maximum(seen[:, MEMORY_SIZE], np.float32(1e-6))
        boards = asked[GPUS] / np.maximum(seen[:, GPU_SIZE], np.float32(1.0 / BOARDS_PER_NODE))
        alignment = cpu * (np.float32(1.0) - seen[:, CPU_BEFORE])
        alignment += memory * (np.float32(1.0) - seen[:, MEMORY_AFTER] + memory)
        alignment += boards * (seen[:, GPU_FREE_AFTER] + boards)
        best = alignment.max()
        if best > 0.0:  # else nothing is asked for
            relative_cost[row] = np.float32(1.5) - alignment / best
    return relative_cost
