"""The replicas of a service that answer requests under a schedule, and how busy they are.

Between two changes (a replica is ready or gone, its node's cap or the request rate changes) all
places of a service are busy for the same share of the time: requests go to the first free place.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.billing.timelines import Caps
from greensched_policies.costs.capping import cpu_speed, gpu_speed
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.services import ServiceRows
from greensched_simulator.world.world import World

_BEGIN_S = 0.0


class ReadyReplicas(NamedTuple):
    """A service's ready replicas over time, in pieces, [S]."""

    from_s: Floats
    length_s: Floats
    slot: Integers
    ready: Floats  # replicas
    speed: Floats  # the sum over replicas, relative to the service's times
    rate_per_s: Floats  # of requests

    def busy(self, service: ServiceRows) -> Floats:
        """Return the busy share of the replicas' places, 0..1, [S]; 0 without a replica.

        Requests beyond the capacity of all places are turned away.
        """
        return busy_share(service, self.rate_per_s, np.where(self.ready > 0.0, self.speed, 0.0))


class AnsweringRuns(NamedTuple):
    """The run segments of a service's replicas, [A], and when each begins to answer requests."""

    segment: Integers  # index of the run segment
    ready_s: Floats  # perhaps later than its end


def busy_share(service: ServiceRows, rate_per_s: Floats, speed: Floats) -> Floats:
    """Return the busy share, 0..1, of places with a sum of speeds; 0 if that is 0."""
    most_per_s = service.places * speed / service.times.mean_s
    share = np.divide(rate_per_s, most_per_s, np.zeros(speed.size), where=most_per_s > 0.0)
    return np.minimum(share, 1.0)


def answering_runs(world: World, schedule: Schedule, service: ServiceRows) -> AnsweringRuns:
    """Return when replicas are ready: at once, if they are there at the scenario's start."""
    ran = schedule.run_segments
    mine = np.flatnonzero(np.isin(ran.job, service.rows))
    is_there_at_begin = world.jobs.arrival_s[ran.job[mine]] == _BEGIN_S
    return AnsweringRuns(
        mine, ran.start_s[mine] + np.where(is_there_at_begin, 0.0, service.startup_s)
    )


def ready_replicas(world: World, schedule: Schedule, service: ServiceRows) -> ReadyReplicas:
    """Return the ready replicas of a service from its first slot to the end of its last."""
    changes = _changes(world, schedule, service)
    slots_s = service.curve.begins_s
    inside_s = changes[(changes[:, 0] > 0.0) & (changes[:, 0] < slots_s[-1]), 0]
    edges_s = np.union1d(slots_s, inside_s)
    total = np.vstack([np.zeros(2), np.cumsum(changes[:, 1:], axis=0)])
    now = total[np.searchsorted(changes[:, 0], edges_s[:-1], side="right")]
    slot = np.searchsorted(slots_s, edges_s[:-1], side="right") - 1
    return ReadyReplicas(
        from_s=edges_s[:-1],
        length_s=np.diff(edges_s),
        slot=slot,
        ready=np.round(now[:, 0]).astype(np.float64),
        speed=np.maximum(now[:, 1], 0.0),
        rate_per_s=service.curve.rate_per_s[slot],
    )


def _changes(world: World, schedule: Schedule, service: ServiceRows) -> Floats:
    """Return times, and changes in the number of replicas and in the sum of their speeds, [C,3]."""
    ran, found = schedule.run_segments, [np.zeros((0, 3))]
    capped: dict[int, tuple[Floats, Floats]] = {}
    for segment, ready_s in zip(*answering_runs(world, schedule, service), strict=True):
        node, end_s = int(ran.node[segment]), ran.end_s[segment]
        if ready_s >= end_s:
            continue
        if node not in capped:
            capped[node] = _capped_speeds(world, schedule.caps, node, int(ran.job[segment]))
        from_s, speed = capped[node]
        first = np.searchsorted(from_s, ready_s, side="right") - 1
        last = np.searchsorted(from_s, end_s, side="left")
        change = np.zeros((last - first + 1, 3))
        change[:, 0] = np.concatenate([[ready_s], from_s[first + 1 : last], [end_s]])
        change[0, 1], change[-1, 1] = 1.0, -1.0
        change[:, 2] = np.diff(speed[first:last], prepend=0.0, append=0.0) * service.speed[node]
        found.append(change)
    every = np.concatenate(found)
    return every[np.lexsort(every.T[::-1])]


def _capped_speeds(world: World, caps: Caps, node: int, job: int) -> tuple[Floats, Floats]:
    """Return the times from which a node runs a job at a speed, and the speeds; at first no cap."""
    mine = Caps._make(each[caps.node == node] for each in caps)
    speed = cpu_speed(mine.cpu_frequency, world.jobs.frequency_sensitivity[job])
    if world.jobs.gpus[job] > 0.0:
        idle_w, peak_w = world.nodes.gpu_idle_w[node], world.nodes.gpu_peak_w[node]
        gpu_ratio = world.jobs.gpu_ratio[job]
        speed = np.minimum(speed, gpu_speed(mine.gpu_cap, idle_w, peak_w, gpu_ratio))
    return np.append(-np.inf, mine.from_s), np.append(1.0, speed)
