"""Order rule: those first that have waited long for what they run, the large ones before others."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def wfp3(queue: QueueColumns) -> Floats:
    """Return −(wait / runtime)³ · cores, [B,Q].

    WFP3 of Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P systems", IEEE
    Cluster 2009.
    """
    cores = np.maximum(queue.cpu_cores, 1.0)
    return -((queue.wait_s / queue.estimate_s) ** 3.0) * cores
