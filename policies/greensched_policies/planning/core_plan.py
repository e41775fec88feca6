"""The cores, GPUs and memory used by what runs or is planned in each zone and slot."""

import math

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.merit_order import MERIT_STEPS
from greensched_policies.encoding.slots import has_gpus, has_room


class CorePlan:
    """What runs and is planned uses so much of each zone, from `begin_s` on.

    A run that touches a slot counts in all of it. Runs beyond the last slot count in that one.
    """

    def __init__(
        self,
        capacity: Floats,
        begin_s: float,
        slot_s: float,
        slots: int,
        gpus: Floats | None = None,
        memory_bytes: Floats | None = None,
        *,
        busy_share: float = 0.0,
    ) -> None:
        """`capacity` are the cores of each zone, [Z]; GPUs and memory are planned if given.

        `busy_share` is the mean share of the cluster's cores that was busy over the last day.
        """
        if slots < 1 or not slot_s > 0.0:
            raise ValueError("a plan needs at least one slot, and slots longer than 0 s")
        self.capacity = capacity  # [Z] cores of the zone's nodes
        self.gpu_capacity = np.zeros(capacity.size) if gpus is None else gpus
        self.memory_capacity = np.zeros(capacity.size) if memory_bytes is None else memory_bytes
        self.busy_share = busy_share
        # [2,Z,MERIT_STEPS] the merit orders of cores and GPUs, to be set where nodes differ
        self.merit = np.ones((2, capacity.size, MERIT_STEPS))
        self.begin_s = begin_s
        self.slot_s = slot_s
        self.cores = np.zeros((capacity.size, slots))
        # [Z,slots]; no slots if no zone has any: then it does not matter who asks for them.
        self.gpus = np.zeros((capacity.size, slots if self.gpu_capacity.any() else 0))
        self.memory = np.zeros((capacity.size, slots if self.memory_capacity.any() else 0))

    def keep(
        self, zone: int, begin_s: float, end_s: float, cpu_cores: float, gpus: float = 0.0,
        memory_bytes: float = 0.0,
    ) -> None:  # fmt: skip
        """Add cores, GPUs and memory from `begin_s` to `end_s`; negative ones remove them again.

        A run that ends before the plan begins changes nothing.
        """
        if end_s <= self.begin_s:
            return
        first, last = self._slots_of(begin_s, end_s)
        self.cores[zone, first:last] += cpu_cores
        if gpus and self.gpus.size:
            self.gpus[zone, first:last] += gpus
        if memory_bytes and self.memory.size:
            self.memory[zone, first:last] += memory_bytes

    def has_room(self, zone: int, begin_s: float, end_s: float, *, with_gpus: bool) -> bool:
        """Return whether a zone has room for all that is kept then; GPUs count if asked."""
        first, last = self._slots_of(begin_s, end_s)
        gpus = self.gpus[zone, first : last if with_gpus else first]
        return (
            has_room(self.cores[zone, first:last], self.capacity[zone], 0.0)
            and has_room(self.memory[zone, first:last], self.memory_capacity[zone], 0.0)
            and has_gpus(gpus, self.gpu_capacity[zone], 0.0)
        )

    def _slots_of(self, begin_s: float, end_s: float) -> tuple[int, int]:
        """Return the first slot that an interval touches, and the one after its last."""
        slots = self.cores.shape[1]
        first = min(max(int((begin_s - self.begin_s) // self.slot_s), 0), slots - 1)
        last = math.ceil(min((end_s - self.begin_s) / self.slot_s, slots))
        return first, max(last, first + 1)
