"""The least CPU that a service's replicas use under any schedule, for bounds.

Fewer ready replicas, or slower ones, are busier. So the least is their use while all replicas that
are wanted are ready, each on the fastest node and without a cap. A replica that may still start up
uses no less than that or than a job, whichever is less.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.billing.timelines import held, steps_at
from greensched_policies.costs.cost import Floats
from greensched_simulator.runs.ready_replicas import busy_share
from greensched_simulator.world.services import ServiceRows
from greensched_simulator.world.world import World


class UseSteps(NamedTuple):
    """The use of CPU between times, relative to that of a job with the same request."""

    times_s: Floats  # [K+1]
    use: Floats  # [K]


class LeastUse:
    """The least use of the replicas of all services; other rows use what jobs do."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._every = [_steps(world, service) for service in world.services]
        self._owner = np.full(world.jobs.arrival_s.size, -1)
        for number, service in enumerate(world.services):
            self._owner[service.rows] = number

    def between(self, job: int, begin_s: float, end_s: float) -> UseSteps:
        """Return the least use of a row that runs from one time to another in one piece."""
        number = int(self._owner[job])
        if number < 0:
            return UseSteps(np.array([begin_s, end_s]), np.ones(1))
        steps, service = self._every[number], self._world.services[number]
        ready_s = begin_s + service.startup_s
        inside_s = np.append(steps.times_s, ready_s)
        inside_s = inside_s[(inside_s > begin_s) & (inside_s < end_s)]
        times_s = np.unique(np.concatenate([[begin_s, end_s], inside_s]))
        use = held(steps_at(times_s[:-1], steps.times_s), np.append(steps.use, 0.0), before=0.0)
        return UseSteps(times_s, np.where(times_s[:-1] < ready_s, np.minimum(use, 1.0), use))


def _steps(world: World, service: ServiceRows) -> UseSteps:
    """Return the least use of a service's ready replicas from its first slot to its last."""
    jobs, slots_s = world.jobs, service.curve.begins_s
    begin_s, end_s = jobs.arrival_s[service.rows], jobs.leaves_at_s[service.rows]
    times_s = np.unique(
        np.concatenate([slots_s, np.clip([begin_s, end_s], *slots_s[[0, -1]]).ravel()])
    )
    begun, left = (
        np.searchsorted(np.sort(each), times_s[:-1], side="right") for each in (begin_s, end_s)
    )
    slot = steps_at(times_s[:-1], slots_s)
    speed = (begun - left) * np.nanmax(service.speed)
    busy = busy_share(service, service.curve.rate_per_s[slot], speed)
    return UseSteps(times_s, busy / world.utilisation_ratio)
