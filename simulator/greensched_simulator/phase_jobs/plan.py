"""The cheapest schedule of one suspendable job of phases: exact, by dynamic programming.

The job model is that of `phases.py`, after Opitz's master's thesis, whose mixed-integer programme
this replaces. Time is divided into slots of equal length; the job runs in a slot or it does not.
Consecutive slots in which it runs are a run segment. The first segment begins with the job's
startup, each later one with that of a resumed run. The work then continues after the last
checkpoint that ended in an earlier segment. The job uses only as much of its last slot as it needs.
A pause lasts at least a slot, and draws nothing.

All such schedules are considered, so none is cheaper than the plan. With negative values the plan
may run the job only to earn money.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_core.units import JOULES_PER_KWH, SAME_MOMENT_S
from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.phase_jobs.phases import PhasedJob, duration_s
from greensched_simulator.phase_jobs.steps import PhaseSteps, startup_of, steps_of

EQUAL = 1e-12  # share of a cost by which sums in another order may differ


class RunSegment(NamedTuple):
    """Slots in which a job runs without a pause."""

    first_slot: int
    slots: int
    saved: int  # work phases saved at its end; all of them for the last segment


class PhasePlan(NamedTuple):
    """When a job runs, and what that takes; slots and times count from the series' begin."""

    slot_s: float
    run_segments: tuple[RunSegment, ...]
    cost: float  # in the unit of the series, such as grams of CO2e, or money
    energy_j: float
    running_s: float  # without the pauses
    end_s: float

    @property
    def running_slots(self) -> Integers:
        """Return the slots in which the job runs, in order."""
        each = [np.arange(one.first_slot, one.first_slot + one.slots) for one in self.run_segments]
        return np.concatenate(each)

    @property
    def suspended_after_s(self) -> tuple[float, ...]:
        """Return the seconds of running after which the job is suspended, for `spent`."""
        ends = np.cumsum([one.slots for one in self.run_segments[:-1]])
        return tuple((self.slot_s * ends).tolist())


def cheapest_plan(
    job: PhasedJob,
    slot_s: float,
    per_kwh: Floats | Sequence[float],
    *,
    earliest_slot: int = 0,
    deadline_slot: int | None = None,
) -> PhasePlan:
    """Return the cheapest of all schedules.

    `per_kwh` is the cost of a kWh in each slot: g CO2e, or money. The job may run from
    `earliest_slot` on and must end before `deadline_slot`; by default it may use the whole series.
    Of plans with equal cost, the result is one that runs early and has no useless segments.

    Raises BadInput if a usable slot has no finite value, if the slots are not in the series, if
    `slot_s` is not a positive, finite length, and if the job cannot end in time.

    Bellman's recursion, from the last slot to the first: O(S·N) time and O(S·C) memory for S slots,
    with the N steps and C states of `Steps`.
    """
    series = _checked(slot_s, per_kwh, earliest_slot, deadline_slot)
    least_startup_s = min(duration_s(startup_of(job, is_resumed=again)) for again in (False, True))
    if least_startup_s + duration_s(job.work) > series.size * slot_s + SAME_MOMENT_S:
        raise _too_late(job, slot_s, earliest_slot, series.size)
    steps = steps_of(job, slot_s)
    to_go = least_to_go(series, steps)
    if to_go[0, 0] == math.inf:
        raise _too_late(job, slot_s, earliest_slot, series.size)
    return _plan(job, slot_s, earliest_slot, series, steps, to_go)


@fast
def least_to_go(per_kwh: Floats, steps: PhaseSteps) -> Floats:
    """Return the least cost of ending the job from each slot and state on, [S+2,C+1].

    The job has not run in the slot before. The cost is infinite if it cannot end any more. F is the
    cost from a state, R that from a step n with energy e, which leads to another step or a state:

        F(state, slot) = min(F(state, slot + 1), R(first step of the state, slot))
        R(n, slot)     = e(n) · per_kwh(slot) + min(R(step after n, slot + 1),
                                                    F(state after n, slot + 2))
    """
    to_go = np.full((per_kwh.size + 2, steps.saved.size), np.inf)
    running = np.full(steps.energy_kwh.size + 1, np.inf)  # from each step on
    running[-1] = 0.0
    energy_kwh, following, suspended = steps.energy_kwh, steps.following, steps.suspended
    at_last = np.empty(steps.last.size)
    for slot in range(per_kwh.size - 1, -1, -1):
        rate, paused = per_kwh[slot], to_go[slot + 2]
        for row in range(steps.last.size):
            step = steps.last[row]
            onward = min(running[following[step]], paused[suspended[step]])
            at_last[row] = energy_kwh[step] * rate + onward
        for step in range(energy_kwh.size):
            onward = min(running[step + 1], paused[suspended[step]])
            running[step] = energy_kwh[step] * rate + onward
        for row in range(steps.last.size):
            running[steps.last[row]] = at_last[row]
        for state in range(steps.first.size):
            to_go[slot, state] = min(to_go[slot + 1, state], running[steps.first[state]])
    return to_go


@fast
def next_run_segment(
    to_go: Floats, per_kwh: Floats, steps: PhaseSteps, state: int, begin: int
) -> tuple[int, int, int]:
    """Return the next run segment of a cheapest schedule from `begin` on, and the state after it.

    The segment is its first slot and its number of slots. Among equal costs it begins early, then
    saves the most work, then is short; such a segment always saves something.
    """
    for at in range(begin, per_kwh.size):
        least, slots, after, cost = to_go[at + 1, state], 0, max(state, 1), 0.0
        step = steps.first[state]
        for slot in range(at, per_kwh.size):
            cost += steps.energy_kwh[step] * per_kwh[slot]
            reached, step = np.int64(steps.suspended[step]), steps.following[step]
            has_ended = step == steps.energy_kwh.size
            whole = cost if has_ended else cost + to_go[slot + 2, reached]
            margin = EQUAL * abs(least) if least < np.inf else 0.0
            if whole < least - margin or (reached > after and whole <= least + margin):
                least, slots, after = whole, slot + 1 - at, int(reached)
            if has_ended:
                break
        if slots > 0:
            return at, slots, after
    return per_kwh.size, 0, steps.first.size


def _plan(
    job: PhasedJob,
    slot_s: float,
    earliest_slot: int,
    per_kwh: Floats,
    steps: PhaseSteps,
    to_go: Floats,
) -> PhasePlan:
    """Return the plan that follows the least costs from the first slot to the job's end."""
    run_segments: list[RunSegment] = []
    state, begin, cost, energy_kwh = 0, 0, 0.0, 0.0
    while state < steps.first.size:
        begin, slots, after = next_run_segment(to_go, per_kwh, steps, state, begin)
        step = int(steps.first[state])
        for slot in range(begin, begin + slots):
            cost += float(steps.energy_kwh[step] * per_kwh[slot])
            energy_kwh += float(steps.energy_kwh[step])
            step = int(steps.following[step])
        run_segments.append(RunSegment(earliest_slot + begin, slots, int(steps.saved[after])))
        begin, state = begin + slots + 1, after
    before = run_segments[:-1]
    saved = before[-1].saved if before else 0
    last_s = duration_s((*startup_of(job, is_resumed=bool(before)), *job.work[saved:]))
    return PhasePlan(
        slot_s=slot_s,
        run_segments=tuple(run_segments),
        cost=cost,
        energy_j=energy_kwh * JOULES_PER_KWH,
        running_s=slot_s * sum(one.slots for one in before) + last_s,
        end_s=slot_s * run_segments[-1].first_slot + last_s,
    )


def _too_late(job: PhasedJob, slot_s: float, earliest_slot: int, slots: int) -> BadInput:
    needed = duration_s((*job.startup, *job.work)) / slot_s
    return BadInput(
        f"the job cannot end in time: it may use {slots} slots from slot {earliest_slot} on, and "
        f"takes {needed:.6g} slots of {slot_s:g} s in one piece"
    )


def _checked(
    slot_s: float, per_kwh: Floats | Sequence[float], earliest_slot: int, deadline_slot: int | None
) -> Floats:
    """Return the cost of a kWh in the slots that the job may use; raise BadInput for bad ones."""
    if not SAME_MOMENT_S < slot_s < math.inf:
        raise BadInput(f"slot_s is {slot_s:g}: give a finite length above {SAME_MOMENT_S:g} s")
    series = np.asarray(per_kwh, dtype=np.float64)
    until = series.size if deadline_slot is None else deadline_slot
    if not 0 <= earliest_slot < until <= series.size:
        raise BadInput(
            f"earliest_slot is {earliest_slot}, deadline_slot {until}, and per_kwh has "
            f"{series.size} slots: make it 0 ≤ earliest_slot < deadline_slot ≤ number of slots"
        )
    series = np.ascontiguousarray(series[earliest_slot:until])
    unknown = np.flatnonzero(~np.isfinite(series))
    if unknown.size:
        raise BadInput(
            f"per_kwh of slot {earliest_slot + unknown[0]} is {series[unknown[0]]}: give each slot "
            f"that the job may use a finite value ({unknown.size} have none)"
        )
    return series
