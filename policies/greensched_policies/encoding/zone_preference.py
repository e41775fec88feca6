"""The preference for nodes of the zone in which a run was planned: decision 17.

The extender calls it, and the simulator's engine compiles it.
"""

import numpy as np
import numpy.typing as npt

_LEAD = 0.1  # below the error of forecasts a difference between zones is noise

NodeCosts = npt.NDArray[np.float32]


def prefer_zone(cost: NodeCosts, is_there: npt.NDArray[np.bool_]) -> NodeCosts:
    """Return the costs of nodes, [N], lowered by a tenth where they are in a zone.

    It is a tenth of the larger of two costs: those of the cheapest node there and elsewhere. So a
    zone that is at most that much dearer leads, and within it cheaper nodes stay cheaper. Nothing
    changes if all nodes are there, or none.
    """
    if is_there.all() or not is_there.any():
        return cost.copy()
    there, elsewhere = float(cost[is_there].min()), float(cost[~is_there].min())
    lead = np.float32(_LEAD * max(abs(there), abs(elsewhere)))
    return cost - is_there.astype(np.float32) * lead
