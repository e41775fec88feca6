"""DeepRM's machine and its queue, one step at a time, for rules and for learners.

Mao, Alizadeh, Menache, Kandula, "Resource Management with Deep Reinforcement Learning", HotNets
2016; code hongzimao/deeprm. Work is scheduled ahead on a machine with two resources. Ten jobs are
visible; the others wait in a backlog. An action is the slot of the job to place, or VOID; an action
that places nothing lets one step of time pass.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Integers

RESOURCES, UNITS = 2, 10  # of each resource, in each step
HORIZON = 20  # steps for which work can be scheduled ahead
SLOTS = 10  # visible jobs
VOID = SLOTS  # the action that places nothing
NO_JOB = NOWHERE = NOT_PLACED = -1


class JobSequence(NamedTuple):
    """A sequence of jobs; a job's number is its step of arrival, so no job has number 0."""

    length_steps: Integers  # [T]; 0: no job arrives
    demand: Integers  # [T, RESOURCES], units


class DeepRmState(NamedTuple):
    """The state on which actions can depend, and the finish times of jobs."""

    clock: Integers  # [1], steps since the beginning
    free: Integers  # [HORIZON, RESOURCES], units in this step and the next ones
    slots: Integers  # [SLOTS], jobs, or NO_JOB
    backlog: Integers  # [T], jobs in order of arrival
    waiting: Integers  # [1], jobs in the backlog
    finish: Integers  # [T], steps since the beginning, or NOT_PLACED


def begin(work: JobSequence) -> DeepRmState:
    """Return an empty machine at step 0, before any job has arrived."""
    return DeepRmState(
        clock=np.zeros(1, dtype=np.int64),
        free=np.full((HORIZON, RESOURCES), UNITS, dtype=np.int64),
        slots=np.full(SLOTS, NO_JOB, dtype=np.int64),
        backlog=np.full(work.length_steps.size, NO_JOB, dtype=np.int64),
        waiting=np.zeros(1, dtype=np.int64),
        finish=np.full(work.length_steps.size, NOT_PLACED, dtype=np.int64),
    )


@fast
def step(state: DeepRmState, work: JobSequence, action: int) -> bool:
    """Do an action; return True if it placed a job, False if a step of time passed instead."""
    if action != VOID and state.slots[action] != NO_JOB:
        job = state.slots[action]
        offset = earliest_offset(state, work, job)
        if offset != NOWHERE:
            length = work.length_steps[job]
            for ahead in range(offset, offset + length):
                for resource in range(RESOURCES):
                    state.free[ahead, resource] -= work.demand[job, resource]
            state.finish[job] = state.clock[0] + offset + length
            state.slots[action] = _next_from_backlog(state)
            return True
    _let_time_pass(state)
    if state.clock[0] < work.length_steps.size and work.length_steps[state.clock[0]] > 0:
        _arrive(state, state.clock[0])
    return False


@fast
def is_done(state: DeepRmState, work: JobSequence) -> bool:
    """Return whether every job of the sequence has arrived and finished."""
    for job in range(1, work.length_steps.size):
        if work.length_steps[job] > 0 and not NOT_PLACED < state.finish[job] <= state.clock[0]:
            return False
    return True


@fast
def fits(state: DeepRmState, work: JobSequence, job: int, offset: int) -> bool:
    """Return whether all steps of a job that begins in `offset` steps have its units free."""
    for ahead in range(offset, offset + work.length_steps[job]):
        for resource in range(RESOURCES):
            if state.free[ahead, resource] < work.demand[job, resource]:
                return False
    return True


@fast
def earliest_offset(state: DeepRmState, work: JobSequence, job: int) -> int:
    """Return the steps until a job can begin, or NOWHERE; the horizon's last step stays free."""
    for offset in range(HORIZON - work.length_steps[job]):
        if fits(state, work, job, offset):
            return offset
    return NOWHERE


@fast
def _let_time_pass(state: DeepRmState) -> None:
    state.clock[0] += 1
    for ahead in range(HORIZON):  # slices are slower to compile and to run
        for resource in range(RESOURCES):
            is_new = ahead == HORIZON - 1
            state.free[ahead, resource] = UNITS if is_new else state.free[ahead + 1, resource]


@fast
def _arrive(state: DeepRmState, job: int) -> None:
    for place in range(SLOTS):
        if state.slots[place] == NO_JOB:
            state.slots[place] = job
            return
    state.backlog[state.waiting[0]] = job
    state.waiting[0] += 1


@fast
def _next_from_backlog(state: DeepRmState) -> int:
    if state.waiting[0] == 0:
        return NO_JOB
    job = int(state.backlog[0])
    state.waiting[0] -= 1
    for place in range(state.waiting[0]):
        state.backlog[place] = state.backlog[place + 1]
    state.backlog[state.waiting[0]] = NO_JOB
    return job
