"""The cheapest schedule of one job of phases that may be suspended: exact, by a dynamic programme.

The job model is that of `phases.py`, after Opitz's master's thesis, whose mixed-integer programme
this replaces. Time is cut into slots of equal length; in each the job runs, or it does not. Slots
that run one after the other are a run segment: the first begins with the job's startup, each later
one with that of a resumed run; then the work goes on behind the last checkpoint that ended within
an earlier run segment. Of its last slot the job takes what it needs. A pause is a slot at least,
and draws nothing.

No such schedule is left out, so that nothing beats the plan. Where values are negative it may thus
run for nothing but its earnings.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import JOULES_PER_KWH, Floats, Integers
from greensched_simulator.compiling.compiled import fast
from greensched_simulator.phase_jobs.phases import SAME_MOMENT_S, PhasedJob, duration_s
from greensched_simulator.phase_jobs.steps import PhaseSteps, startup_of, steps_of

EQUAL = 1e-12  # of a cost; sums differ by as much when they are added up in another order


class RunSegment(NamedTuple):
    """Slots in which a job runs without a pause."""

    first_slot: int
    slots: int
    saved: int  # work phases that need not run again after it; all of them after the last


class PhasePlan(NamedTuple):
    """When a job runs, and what that takes; slots and time count from the series' begin."""

    slot_s: float
    run_segments: tuple[RunSegment, ...]
    cost: float  # what the series counts, such as grams of CO2e, or money
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
        """Return after how many seconds of running it is suspended each time, as `spent` asks."""
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
    """Return the schedule that costs the least, of all there are.

    `per_kwh` is what a kWh costs in each slot: g CO2e, or money. The job may run from
    `earliest_slot` on and in no slot from `deadline_slot` on, by default within the whole series.
    Of plans that cost the same it takes one that runs early, but none that runs for nothing.

    Raises BadInput for a slot within without a finite value, for slots that there are not, for a
    slot without a length, and where the job cannot end in time.

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
    """Return what it costs at least to end the job from each slot and state on, [S+2,C+1].

    In the slot before, it has not run. Infinite where it cannot end any more. For a state F, and
    for a step n with energy e, which leads to another step or to a state, R:

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
    """Return the next run segment of a cheapest schedule from `begin` on, and the state behind it.

    That is its first slot and how many it has. Where costs are equal it begins early, saves much
    and is short; it saves something then.
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
    """Follow what costs the least from the first slot to the job's end."""
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
        f"the job cannot end in time: it has the {slots} slots from slot {earliest_slot} on, and "
        f"takes {needed:.6g} slots of {slot_s:g} s in one piece"
    )


def _checked(
    slot_s: float, per_kwh: Floats | Sequence[float], earliest_slot: int, deadline_slot: int | None
) -> Floats:
    """Return what a kWh costs in the slots in which the job may run."""
    if not SAME_MOMENT_S < slot_s < math.inf:
        raise BadInput(f"slot_s is {slot_s:g}: a slot takes a finite time, above {SAME_MOMENT_S:g}")
    series = np.asarray(per_kwh, dtype=np.float64)
    until = series.size if deadline_slot is None else deadline_slot
    if not 0 <= earliest_slot < until <= series.size:
        raise BadInput(
            f"the slots from {earliest_slot} until before {until} are none, or not all of them "
            f"among the {series.size} of the series"
        )
    series = np.ascontiguousarray(series[earliest_slot:until])
    unknown = np.flatnonzero(~np.isfinite(series))
    if unknown.size:
        raise BadInput(
            f"per_kwh of slot {earliest_slot + unknown[0]} is {series[unknown[0]]}, and "
            f"{unknown.size} slots in all have no finite value: give each that the job may use one"
        )
    return series
