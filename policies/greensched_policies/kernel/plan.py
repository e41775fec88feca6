"""The plan of what runs when: the cores, GPUs and memory used in each zone and slot.

All times are in seconds from the begin of the plan.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import borrowing, inlined
from greensched_policies.costs.cost import Floats


class Plan(NamedTuple):
    """The cores, GPUs and memory used by what runs or is to run in each zone, by slot from time 0.

    A run counts fully in each slot that it touches. The plan ends with its last slot. It has no
    slots if jobs start on arrival and no rule looks ahead.
    """

    cores: Floats  # [Z,S]
    capacity: Floats  # [Z] cores of the zone's nodes
    gpus: Floats = np.zeros((0, 0))  # [Z,S], or no slots: GPUs are not planned
    gpu_capacity: Floats = np.zeros(0)  # [Z]
    memory: Floats = np.zeros((0, 0))  # [Z,S] bytes, or no slots: memory is not planned
    memory_capacity: Floats = np.zeros(0)  # [Z] bytes
    # [2,Z,K] by `merit_order`, of cores and of GPUs; no zones: all nodes are alike
    merit: Floats = np.zeros((2, 0, 0))


@inlined
def is_kept(plan: Plan) -> bool:
    """Return whether the plan has any slots."""
    return plan.cores.shape[1] > 0


@borrowing
def keep(
    plan: Plan, zone: int, slot_s: float, begin_s: float, end_s: float, cpu_cores: float
) -> None:
    """Add cores to the plan from `begin_s` to `end_s`; negative ones remove them."""
    if is_kept(plan):
        _add(plan.cores[zone], slot_s, begin_s, end_s, cpu_cores)


@borrowing
def keep_more(
    plan: Plan, zone: int, slot_s: float, begin_s: float, end_s: float, gpus: float,
    memory_bytes: float,
) -> None:  # fmt: skip
    """Add GPUs and memory to the plan as `keep` adds cores."""
    if gpus != 0.0 and plan.gpus.shape[1] > 0:
        _add(plan.gpus[zone], slot_s, begin_s, end_s, gpus)
    if memory_bytes != 0.0 and plan.memory.shape[1] > 0:
        _add(plan.memory[zone], slot_s, begin_s, end_s, memory_bytes)


@inlined
def _add(slots: Floats, slot_s: float, begin_s: float, end_s: float, amount: float) -> None:
    first, last = slots_of(begin_s, end_s, slot_s, slots.size)
    for at in range(first, last):
        slots[at] += amount


@inlined
def slots_of(begin_s: float, end_s: float, slot_s: float, slots: int) -> tuple[int, int]:
    """Return the range of slots that an interval touches: the first, and the one after the last."""
    first = min(int(np.floor(begin_s / slot_s)), slots - 1)  # `//` would call fmod
    last = min(int(np.ceil(end_s / slot_s)), slots)
    return first, max(last, first + 1)
