"""The input of an `order` policy: the jobs that wait for room, of one queue or many."""

from typing import NamedTuple

from greensched_policies.costs.cost import Floats


class QueueColumns(NamedTuple):
    """The waiting jobs of B queues, [B,Q]; all values except the waits are positive."""

    submit_s: Floats  # arrival, seconds since the start of the run; at least 1
    wait_s: Floats  # from arrival until now
    estimate_s: Floats  # expected runtime
    cpu_cores: Floats  # requested
