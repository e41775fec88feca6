"""Rule: the candidate on which the workload ends first."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import SLOWDOWN


def fastest(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative expected runtime, [B,N].

    Minimum completion time (MCT) of Maheswaran et al., "Dynamic matching and scheduling of a class
    of independent tasks onto heterogeneous computing systems", HCW 1999. On candidates, which have
    room now, what starts now ends after its runtime.
    """
    return nodes[:, :, SLOWDOWN].copy()
