"""The choices of a bound: ways in which a job may run on a group of nodes, slot by slot."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.bounds.inputs import CostCourse

_EPSILON_S = 1e-6


class Choices(NamedTuple):
    """The choices of one job on one group: a variable for each slot, [V]."""

    slot: Integers
    cost: Floats  # of the whole job, or of running all of the slot
    work: Floats  # of the job, done by a variable of 1
    filled: Floats  # [V,W] share of the slots from `slot` on that it fills
    is_alone: bool  # a slot's variables together fill no more than one of them could alone


def _slots(begin_s: float, end_s: float, slot_s: float) -> tuple[Integers, Floats, Floats]:
    """Return the slots that an interval touches, and the begin and end of its part of each."""
    first = int(begin_s // slot_s)
    slot = np.arange(first, max(int(np.ceil(end_s / slot_s)), first + 1))
    return slot, np.maximum(slot * slot_s, begin_s), np.minimum((slot + 1) * slot_s, end_s)


def starts(
    course: CostCourse, begin_s: float, end_s: float, runtime_s: float, slot_s: float
) -> Choices:
    """Return a variable for each slot in which the run may start."""
    latest_s = end_s - runtime_s
    if latest_s < begin_s - _EPSILON_S:
        return Choices(
            np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 1)), is_alone=False
        )
    slot, first_s, last_s = _slots(begin_s, max(latest_s, begin_s), slot_s)
    width = int(np.ceil(runtime_s / slot_s)) + 1
    edges_s = (slot[:, None] + np.arange(width)) * slot_s

    def filled(start_s: Floats) -> Floats:
        ends_s = np.minimum(start_s[:, None] + runtime_s, edges_s + slot_s)
        inside_s: Floats = np.maximum(ends_s - np.maximum(start_s[:, None], edges_s), 0.0)
        return inside_s / slot_s

    cost = course.least_run(first_s, last_s, runtime_s)
    least = np.minimum(filled(first_s), filled(last_s))
    return Choices(slot, cost, np.ones(slot.size), least, is_alone=False)


def pieces(
    course: CostCourse, begin_s: float, end_s: float, runtime_s: float, slot_s: float
) -> Choices:
    """Return a variable for each slot: the share in which the job runs, at the best time in it."""
    if end_s - begin_s < runtime_s - _EPSILON_S:
        return Choices(
            np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 1)), is_alone=True
        )
    slot, first_s, last_s = _slots(begin_s, end_s, slot_s)
    available = (last_s - first_s) / slot_s
    kept = available > 0
    slot, first_s, last_s, available = slot[kept], first_s[kept], last_s[kept], available[kept]
    cost = course.least_rate(first_s, last_s) * slot_s
    return Choices(
        slot, cost, np.full(slot.size, slot_s / runtime_s), available[:, None], is_alone=True
    )


def stay(course: CostCourse, begin_s: float, end_s: float, slot_s: float) -> Choices:
    """Return the single variable of a replica that runs from one time to another."""
    slot, first_s, last_s = _slots(begin_s, end_s, slot_s)
    cost, filled = np.array([course.of(begin_s, end_s)]), (last_s - first_s)[None, :] / slot_s
    return Choices(slot[:1], cost, np.ones(1), np.maximum(filled, 0.0), is_alone=False)
