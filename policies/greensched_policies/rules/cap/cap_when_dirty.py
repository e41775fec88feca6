"""Cap rule: full speed while the grid is clean, as slow as deadlines allow while it is dirty."""

import numpy as np

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats

# A steady grid's mean may be off its value by the last digit.
CLEAN = 1.0 + 1e-9


def cap_when_dirty(nodes: CapColumns) -> Floats:
    """Return a cost, [B,L]: at most the day's mean intensity full speed, else the lowest in time.

    Ours: what suspending in dirty hours is to work that can stop, for work that cannot. Where
    nothing can be in time any more, there is no cap.
    """
    slowed = nodes.level + 2.0 * (1.0 - nodes.keeps_deadlines) * (2.0 - nodes.level)
    return np.where(nodes.dirtiness > CLEAN, slowed, 1.0 - nodes.level)
