"""Order rule: first come, first served."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def first_come(queue: QueueColumns) -> Floats:
    """Return the time of arrival, [B,Q] (FCFS).

    The baseline of parallel job scheduling (Feitelson, Rudolph and Schwiegelshohn, JSSPP 2004).
    """
    return queue.submit_s.copy()
