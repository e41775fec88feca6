"""Sleep rule: no node ever sleeps."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns


def stay_awake(nodes: SleepColumns) -> Floats:
    """Return infinity for each node, [B,N]. What clusters without an autoscaler do."""
    return np.full(nodes.saved_w.shape, np.inf)
