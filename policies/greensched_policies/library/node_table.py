"""A cluster's nodes in arrays with a row for each, as compiled code reads them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats

# Columns of NodeColumns that change with what runs on a node: their places in `NodeTable.moving`.
# Those that never change have the order of `costs/cost.py`.
CPU_BEFORE, MEMORY_FREE, GPU_FREE, IS_EMPTY = range(4)
FIXED_COLUMNS = 8
MOVING_COLUMNS = 4


class NodeTable(NamedTuple):
    """All nodes of a cluster, R rows, each together in memory: few of many are read at a time."""

    fixed: Floats  # [R,8]
    moving: Floats  # [R,4]
    zone: npt.NDArray[np.int32]  # [R] the number of its zone
    # [R] the share of a GPU's range that busy ones draw; NaN: assumed. Empty: assumed everywhere.
    gpu_share: Floats
