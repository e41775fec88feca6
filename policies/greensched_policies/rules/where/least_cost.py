"""Rule: the candidate that adds the least to the electricity bill."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import COST


def least_cost(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative money, [B,N]; relative energy where a price is missing.

    Following the price between sites is Qureshi et al., "Cutting the Electric Bill for
    Internet-Scale Systems", SIGCOMM 2009.
    """
    return nodes[:, :, COST].copy()
