"""Order rule: the job that is expected to run the longest first."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def longest_first(queue: QueueColumns) -> Floats:
    """Return less the expected runtime, [B,Q] (LJF): the long jobs do not stand alone at the end.

    Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Applied Mathematics 17(2), 1969
    (LPT).
    """
    return -queue.estimate_s
