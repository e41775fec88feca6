"""The jobs of a world, as columns."""

from typing import NamedTuple

from greensched_policies.costs.cost import Floats, Integers


class JobArrays(NamedTuple):
    """Jobs in order of arrival, one float64 [J] array per column.

    Times are seconds since the scenario's start. Runtime and estimate include one startup, and all
    saving of a run without a pause. Requests are those of one worker.
    """

    arrival_s: Floats
    runtime_s: Floats  # on the reference core
    estimate_s: Floats  # the runtime that the owner and the policies expect
    cpu_cores: Floats
    memory_bytes: Floats
    gpus: Floats  # number of GPUs, or a part of one
    gpu_ratio: Floats  # share of their idle-to-peak range that its GPUs draw while it runs, 0..1
    workers: Floats  # they run at the same time, each on a node; whole numbers
    deadline_s: Floats  # latest finish; infinity for none
    startup_s: Floats  # at the begin of each run segment; on the reference core
    # Work between checkpoints; 0: saves when suspended; infinity: cannot be suspended.
    save_every_s: Floats
    save_s: Floats  # duration of a save; on the reference core
    # When it leaves its node, finished or not, such as a service's replica; infinity: when its work
    # is done.
    leaves_at_s: Floats
    # Row of the world's curves of speed by workers; 0: the number of workers is fixed.
    scaling: Floats
    frequency_sensitivity: Floats  # share of its run that scales with CPU frequency, 0..1
    data_bytes: Floats  # data that each worker reads; 0: none that lies in a zone
    data_zone: Integers  # the zone in which it lies; unused without data
