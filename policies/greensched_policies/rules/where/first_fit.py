"""Rule: the first candidate, in the order in which they are told."""

import numpy as np
import numpy.typing as npt


def first_fit(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's place relative to the mean place, [B,N], the first the cheapest.

    First fit of Garey, Graham and Ullman, "Worst-case analysis of memory allocation algorithms",
    STOC 1972: candidates have room, so the first of them is where it fits first.
    """
    batch, count = nodes.shape[0], nodes.shape[1]
    relative_cost = np.empty((batch, count), dtype=np.float32)
    relative_cost[:] = (np.arange(count) + 0.5) * (2.0 / count)
    return relative_cost
