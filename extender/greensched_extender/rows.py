"""Rows: which place a node has in the snapshot's arrays."""

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

NO_ROW = -1  # of a name that stands for no node we can reckon with
