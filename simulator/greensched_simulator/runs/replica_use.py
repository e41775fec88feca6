"""The CPU that replicas of services use: it follows the requests that they answer.

A replica uses as much of its requested cores as its places are busy. While it starts up, it uses
what a job with its request does. Between two changes its use is constant, so the bill stays exact.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.billing.timelines import Placements, held
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.runs.ready_replicas import answering_runs, ready_replicas
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.services import ServiceRows
from greensched_simulator.world.world import World


class RunPieces(NamedTuple):
    """Run segments, [P]; those of replicas are cut where their use of CPU changes."""

    job: Integers  # index in the world's jobs
    node: Integers  # index in the world's nodes
    start_s: Floats
    end_s: Floats
    use: Floats  # of CPU, relative to a job with the same request


class _Uses(NamedTuple):
    """The pieces of some run segments, [P]."""

    segment: Integers
    start_s: Floats
    end_s: Floats
    use: Floats


def run_pieces(world: World, schedule: Schedule) -> RunPieces:
    """Return all run segments with the CPU that they use; only replicas' use ever changes."""
    ran = schedule.run_segments
    if not world.services:
        return RunPieces(ran.job, ran.node, ran.start_s, ran.end_s, np.ones(ran.job.size))
    parts = [_uses(world, schedule, service) for service in world.services]
    of_jobs = np.setdiff1d(np.arange(ran.job.size), np.concatenate([each[0] for each in parts]))
    parts.append(_Uses(of_jobs, ran.start_s[of_jobs], ran.end_s[of_jobs], np.ones(of_jobs.size)))
    segment, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return RunPieces(ran.job[segment], ran.node[segment], *columns)


def billed_placements(world: World, schedule: Schedule) -> Placements:
    """Return what ran in the form that the bill takes: its cores are those that a job requests."""
    ran, jobs = run_pieces(world, schedule), world.jobs
    cores = jobs.cpu_cores[ran.job] * ran.use
    gpus, gpu_ratio = jobs.gpus[ran.job], jobs.gpu_ratio[ran.job]
    return Placements(ran.node, ran.start_s, ran.end_s, cores, gpus, gpu_ratio)


def most_use(world: World) -> Floats:
    """Return the most CPU that each row of the jobs may use, [J], relative to a job's request."""
    most = np.ones(world.jobs.arrival_s.size)
    for service in world.services:
        most[service.rows] = 1.0 / world.utilisation_ratio
    return most


def most_loaded(world: World) -> float:
    """Return the highest share of a node's cores that can be in use; replicas may use all."""
    return 1.0 if world.services else world.utilisation_ratio


def _uses(world: World, schedule: Schedule, service: ServiceRows) -> _Uses:
    """Return the pieces of a service's run segments."""
    ready = ready_replicas(world, schedule, service)
    use = ready.busy(service) / world.utilisation_ratio
    is_change = np.diff(use, prepend=np.nan) != 0.0
    steps_s = np.append(ready.from_s[is_change], service.curve.begins_s[-1])
    use = np.append(use[is_change], 0.0)  # after the last slot no requests come
    segment, ready_s = answering_runs(world, schedule, service)
    ran = schedule.run_segments
    start_s, end_s = ran.start_s[segment], ran.end_s[segment]
    ready_s = np.minimum(ready_s, end_s)
    first = np.searchsorted(steps_s, ready_s, side="right")
    count = np.maximum(np.searchsorted(steps_s, end_s, side="left") - first, 0) + 1
    at = np.repeat(np.arange(segment.size), count)
    place = np.arange(at.size) - np.repeat(np.cumsum(count) - count, count)
    step = first[at] + place - 1  # that holds during the piece
    begins_s = np.where(place == 0, ready_s[at], steps_s[np.maximum(step, 0)])
    ends_s = np.where(
        place == count[at] - 1, end_s[at], steps_s[np.minimum(step + 1, steps_s.size - 1)]
    )
    return _Uses(
        np.concatenate([segment, segment[at]]),
        np.concatenate([start_s, begins_s]),
        np.concatenate([ready_s, ends_s]),
        np.concatenate([np.ones(segment.size), held(step, use, before=0.0)]),
    )
