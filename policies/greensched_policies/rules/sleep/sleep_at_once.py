"""Sleep rule: a node sleeps as soon as it is empty."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns


def sleep_at_once(nodes: SleepColumns) -> Floats:
    """Return 0 s for each node that saves watts asleep, [B,N], infinity for the others.

    Turning servers off when they fall idle ("INSTANTOFF") of Gandhi, Gupta, Harchol-Balter and
    Kozuch, "Optimality analysis of energy-performance trade-off for server farm management",
    Performance Evaluation 67, 2010: best where waking is cheap beside the pauses.
    """
    return np.where(nodes.saved_w > 0.0, 0.0, np.inf)
