"""Order rule: those first that have waited long and ask for little."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def unicep(queue: QueueColumns) -> Floats:
    """Return −wait / (log2(cores) · runtime), [B,Q]; less than two cores count as two.

    UNICEP of Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P systems", IEEE
    Cluster 2009.
    """
    cores = np.maximum(queue.cpu_cores, 2.0)
    return -queue.wait_s / (np.log2(cores) * queue.estimate_s)
