"""The jobs of a world, as columns."""

from typing import NamedTuple

from greensched_policies.costs.cost import Floats, Integers


class JobArrays(NamedTuple):
    """Jobs in order of arrival, one float64 [J] array per column.

    Times are seconds since the scenario's start. Runtime and estimate hold one startup, and all
    that is saved in a run without a pause. Requests are those of one worker.
    """

    arrival_s: Floats
    runtime_s: Floats  # on the reference core
    estimate_s: Floats  # what its owner and the policies expect it to be
    cpu_cores: Floats
    memory_bytes: Floats
    gpus: Floats  # GPUs, or a part of one
    workers: Floats  # how many run at the same time, each on a node; whole numbers
    deadline_s: Floats  # latest finish; infinity for none
    startup_s: Floats  # with which each run segment of a run begins; on the reference core
    save_every_s: Floats  # of work; 0: when it is suspended; infinity: it cannot be
    save_s: Floats  # what that takes; on the reference core
    # When it leaves its node whatever it has done, such as a service's replica; infinity: when its
    # work is done.
    leaves_at_s: Floats
    # Of the world's curves the row of how its work speeds up with workers; 0: their number stays.
    scaling: Floats
    data_bytes: Floats  # that each worker reads, which lie in a zone; 0: none that lie anywhere
    data_zone: Integers  # where; of no use where there are none
