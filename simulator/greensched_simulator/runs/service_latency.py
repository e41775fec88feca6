"""The latency of services' requests under a schedule: how many were late, and how late.

Between two changes (a replica is ready or gone, its node's cap or the request rate changes) a
service is assumed to be in the steady state of its rate, its places and their mean speed. Requests
beyond the capacity of all places are turned away, and no request in that time is in time.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.runs.ready_replicas import ready_replicas
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.response_times import late_shares
from greensched_simulator.world.services import ServiceRows
from greensched_simulator.world.world import World

QUANTILES = (0.5, 0.99)
_LIMITS = np.geomspace(1e-2, 1e3, 161)  # in mean answer times; 7 % apart, log-linear between


class Served(NamedTuple):
    """A service's requests by slot, [K]; quantiles are infinite where the queue grows."""

    requests: Floats
    in_time: Floats  # of these
    turned_away: Floats
    ready: Floats  # replicas, the mean over the slot
    cpu_use: Floats  # of these, CPU used per CPU requested; NaN without any
    p50_s: Floats  # from a request's arrival to its answer
    p99_s: Floats
    late_by_limit: Floats  # [T] requests that took longer than each of `limits_s`
    limits_s: Floats  # [T]


class Latency(NamedTuple):
    """All requests of a world's services."""

    requests: float
    in_time: float
    turned_away: float
    p50_s: float  # requests turned away count as infinitely late; 0 without requests
    p99_s: float


def latency_of(world: World, schedule: Schedule) -> Latency:
    """Return the latency of all services' requests together."""
    every = [served(world, schedule, service) for service in world.services]
    if not every:
        return Latency(0.0, 0.0, 0.0, 0.0, 0.0)
    requests = sum(float(each.requests.sum()) for each in every)
    limits_s = np.unique(np.concatenate([each.limits_s for each in every]))
    late = sum(np.interp(limits_s, each.limits_s, each.late_by_limit) for each in every)
    p50_s, p99_s = (
        float(_quantile(np.asarray(late)[:, None] / max(requests, 1e-300), limits_s, share)[0])
        for share in QUANTILES
    )
    in_time = sum(float(each.in_time.sum()) for each in every)
    turned_away = sum(float(each.turned_away.sum()) for each in every)
    if requests == 0.0:
        p50_s = p99_s = 0.0
    return Latency(requests, in_time, turned_away, p50_s, p99_s)


def served(world: World, schedule: Schedule, service: ServiceRows) -> Served:
    """Return one service's requests under a schedule, by slot."""
    found = ready_replicas(world, schedule, service)
    rate_per_s = found.rate_per_s
    places = found.ready * service.places
    speed = np.divide(
        found.speed, found.ready, out=np.zeros(found.ready.size), where=found.ready > 0
    )
    most_per_s = places * speed / service.times.mean_s
    came = rate_per_s * found.length_s
    limits_s = service.times.answer_mean_s * _LIMITS
    every_s = np.append(limits_s, service.within_s)
    late = late_shares(every_s, rate_per_s, places, speed, service.times)
    slots = service.curve.requests.size

    def by_slot(values: Floats) -> Floats:
        sums: Floats = np.bincount(found.slot, values, slots).astype(float)
        return sums

    late_in_slot = np.stack([by_slot(row * came) for row in late])
    requests = service.curve.requests
    share = late_in_slot[:-1] / np.where(requests > 0, requests, 1.0)
    p50_s, p99_s = (_quantile(share, limits_s, quantile) for quantile in QUANTILES)
    ready_s = by_slot(found.ready * found.length_s)
    busy_s = by_slot(found.busy(service) * found.ready * found.length_s)
    return Served(
        requests=requests,
        in_time=np.maximum(requests - late_in_slot[-1], 0.0),
        turned_away=by_slot(np.maximum(rate_per_s - most_per_s, 0.0) * found.length_s),
        ready=ready_s / np.diff(service.curve.begins_s),
        cpu_use=np.divide(busy_s, ready_s, np.full(slots, np.nan), where=ready_s > 0.0),
        p50_s=np.where(requests > 0, p50_s, np.nan),
        p99_s=np.where(requests > 0, p99_s, np.nan),
        late_by_limit=late_in_slot[:-1].sum(axis=1),
        limits_s=limits_s,
    )


def _quantile(late: Floats, limits_s: Floats, share: float) -> Floats:
    """Return the time within which `share` of requests ends, [K], from the late shares, [T,K]."""
    is_kept = late <= 1 - share
    first = np.argmax(is_kept, axis=0)
    before = np.maximum(first - 1, 0)
    column = np.arange(late.shape[1])
    above, below = late[before, column], late[first, column]
    drop = np.where(above > below, above - below, 1.0)
    part = np.clip((above - (1 - share)) / drop, 0.0, 1.0)
    log_s = np.log(limits_s)
    found = np.exp(log_s[before] + part * (log_s[first] - log_s[before]))
    return np.where(is_kept.any(axis=0), found, np.inf)
