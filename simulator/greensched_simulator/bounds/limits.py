"""The limits within which the schedules compared with a bound stay, so that it holds for each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.runs.outcome import stops_by_failures
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World


class Freedom(NamedTuple):
    """What schedules may do other than run each job in one piece at full speed."""

    suspend: bool = False
    cap: bool = False
    scale: bool = False

    @property
    def stops(self) -> bool:
        """Return whether a bound must hold for runs that stop, or that a power cap lengthens."""
        return self.suspend or self.cap or self.scale


class Lives(NamedTuple):
    """Times at which service replicas run under every schedule, each on one node, [L]."""

    job: Integers  # index in the world's jobs
    begin_s: Floats
    end_s: Floats


class Limits(NamedTuple):
    """The limits within which several schedules stay; a bound within them holds for each."""

    latest_end_s: Floats  # [J] of jobs
    lives: Lives
    never_ran: npt.NDArray[np.bool_]  # [J] under at least one of the schedules
    freedom: Freedom


def limits_of(world: World, *schedules: Schedule) -> Limits:
    """Return the limits of the schedules; without any, all jobs run, by their deadlines."""
    never_ran = np.zeros(world.jobs.arrival_s.size, dtype=np.bool_)
    for schedule in schedules:
        never_ran |= np.isnan(schedule.start_s)
    return Limits(
        latest_ends(world, *schedules),
        lives_of(world, *schedules),
        never_ran,
        freedom_of(world, schedules),
    )


def latest_ends(world: World, *schedules: Schedule) -> Floats:
    """Return until when each job may run for a bound on these schedules, [J].

    This is the later of the deadline and the latest end in any schedule, so that the bound also
    holds for missed deadlines. Infinity if there is neither.
    """
    deadlines_s = world.jobs.deadline_s
    latest: Floats = np.where(np.isfinite(deadlines_s), deadlines_s, -np.inf)
    for schedule in schedules:
        latest = np.fmax(latest, schedule.end_s)  # NaN: it never ran
    return np.where(np.isneginf(latest), np.inf, latest)


def freedom_of(world: World, schedules: Sequence[Schedule]) -> Freedom:
    """Return what any of the schedules did other than run jobs in one piece at full speed.

    A stop by a node failure does not count.
    """
    return Freedom(
        suspend=any(_suspends(each) for each in schedules),
        cap=any(each.caps.node.size > 0 for each in schedules),
        scale=any(_scales(world, each) for each in schedules),
    )


def lives_of(world: World, *schedules: Schedule) -> Lives:
    """Return when replicas run under all schedules that ran them, split where any of them moved.

    A replica that no schedule ran runs for all of its life.
    """
    jobs = world.jobs
    replicas = np.flatnonzero(is_replica(jobs))
    ran_in = sum((np.isfinite(each.start_s) for each in schedules), np.zeros(jobs.arrival_s.size))
    whole = replicas[ran_in[replicas] == 0]
    parts = [(whole, jobs.arrival_s[whole], jobs.leaves_at_s[whole])]
    for schedule in schedules:
        ran = schedule.run_segments
        end_s = np.minimum(ran.end_s, jobs.leaves_at_s[ran.job])
        kept = np.isin(ran.job, replicas) & (ran.start_s < end_s)
        parts.append((ran.job[kept], ran.start_s[kept], end_s[kept]))
    job, begin_s, end_s = (np.concatenate(column) for column in zip(*parts, strict=True))
    ends = np.concatenate([np.stack([job, begin_s]), np.stack([job, end_s])], axis=1)
    points, place = np.unique(ends, axis=1, return_inverse=True)
    change = np.bincount(place, np.repeat([1.0, -1.0], job.size), points.shape[1])
    owner, running = points[0].astype(np.int64), np.cumsum(change)
    always = np.flatnonzero((running > 0.5) & (running >= ran_in[owner] - 0.5))
    return Lives(owner[always], points[1][always], points[1][always + 1])


def _suspends(schedule: Schedule) -> bool:
    """Return whether any job stopped, and went on, without a node failure."""
    ran, stopped = schedule.run_segments.of_jobs, stops_by_failures(schedule)
    before = np.flatnonzero(np.diff(ran.job) == 0)
    stops = zip(ran.job[before].tolist(), ran.end_s[before].tolist(), strict=True)
    return any(each not in stopped for each in stops)


def _scales(world: World, schedule: Schedule) -> bool:
    """Return whether any job ran with more workers than it asks for."""
    ran = schedule.run_segments
    return bool((ran.worker >= world.jobs.workers[ran.job]).any())
