"""The steps of a job of phases: all that it can do within one slot, after any suspensions.

Run segments that are at the same place of the work when a slot begins continue alike, no matter
when and after which checkpoint they began. So there are only as many steps as places. If all phases
take whole slots, these are the job's slots, plus those of a startup for each checkpoint.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.units import JOULES_PER_KWH, SAME_MOMENT_S
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.phase_jobs.phases import Phase, PhasedJob, duration_s

_ENDED = -1  # no place on a track: the job ends in the same slot as its startup


class PhaseSteps(NamedTuple):
    """N steps, each a slot in which a job runs, between C states in which it does not.

    In state 0 the job has done nothing yet, in state 1 it has run and saved nothing. Each later
    state is a checkpoint. Consecutive steps form a row.
    """

    energy_kwh: Floats  # [N]
    following: Integers  # [N] the step of the next slot if the job runs on; N if it has ended
    suspended: npt.NDArray[np.uint32]  # [N] its state if it is suspended then; C if it has ended
    last: Integers  # [G] the last step of each row
    first: Integers  # [C] the step with which a run segment begins
    saved: Integers  # [C+1] work phases that need not run again; all of them when it has ended


class _PhaseEnds(NamedTuple):
    """Consecutive phases."""

    ends_s: Floats  # [P+1] from 0 on
    ends_kwh: Floats  # [P+1]

    def kwh_at(self, place_s: Floats) -> Floats:
        """Return the energy from the begin to each place; it is constant beyond the end."""
        found: Floats = np.interp(place_s, self.ends_s, self.ends_kwh)
        return found


class _Entry(NamedTuple):
    """The slots of a run segment until its startup has ended; none without a startup."""

    startup_kwh: Floats  # [E] in each slot
    work_s: float  # time left for work in the last slot


def steps_of(job: PhasedJob, slot_s: float) -> PhaseSteps:
    """Return the steps of a job; places within `SAME_MOMENT_S` of each other are one."""
    work, done_s = _phase_ends(job.work), _done_s(job)
    saved = _saved(job, work.ends_s, done_s)
    saved_s = work.ends_s[saved[:-1]]
    resumed = _entry(startup_of(job, is_resumed=True), slot_s)
    entries = [_entry(job.startup, slot_s), *[resumed] * (saved_s.size - 1)]
    joins_s = saved_s + [entry.work_s for entry in entries]
    track, tracks_s = _tracks(joins_s, slot_s)
    slots = np.maximum(np.ceil((done_s - tracks_s) / slot_s), 0.0).astype(np.int64)
    places_s = [
        np.append(np.full(entry.startup_kwh.size, at_s), to_s)
        for entry, at_s, to_s in zip(entries, saved_s, joins_s, strict=True)
    ]
    places_s += [
        at_s + slot_s * np.arange(size + 1) for at_s, size in zip(tracks_s, slots, strict=True)
    ]
    behind = np.rint((joins_s - tracks_s[track]) / slot_s).astype(np.int64)
    behind[behind >= slots[track]] = _ENDED
    following, last, first = _linked([each.size - 1 for each in places_s], track, behind)
    has_ended = following == following.size

    from_s = np.concatenate([each[:-1] for each in places_s])
    to_s = np.concatenate([each[1:] for each in places_s])
    energy_kwh = work.kwh_at(to_s) - work.kwh_at(from_s)
    startup_kwh = np.concatenate([entry.startup_kwh for entry in entries])
    energy_kwh[: startup_kwh.size] += startup_kwh
    suspended = 1 + np.searchsorted(saved_s[2:] - SAME_MOMENT_S, to_s, side="right")
    suspended[has_ended] = saved_s.size
    return PhaseSteps(energy_kwh, following, suspended.astype(np.uint32), last, first, saved)


def startup_of(job: PhasedJob, *, is_resumed: bool) -> tuple[Phase, ...]:
    """Return the startup phases of a run segment."""
    return job.restart if is_resumed and job.restart is not None else job.startup


def _linked(
    sizes: Sequence[int], track: Integers, behind: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return each step's following step, each row's last step, and each state's first step.

    `sizes` are the lengths of the rows: an entry for each of the C states, then the tracks. An
    entry joins its track after `behind` of the track's steps. A track ends with the job.
    """
    ends = np.cumsum(sizes)
    begins, count, states = ends - sizes, int(ends[-1]), track.size
    joined = np.where(behind == _ENDED, count, begins[states:][track] + behind)
    then = np.append(joined, np.full(ends.size - states, count))
    is_row = begins < ends
    following = np.arange(1, count + 1)
    last = ends[is_row] - 1
    following[last] = then[is_row]
    first = np.where(is_row[:states], begins[:states], joined)
    return following, last, first


def _tracks(joins_s: Floats, slot_s: float) -> tuple[Integers, Floats]:
    """Return each state's track, [C], and each track's first place where a slot begins, [T].

    Places on a track are whole slots apart. The `joins_s` of a track rise.
    """
    phase = np.floor((joins_s + SAME_MOMENT_S / 2.0) % slot_s / SAME_MOMENT_S)
    _, first, track = np.unique(phase, return_index=True, return_inverse=True)
    return track, joins_s[first]


def _entry(startup: Sequence[Phase], slot_s: float) -> _Entry:
    ends = _phase_ends(startup)
    startup_s = ends.ends_s[-1]
    slots = max(math.ceil((startup_s - SAME_MOMENT_S) / slot_s), 0)
    borders_s = slot_s * np.arange(slots + 1)
    return _Entry(np.diff(ends.kwh_at(borders_s)), max(slots * slot_s - startup_s, 0.0))


def _phase_ends(phases: Sequence[Phase]) -> _PhaseEnds:
    joules = [phase.power_w * phase.duration_s for phase in phases]
    ends_s = np.cumsum([0.0, *(phase.duration_s for phase in phases)])
    return _PhaseEnds(ends_s, np.cumsum([0.0, *joules]) / JOULES_PER_KWH)


def _done_s(job: PhasedJob) -> float:
    """Return the place of the work from which on it counts as done; always after its begin."""
    work_s = duration_s(job.work)
    return max(work_s - SAME_MOMENT_S, work_s / 2.0)


def _saved(job: PhasedJob, ends_s: Floats, done_s: float) -> Integers:
    """Return the number of saved work phases in each state; a checkpoint at the end is left out."""
    checkpoints = [
        number
        for number, phase in enumerate(job.work, start=1)
        if phase.is_checkpoint and ends_s[number] < done_s - SAME_MOMENT_S
    ]
    return np.array([0, 0, *checkpoints, len(job.work)])
