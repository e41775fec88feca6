"""Order rule: the job that is expected to run the shortest first."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def shortest_first(queue: QueueColumns) -> Floats:
    """Return the expected runtime, [B,Q] (SJF): least mean wait where all run one by one.

    Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3,
    1956.
    """
    return queue.estimate_s.copy()
