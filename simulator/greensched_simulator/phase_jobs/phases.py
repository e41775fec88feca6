"""A job made of phases that can be suspended: its runtime and energy with interruptions.

The job model is that of Opitz's thesis ("STAWP"): startup phases, then work phases, each with a
constant power. A resumed job starts up again and repeats the work since the last checkpoint. A
suspended job draws nothing. A job of constant power has one work phase and no startup.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from greensched_core.units import SAME_MOMENT_S


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a run with constant power."""

    name: str
    duration_s: float
    power_w: float
    is_checkpoint: bool = False  # all work so far is saved at its end

    def __post_init__(self) -> None:
        """Raise ValueError for a phase without a positive, finite duration and a finite power."""
        if not (0.0 < self.duration_s < math.inf and 0.0 <= self.power_w < math.inf):
            raise ValueError(f"phase {self.name}: {self.duration_s} s at {self.power_w} W")


@dataclass(frozen=True, slots=True)
class PhasedJob:
    """The phases of a job, in order."""

    startup: tuple[Phase, ...]
    work: tuple[Phase, ...]
    restart: tuple[Phase, ...] | None = None  # startup of a resumed run; None: as `startup`

    def __post_init__(self) -> None:
        """Raise ValueError for a job without work, or with a checkpoint in a startup phase."""
        if not self.work:
            raise ValueError("a job without a work phase does nothing")
        if any(phase.is_checkpoint for phase in (*self.startup, *(self.restart or ()))):
            raise ValueError("a checkpoint in a startup phase saves no work: leave it out")


class Spent(NamedTuple):
    """The time and energy of a whole run."""

    running_s: float  # without the pauses
    energy_j: float


def spent(job: PhasedJob, suspended_after_s: Sequence[float] = ()) -> Spent:
    """Return what the job takes if it is suspended at each of `suspended_after_s`.

    These count seconds of running since the first start, without pauses, and rise. A suspension at
    the very end of a checkpoint finds it saved. Raises ValueError if they do not rise, or if the
    job has ended by one of them.
    """
    saved, startup = 0, job.startup
    begin_s, energy_j = 0.0, 0.0
    for end_s in suspended_after_s:
        phases = (*startup, *job.work[saved:])
        _require_within(begin_s, end_s, phases)
        energy_j += energy_within_j(phases, end_s - begin_s)
        ended = phases_ended(phases, end_s - begin_s) - len(startup)
        saved = _saved(job.work, saved, saved + max(0, ended))
        begin_s = end_s
        startup = job.startup if job.restart is None else job.restart
    last = (*startup, *job.work[saved:])
    return Spent(begin_s + duration_s(last), energy_j + energy_within_j(last, math.inf))


def duration_s(phases: Sequence[Phase]) -> float:
    """Return the total duration of the phases."""
    return sum(phase.duration_s for phase in phases)


def energy_within_j(phases: Sequence[Phase], length_s: float) -> float:
    """Return the energy of the first `length_s` of the phases."""
    left_s, energy_j = length_s, 0.0
    for phase in phases:
        energy_j += phase.power_w * min(phase.duration_s, max(0.0, left_s))
        left_s -= phase.duration_s
    return energy_j


def phases_ended(phases: Sequence[Phase], length_s: float) -> int:
    """Return how many phases have ended after `length_s`."""
    ended, end_s = 0, 0.0
    for phase in phases:
        end_s += phase.duration_s
        ended += end_s <= length_s + SAME_MOMENT_S
    return ended


def _saved(work: Sequence[Phase], before: int, ended: int) -> int:
    """Return how many work phases are saved when `ended` have ended and `before` were saved."""
    checkpoints = [number for number in range(before, ended) if work[number].is_checkpoint]
    return checkpoints[-1] + 1 if checkpoints else before


def _require_within(begin_s: float, end_s: float, phases: Sequence[Phase]) -> None:
    if not end_s > begin_s:
        raise ValueError(f"suspended after {end_s:g} s, not later than {begin_s:g} s")
    if phases_ended(phases, end_s - begin_s) == len(phases):
        raise ValueError(f"suspended after {end_s:g} s, when the job has ended")
