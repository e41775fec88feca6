"""Interactive services as rows of a world's jobs: one row per replica life.

An autoscaler turns a service's requests into replicas. A replica runs while it is wanted, on the
node that the policy chooses. It cannot wait for a better hour or be suspended, and its lifetime
does not depend on the node's speed. The latency of requests is computed afterwards
(`service_latency`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.nodes import NodeArrays
from greensched_simulator.arrays.precedence import moved
from greensched_simulator.scenario.cluster import NodeGroup
from greensched_simulator.scenario.language import ServedModel
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.scenario.services import Autoscaler, Service
from greensched_simulator.world.job_building import JobList
from greensched_simulator.world.request_curve import Curve, curve_of, log_of, times_of
from greensched_simulator.world.response_times import Times, late_request_share, least_places
from greensched_simulator.world.served_models import (
    gpu_ratio_of,
    notes_on_model,
    speed_on,
    with_its_replica,
)

_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class ServiceRows(NamedTuple):
    """A service of a world: its requests, and which jobs are its replicas."""

    name: str
    curve: Curve
    wanted: Floats  # [K] replicas of each slot
    times: Times
    within_s: float  # the objective's limit
    share: float  # of requests that must meet it
    places: int  # of a replica
    startup_s: float
    rows: Integers  # indices in the world's jobs
    speed: Floats  # [N] of a replica on each node, relative to `times`


class Sized(NamedTuple):
    """A service as its autoscaler sees it."""

    service: Service  # with the GPUs and places of its model
    curve: Curve
    wanted: Floats  # [K] replicas of each slot
    times: Times
    speed: Floats  # [N] of a replica on each node, relative to `times`


class _Lives(NamedTuple):
    """The lives of a service's replicas, [L]."""

    number: Integers  # of the replica
    begin_s: Floats
    end_s: Floats


def with_services(
    scenario: Scenario, seed: int, found: JobList, nodes: NodeArrays
) -> tuple[JobList, tuple[ServiceRows, ...]]:
    """Return jobs and replicas together in order of arrival, and the services.

    Replicas come before jobs that arrive at the same time. Raises BadInput if a replica fits no
    node, or if a service misses its objective even without a queue.
    """
    if not scenario.services:
        return found, ()
    parts, names, notes = [], [], list(found.notes)
    owners: list[Integers] = []
    every_sized = [sized(service, scenario, seed, nodes) for service in scenario.services]
    gpus = [group.gpus.model for group in scenario.cluster.nodes if group.gpus is not None]
    for number, (service, curve, wanted, _, speeds) in enumerate(every_sized):
        lives = _lives(wanted, curve.begins_s)
        gpu_ratio = gpu_ratio_of(service, scenario.assumptions.gpu_ratio)
        parts.append(_rows(service, lives, gpu_ratio))
        names += _names(service.name, lives)
        owners.append(np.full(lives.begin_s.size, number))
        notes += _notes(service, curve, wanted, lives, float(np.nanmin(speeds)))
        notes += notes_on_model(service, gpu_ratio, gpus)
    jobs, every = _merged([*parts, found.jobs])
    owner = np.concatenate([*owners, np.full(found.jobs.arrival_s.size, -1)])[every]
    names += found.names
    services = tuple(
        ServiceRows(
            service.name, curve, wanted, times, service.objective.within, service.objective.share,
            service.replica.places, service.replica.startup, np.flatnonzero(owner == number),
            speeds,
        )
        for number, (service, curve, wanted, times, speeds) in enumerate(every_sized)
    )  # fmt: skip
    precedence = moved(found.precedence, np.flatnonzero(owner < 0), owner.size)
    names_in_order = tuple(names[place] for place in every)
    return JobList(jobs, precedence, names_in_order, tuple(notes)), services


def sized(service: Service, scenario: Scenario, seed: int, nodes: NodeArrays) -> Sized:
    """Return a service with its number of replicas, sized for the slowest node that fits one.

    Raises BadInput if a replica fits no node, or if the service misses its objective even without a
    queue.
    """
    service = with_its_replica(service)
    speeds, times = _speeds(service, scenario.cluster.nodes, nodes), times_of(service)
    slowest = _at_speed(service, times, float(np.nanmin(speeds)))
    curve = curve_of(service, scenario.start_s, scenario.length_s, seed)
    wanted = replicas_wanted(service, curve.rate_per_s, slowest)
    return Sized(service, curve, wanted, times, speeds)


def is_replica(jobs: JobArrays) -> npt.NDArray[np.bool_]:
    """Return which rows are replicas of services, [J]; the others are jobs."""
    return np.isfinite(jobs.leaves_at_s)


def replicas_wanted(service: Service, rate_per_s: Floats, times: Times) -> Floats:
    """Return how many replicas the autoscaler wants in each slot, [K].

    This is the least number that meets the objective at the previous slot's rate plus the head
    room, and at least the most that any slot begun within `scale_down_after` needed: the rule of
    Kubernetes' HorizontalPodAutoscaler. The first slot uses its own rate. `times` are those on the
    nodes for which it is sized.
    """
    rule, objective = service.autoscaler, service.objective
    seen = np.concatenate([rate_per_s[:1], rate_per_s[:-1]]) * (1 + rule.head_room)
    needed = least_places(
        objective.within, 1 - objective.share, seen, service.replica.places, rule.most, times
    )
    needed = np.clip(needed, rule.least, rule.most)
    return _held(needed, rule)


def _held(needed: Floats, rule: Autoscaler) -> Floats:
    """Return the maximum over each slot and the slots begun within `scale_down_after` before it."""
    back = int(rule.scale_down_after // rule.every)
    padded = np.concatenate([np.zeros(back), needed])
    held: Floats = np.lib.stride_tricks.sliding_window_view(padded, back + 1).max(axis=1)
    return held


def _lives(wanted: Floats, begins_s: Floats) -> _Lives:
    """Return the lives of replicas; the newest is removed first, as by a ReplicaSet."""
    most = int(wanted.max(initial=0.0))
    is_up = wanted[None, :] > np.arange(most)[:, None]
    steps = np.diff(np.pad(is_up.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    number, begin = np.nonzero(steps == 1)
    end = np.nonzero(steps == -1)[1]
    return _Lives(number, begins_s[begin], begins_s[end])


def _rows(service: Service, lives: _Lives, gpu_ratio: float) -> JobArrays:
    count, asked = lives.begin_s.size, service.replica
    lasts_s = lives.end_s - lives.begin_s
    return JobArrays(
        arrival_s=lives.begin_s,
        runtime_s=lasts_s,
        estimate_s=lasts_s,
        cpu_cores=np.full(count, asked.cpu_cores),
        memory_bytes=np.full(count, asked.memory),
        gpus=np.full(count, float(asked.gpus)),
        gpu_ratio=np.full(count, gpu_ratio),
        workers=np.ones(count),
        deadline_s=np.full(count, np.inf),
        startup_s=np.zeros(count),
        save_every_s=np.full(count, np.inf),
        save_s=np.zeros(count),
        leaves_at_s=lives.end_s,
        scaling=np.zeros(count),
        frequency_sensitivity=np.full(count, service.frequency_sensitivity),
        data_bytes=np.zeros(count),
        data_zone=np.zeros(count, np.int64),
    )


def _names(service: str, lives: _Lives) -> list[str]:
    """Return a name for each life, such as web-3-2 for the third life of replica 3."""
    before: dict[int, int] = {}
    names = []
    for number in lives.number.tolist():
        names.append(f"{service}-{number}-{before.setdefault(number, 0)}")
        before[number] += 1
    return names


def _merged(parts: list[JobArrays]) -> tuple[JobArrays, Integers]:
    """Return all rows in order of arrival, and the index of each in the concatenated parts."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return JobArrays._make(np.ascontiguousarray(column[order]) for column in columns), order


def _speeds(service: Service, groups: Sequence[NodeGroup], nodes: NodeArrays) -> Floats:
    """Return a replica's speed on each node, [N]; NaN on nodes that are too small for it.

    With GPUs, the speed is that of the GPUs; without a model, all GPUs have the same.
    """
    fits = rooms(service, nodes)
    speeds = nodes.speed if service.replica.gpus == 0 else np.ones(fits.size)
    if service.model is not None:
        gpus = np.repeat([group.gpus.model if group.gpus else "" for group in groups],
                           [group.count for group in groups])  # fmt: skip
        speeds = np.full(fits.size, np.nan)
        for gpu in np.unique(gpus[fits]).tolist():
            speeds[gpus == gpu] = _speed_on(service, service.model, gpu)
    return np.where(fits, speeds, np.nan)


def rooms(service: Service, nodes: NodeArrays) -> npt.NDArray[np.bool_]:
    """Return which nodes are large enough for a replica, [N]; raise BadInput if none is."""
    asked = service.replica
    fits = asked.cpu_cores <= nodes.cpu_capacity * (1 + _EPSILON)
    fits &= asked.memory <= nodes.memory_capacity * (1 + _EPSILON)
    fits &= asked.gpus <= nodes.gpu_capacity
    if not fits.any():
        raise BadInput(
            f"service {service.name}: a replica requests {asked.cpu_cores:g} cores, "
            f"{asked.memory / 2**30:.4g} GiB and {asked.gpus} GPUs, which no node has: make it "
            "smaller, or give larger nodes"
        )
    return fits


def _speed_on(service: Service, model: ServedModel, gpu: str) -> float:
    try:
        return speed_on(model, gpu)
    except BadInput as fault:
        raise BadInput(
            f"service {service.name}: a replica can get {gpu} too, and {fault}; or request more "
            f"cores or memory than those nodes have"
        ) from fault


def _at_speed(service: Service, times: Times, speed: float) -> Times:
    """Return service times on nodes of a speed; raise BadInput if these miss the objective."""
    slow = times._replace(mean_s=times.mean_s / speed, answer_mean_s=times.answer_mean_s / speed)
    aim, one = service.objective, np.ones(1)
    late = float(late_request_share(aim.within, 0.0 * one, one, 1.0, slow)[0])
    if late > 1 - aim.share:
        raise BadInput(
            f"service {service.name}: on a node of speed {speed:g}, even requests that do not "
            f"wait take longer than {aim.within:g} s in {100 * late:.3g} % of all cases, but the "
            f"objective allows {100 * (1 - aim.share):.3g} %: give more time, or shorter requests"
        )
    return slow


def _notes(
    service: Service, curve: Curve, wanted: Floats, lives: _Lives, speed: float
) -> list[str]:
    trace = service.requests.trace
    notes = [
        f"{service.name}: {curve.requests.sum():,.0f} requests, {wanted.min():.0f} to "
        f"{wanted.max():.0f} replicas in {lives.begin_s.size:,} lives, sized for nodes of speed "
        f"{speed:g}"
    ]
    return notes if trace is None else [*notes, *log_of(trace).notes]
