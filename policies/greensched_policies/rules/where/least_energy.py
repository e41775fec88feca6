"""Rule: the candidate that adds the fewest joules."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import ENERGY


def least_energy(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative energy, [B,N].

    The least increase of power, as in the power-aware best fit decreasing of Beloglazov,
    Abawajy and Buyya, "Energy-aware resource allocation heuristics", FGCS 28(5), 2012; times
    the runtime on the candidate, so that a slow node does not look frugal.
    """
    return nodes[:, :, ENERGY].copy()
