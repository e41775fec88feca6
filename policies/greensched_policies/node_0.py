"""Where rule, deliberately bad: always node 0, whatever is free elsewhere."""

import numpy as np
import numpy.typing as npt


def node_0(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 1 for all candidates, [B,N]: a rule cannot tell which one node 0 is.

    Whoever asks it offers it node 0 alone, as the simulator does.
    """
    return np.ones(nodes.shape[:2], np.float32)
