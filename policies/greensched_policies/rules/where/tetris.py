"""Rule: the candidate whose free resources lie most in the direction of what is asked for."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import (
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
    """Return less the alignment, [B,N], within −3 … 0.

    Grandl et al., "Multi-resource packing for cluster schedulers" (Tetris), SIGCOMM 2014: the dot
    product of demand and what is free before, both over the node's capacity; here of CPU, memory
    and boards, without disks and network. Memory and boards are what is requested; CPU is expected
    use, as in the paper, and understated where the node's load reaches its cores.
    """
    bytes_share = context[:, MEMORY_SHARE].copy().reshape((-1, 1))
    memory = bytes_share / np.maximum(nodes[:, :, MEMORY_SIZE], np.float32(1e-6))
    boards_share = context[:, GPUS].copy().reshape((-1, 1))
    boards = boards_share / np.maximum(nodes[:, :, GPU_SIZE], np.float32(1.0 / BOARDS_PER_NODE))
    cpu_before = nodes[:, :, CPU_BEFORE]
    alignment = (nodes[:, :, CPU_AFTER] - cpu_before) * (np.float32(1.0) - cpu_before)
    alignment += memory * (np.float32(1.0) - nodes[:, :, MEMORY_AFTER] + memory)
    alignment += boards * (nodes[:, :, GPU_FREE_AFTER] + boards)
    relative_cost: npt.NDArray[np.float32] = -alignment
    return relative_cost
