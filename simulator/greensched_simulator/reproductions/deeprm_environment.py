"""DeepRM's machine and its queue, one step at a time, for rules and for whoever learns.

Mao, Alizadeh, Menache, Kandula, "Resource Management with Deep Reinforcement Learning", HotNets
2016; code hongzimao/deeprm. Work is laid out ahead on a machine of two resources; ten jobs can be
seen, the others stand in a backlog. An action is the slot of the job to place, or VOID; whatever
places nothing lets a step of time pass.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Integers
from greensched_simulator.compiling.compiled import fast

RESOURCES, UNITS = 2, 10  # of each resource, in each step
HORIZON = 20  # steps that work can be laid out ahead
SLOTS = 10  # jobs that can be seen
VOID = SLOTS  # the action that places nothing
NOBODY = NOWHERE = NOT_PLACED = -1


class JobSequence(NamedTuple):
    """A sequence of jobs; a job's number is the step at which it arrives, so 0 is none's."""

    length_steps: Integers  # [T]; 0: no job arrives
    demand: Integers  # [T, RESOURCES], units


class DeepRmState(NamedTuple):
    """All that an action can depend on, and what has become of the jobs."""

    clock: Integers  # [1], steps since the beginning
    free: Integers  # [HORIZON, RESOURCES], units in this step and in those to come
    slots: Integers  # [SLOTS], jobs, or NOBODY
    backlog: Integers  # [T], jobs in the order of arrival
    waiting: Integers  # [1], jobs in the backlog
    finish: Integers  # [T], steps since the beginning, or NOT_PLACED


def begin(work: JobSequence) -> DeepRmState:
    """Return an empty machine at step 0, where nobody has arrived."""
    return DeepRmState(
        clock=np.zeros(1, dtype=np.int64),
        free=np.full((HORIZON, RESOURCES), UNITS, dtype=np.int64),
        slots=np.full(SLOTS, NOBODY, dtype=np.int64),
        backlog=np.full(work.length_steps.size, NOBODY, dtype=np.int64),
        waiting=np.zeros(1, dtype=np.int64),
        finish=np.full(work.length_steps.size, NOT_PLACED, dtype=np.int64),
    )


@fast
def step(state: DeepRmState, work: JobSequence, action: int) -> bool:
    """Do an action: True where it placed a job, False where time went on by a step instead."""
    if action != VOID and state.slots[action] != NOBODY:
        job = state.slots[action]
        offset = earliest_offset(state, work, job)
        if offset != NOWHERE:
            length = work.length_steps[job]
            for ahead in range(offset, offset + length):
                for resource in range(RESOURCES):
                    state.free[ahead, resource] -= work.demand[job, resource]
            state.finish[job] = state.clock[0] + offset + length
            state.slots[action] = _called_from_backlog(state)
            return True
    _let_time_pass(state)
    if state.clock[0] < work.length_steps.size and work.length_steps[state.clock[0]] > 0:
        _arrive(state, state.clock[0])
    return False


@fast
def is_done(state: DeepRmState, work: JobSequence) -> bool:
    """Tell whether every job of the sequence has come and is finished."""
    for job in range(1, work.length_steps.size):
        if work.length_steps[job] > 0 and not NOT_PLACED < state.finish[job] <= state.clock[0]:
            return False
    return True


@fast
def fits(state: DeepRmState, work: JobSequence, job: int, offset: int) -> bool:
    """Tell whether a job finds its units in all its steps, the first in `offset` steps."""
    for ahead in range(offset, offset + work.length_steps[job]):
        for resource in range(RESOURCES):
            if state.free[ahead, resource] < work.demand[job, resource]:
                return False
    return True


@fast
def earliest_offset(state: DeepRmState, work: JobSequence, job: int) -> int:
    """Return in how many steps a job can begin, or NOWHERE; the horizon's last step stays free."""
    for offset in range(HORIZON - work.length_steps[job]):
        if fits(state, work, job, offset):
            return offset
    return NOWHERE


@fast
def _let_time_pass(state: DeepRmState) -> None:
    state.clock[0] += 1
    for ahead in range(HORIZON):  # slices take longer, to compile and to run
        for resource in range(RESOURCES):
            is_new = ahead == HORIZON - 1
            state.free[ahead, resource] = UNITS if is_new else state.free[ahead + 1, resource]


@fast
def _arrive(state: DeepRmState, job: int) -> None:
    for place in range(SLOTS):
        if state.slots[place] == NOBODY:
            state.slots[place] = job
            return
    state.backlog[state.waiting[0]] = job
    state.waiting[0] += 1


@fast
def _called_from_backlog(state: DeepRmState) -> int:
    if state.waiting[0] == 0:
        return NOBODY
    job = int(state.backlog[0])
    state.waiting[0] -= 1
    for place in range(state.waiting[0]):
        state.backlog[place] = state.backlog[place + 1]
    state.backlog[state.waiting[0]] = NOBODY
    return job
