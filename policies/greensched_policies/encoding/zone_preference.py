"""The preference for nodes of the zone in which a run was planned: decision 17.

The extender calls it, and the simulator's engine compiles it.
"""

import numpy as np
import numpy.typing as npt

MARGIN = 0.1  # below the error of forecasts a difference is noise

Costs = npt.NDArray[np.float32]


def prefer_zone(cost: Costs, is_there: npt.NDArray[np.bool_]) -> Costs:
    """Return the costs of nodes, [N], lowered where they are in a zone.

    They are lowered alike, until the zone's cheapest node leads by MARGIN. So cheaper nodes stay
    cheaper within the zone and outside it. Nothing changes if all nodes are there, or none.
    """
    if is_there.all() or not is_there.any():
        return cost.copy()
    there, elsewhere = float(cost[is_there].min()), float(cost[~is_there].min())
    lead = MARGIN * max(abs(there), abs(elsewhere))
    return cost - is_there.astype(np.float32) * np.float32(max(there - elsewhere, 0.0) + lead)
