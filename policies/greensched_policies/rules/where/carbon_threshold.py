"""Rule: least energy among the clean zones; dirty zones only when nothing else is left."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import ENERGY, ZONE_CARBON

# Relative to the candidates, not in grams: a fixed number of grams lets everything pass on a
# clean grid and nothing on a dirty one.
THRESHOLD = 1.0


def carbon_threshold(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return relative energy, [B,N], raised above every clean one where the zone is dirty.

    A zone is dirty when its carbon intensity over the run is above the candidates' mean. The
    threshold policy of Souza et al., "Ecovisor", ASPLOS 2023, which pauses work above a carbon
    threshold, carried from time to place. Without carbon data no zone is dirty.
    """
    energy = nodes[:, :, ENERGY]
    is_dirty = nodes[:, :, ZONE_CARBON] > np.float32(THRESHOLD * 1.0001)  # float32 of the mean
    relative_cost = energy.copy()
    for row in range(energy.shape[0]):
        relative_cost[row] += is_dirty[row] * energy[row].max()
    return relative_cost
