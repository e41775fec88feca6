"""What an `order` policy sees of the jobs that wait for room, for one queue or many."""

from typing import NamedTuple

from greensched_policies.costs.cost import Floats


class QueueColumns(NamedTuple):
    """The waiting jobs of B queues, [B,Q]; positive values only, but for the waits."""

    submit_s: Floats  # arrival, seconds since the start of the run; at least 1
    wait_s: Floats  # from arrival until now
    estimate_s: Floats  # expected runtime
    cpu_cores: Floats  # requested
