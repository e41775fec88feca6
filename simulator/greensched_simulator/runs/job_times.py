"""How long jobs took and waited, and how much longer than they had to."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.reward import ROUNDING_S
from greensched_simulator.arrays.precedence import earliest_ready_s, ready_times_s
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

# Feitelson et al., "Theory and Practice in Parallel Job Scheduling", JSSPP 1997: without a bound
# the slowdown of one-second jobs outweighs all others.
SLOWDOWN_BOUND_S = 10.0
_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class JobTimes(NamedTuple):
    """How long jobs took and waited, named as in `Outcome`."""

    completion_mean_s: float
    completion_median_s: float
    completion_p95_s: float
    completion_p99_s: float
    wait_mean_s: float
    wait_p95_s: float
    slowdown_mean: float
    slowdown_p95: float
    fairness: float


def job_times_of(world: World, schedule: Schedule, until_s: float) -> JobTimes:
    """Return the figures of a schedule; jobs that never ran count as `_served_at_least` says."""
    is_job, served = ~is_replica(world.jobs), _served_at_least(world, schedule, until_s)
    completion_s, wait_s, slowdown = (each[is_job] for each in served)
    median_s, p95_s, p99_s = np.quantile(completion_s, (0.5, 0.95, 0.99)).tolist()
    return JobTimes(
        float(completion_s.mean()),
        median_s,
        p95_s,
        p99_s,
        float(wait_s.mean()),
        float(np.quantile(wait_s, 0.95)),
        float(slowdown.mean()),
        float(np.quantile(slowdown, 0.95)),
        jain_index(slowdown),
    )


def waits_s(world: World, schedule: Schedule) -> Floats:
    """Return how long each job waited until its start and while suspended, [J]; NaN: never ran.

    The wait begins when the job is ready.
    """
    ran = schedule.run_segments.of_jobs
    again = np.flatnonzero(np.diff(ran.job) == 0)
    pauses_s = ran.start_s[again + 1] - ran.end_s[again]
    paused_s = np.bincount(ran.job[again], pauses_s, minlength=schedule.start_s.size)
    wait_s: Floats = schedule.start_s - ready_from_s(world, schedule) + paused_s
    return wait_s


def ready_from_s(world: World, schedule: Schedule) -> Floats:
    """Return when each job had arrived and all its predecessors had ended, [J]; NaN: never."""
    return ready_times_s(world.precedence, world.jobs.arrival_s, schedule.end_s)


def completions_s(world: World, schedule: Schedule) -> Floats:
    """Return each job's completion time, from its arrival to its end, [J]; NaN: it never ended.

    Unlike wait and slowdown, it includes the time until the jobs that it waits for have ended.
    """
    completion_s: Floats = schedule.end_s - world.jobs.arrival_s
    return completion_s


def slowdowns(world: World, schedule: Schedule) -> Floats:
    """Return each job's bounded slowdown, [J]; NaN if it never ended.

    (end − ready time) / max(shortest runtime, 10 s), at least 1. The shortest runtime is the same
    under all policies; with the runtime on the job's node, a slow node would hide a long wait.
    """
    runtime_s = np.maximum(shortest_runtimes_s(world), SLOWDOWN_BOUND_S)
    took_s = schedule.end_s - ready_from_s(world, schedule)
    slowdown: Floats = np.maximum(took_s / runtime_s, 1.0)
    return slowdown


def shortest_runtimes_s(world: World) -> Floats:
    """Return each job's runtime on the fastest node that is large enough for it, [J]."""
    nodes, jobs = world.nodes, world.jobs
    columns = (nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity, nodes.speed)
    speed = np.full(jobs.runtime_s.size, nodes.speed.min())
    for cpu_cores, memory_bytes, gpus, own_speed in np.unique(np.stack(columns, axis=1), axis=0):
        fits = jobs.cpu_cores <= cpu_cores * (1 + _EPSILON)
        fits &= jobs.memory_bytes <= memory_bytes * (1 + _EPSILON)
        fits &= jobs.gpus <= gpus + _EPSILON
        speed = np.where(fits, np.maximum(speed, own_speed), speed)
    runtime_s: Floats = jobs.runtime_s / speed
    return runtime_s


def meets_deadline(world: World, schedule: Schedule) -> npt.NDArray[np.bool_]:
    """Return whether each job has a deadline and ended by it, [J]."""
    deadline_s = world.jobs.deadline_s
    return np.isfinite(deadline_s) & (schedule.end_s <= deadline_s + ROUNDING_S)


def jain_index(values: Floats) -> float:
    """Return Jain's fairness index of positive values: 1 if all are equal, 1/count at the least.

    (sum)² / (count · sum of squares), by Jain, Chiu and Hawe, "A Quantitative Measure of Fairness
    and Discrimination", DEC TR-301, 1984.
    """
    return float(values.sum() ** 2 / (values.size * (values**2).sum()))


class _Served(NamedTuple):
    """Completion time, wait and slowdown of each job, [J]."""

    completion_s: Floats
    wait_s: Floats
    slowdown: Floats


def _served_at_least(world: World, schedule: Schedule, until_s: float) -> _Served:
    """Return the times of all jobs; those that never ran count as started when the window ends.

    A job whose predecessor never ran counts as ready at the earliest time possible.
    """
    arrival_s, shortest_s = world.jobs.arrival_s, shortest_runtimes_s(world)
    first_s = earliest_ready_s(world.precedence, arrival_s, shortest_s)
    ready = ready_from_s(world, schedule)
    from_s = np.where(np.isnan(ready), first_s, ready)
    waited_s = np.maximum(until_s - from_s, 0.0)
    slowed = np.maximum((waited_s + shortest_s) / np.maximum(shortest_s, SLOWDOWN_BOUND_S), 1.0)
    own = (completions_s(world, schedule), waits_s(world, schedule), slowdowns(world, schedule))
    least = (from_s + waited_s + shortest_s - arrival_s, waited_s, slowed)
    return _Served._make(
        np.where(np.isnan(each), at_least, each) for each, at_least in zip(own, least, strict=True)
    )
