"""Sleep rule: a node sleeps after ten minutes without work."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns

UNNEEDED_S = 600.0


def sleep_after_10m(nodes: SleepColumns) -> Floats:
    """Return ten minutes for each node that saves watts asleep, [B,N], infinity for the others.

    What Kubernetes' Cluster Autoscaler does with nodes that it removes: its default for
    --scale-down-unneeded-time.
    """
    return np.where(nodes.saved_w > 0.0, UNNEEDED_S, np.inf)
