"""Rows: the indices of nodes in the snapshot's arrays."""

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

NO_ROW = -1  # of a name that has no node, or one of unknown capacity
