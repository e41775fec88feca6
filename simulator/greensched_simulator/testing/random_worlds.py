"""Builder for tests: small worlds of all kinds, drawn from a seed."""

from typing import Any

import numpy as np

from greensched_policies.costs.capping import FREQUENCY_SENSITIVITIES
from greensched_policies.costs.scaling import NO_SCALING
from greensched_simulator.testing.small_worlds import (
    GIB,
    GPU_RATIO,
    even_links,
    make_world,
    most_workers,
    with_autoscaling,
    with_outages,
    with_panels,
)
from greensched_simulator.world.request_curve import Curve
from greensched_simulator.world.response_times import Times
from greensched_simulator.world.services import ServiceRows, is_replica
from greensched_simulator.world.world import World

_HOUR = 3600.0
_CURVES = np.array([[1.0, 1.0, 1.0], [1.0, 1.8, 2.2], [1.0, 2.0, 3.0]])  # of elastic jobs


def random_world(
    seed: int, kind: str = "", *, curve: float | None = None, sleeps: bool | None = None
) -> World:
    """Return up to 40 jobs on up to 7 unlike nodes in two zones, often crowded.

    `kind` names additional features: autoscaled, data, elastic, failures, graphs, gangs, panels,
    pauses, services.
    """
    dice = np.random.default_rng(seed)
    arrivals_s = np.sort(60.0 * dice.integers(0, 300, dice.integers(1, 40)))
    jobs = []
    for arrival_s in arrivals_s.tolist():
        runtime_s = 60.0 * float(dice.integers(1, 180))
        wait_s = float(dice.choice([0.0, _HOUR, 5 * _HOUR, np.inf]))
        jobs.append({
            "arrival_s": arrival_s, "runtime_s": runtime_s,
            "estimate_s": runtime_s * float(dice.choice([0.5, 1.0, 1.7])),
            "cpu_cores": float(dice.choice([0.5, 1.0, 4.0, 7.3])),
            "memory_bytes": float(dice.integers(1, 16)) * GIB,
            "gpus": float(dice.choice([0.0, 0.0, 1.0])),
            "deadline_s": arrival_s + runtime_s + wait_s,
        })  # fmt: skip
        if dice.random() < 0.2 and len(jobs) > 1:  # a replica of a service
            jobs[-1] |= {"leaves_at_s": arrival_s + runtime_s, "deadline_s": np.inf}
    nodes = _drawn_nodes(dice, curve)
    grids = [
        [(hour * _HOUR, dice.uniform(20, 800), dice.uniform(-50, 300)) for hour in range(9)]
        for _ in range(2)
    ]
    asleep = bool(dice.random() < 0.3) if sleeps is None else sleeps
    weather = dice.uniform(0.8, 1.3, (2, 9)).tolist() if dice.random() < 0.5 else None
    after = _make_more_of(jobs, nodes, kind, np.random.default_rng([seed, 1]))
    capping = np.random.default_rng([seed, 2])
    _draw_kinds(jobs, capping, np.random.default_rng([seed, 4]))
    world = make_world(
        jobs, nodes, grids, empty_nodes_sleep=asleep, weather=weather, after=after,
        scaling=_CURVES if "elastic" in kind else NO_SCALING,
        caps_package_power=bool(capping.random() < 0.3),
    )  # fmt: skip
    world = _with_failures(world, dice) if "failures" in kind else world
    world = _autoscaled(world) if "autoscaled" in kind else world
    world = world._replace(links=even_links(9.0, 10.0, 0.001)) if "data" in kind else world
    world = _with_service(world, seed) if "services" in kind else world
    return with_panels(world, dice) if "panels" in kind else world


def _draw_kinds(
    jobs: list[dict[str, float]], capping: np.random.Generator, dice: np.random.Generator
) -> None:
    """Draw how much jobs depend on frequency, and what share of a GPU's range they draw."""
    for job in jobs:
        job["frequency_sensitivity"] = float(capping.choice(FREQUENCY_SENSITIVITIES))
        job["gpu_ratio"] = float(dice.choice([0.2, GPU_RATIO, 1.0]))


def _with_failures(world: World, dice: np.random.Generator) -> World:
    """Return the world in which each node fails once."""
    spans = dice.uniform(0.0, 3.0, (world.nodes.zone.size, 2)).cumsum(axis=1).tolist()
    return with_outages(world, *((node, *span) for node, span in enumerate(spans)))


def _autoscaled(world: World) -> World:
    """Return the world in which each node is an autoscaled group, since they are unlike."""
    nodes = range(world.nodes.zone.size)
    awake = world._replace(empty_nodes_sleep=False)
    return with_autoscaling(awake, nodes, [node % 2 for node in nodes])


def _with_service(world: World, seed: int) -> World:
    """Return the world with its replicas as those of one service, and with requests."""
    dice, jobs, is_web = np.random.default_rng([seed, 3]), world.jobs, is_replica(world.jobs)
    jobs = jobs._replace(
        cpu_cores=np.where(is_web, 2.0, jobs.cpu_cores),
        gpus=np.where(is_web, 0.0, jobs.gpus),
        frequency_sensitivity=np.where(is_web, 0.5, jobs.frequency_sensitivity),
    )
    rows = np.flatnonzero(is_web)
    end_s = float(jobs.leaves_at_s[rows].max(initial=_HOUR))
    begins_s = np.append(np.arange(0.0, end_s, _HOUR), end_s)
    requests = dice.choice([0.0, 1.0, 3.0], begins_s.size - 1) * np.diff(begins_s)
    service = ServiceRows(
        "web", Curve(begins_s, requests), np.ones(requests.size), Times(1.0, 1.0, 1.0, 1.0), 5.0,
        0.9, 2, float(dice.choice([0.0, 300.0])), rows, world.nodes.speed,
    )  # fmt: skip
    return world._replace(jobs=jobs, services=(service,))


def _drawn_nodes(dice: np.random.Generator, curve: float | None) -> list[dict[str, float]]:
    return [
        {
            "cpu_capacity": float(dice.choice([8.0, 16.0])), "gpu_capacity": 2.0,
            "gpu_idle_w": 30.0, "gpu_peak_w": float(dice.choice([250.0, 400.0])),
            "curve_class": float(dice.integers(0, 2)) if curve is None else curve,
            "speed": float(dice.choice([0.6, 1.0, 1.7])), "pue": float(dice.choice([1.0, 1.3])),
            "sleep_w": 20.0, "wake_s": float(dice.choice([0.0, 300.0])), "wake_w": 150.0,
            "zone": float(node % 2),
        }
        for node in range(int(dice.integers(1, 8)))
    ]  # fmt: skip


def _make_more_of(
    jobs: list[dict[str, float]], nodes: list[dict[str, float]], kind: str, dice: Any
) -> dict[int, list[int]]:
    """Give jobs several workers and let them be suspended; return the jobs that each waits for."""
    after = {}
    for place, job in enumerate(jobs):
        if "leaves_at_s" in job:
            continue
        if "gangs" in kind:
            job["gpus"] = float(dice.choice([0.0, 0.4, 1.0]))
            job["workers"] = min(float(dice.integers(1, 4)), most_workers(job, nodes))
        if "data" in kind:
            job["data_bytes"], job["data_zone"] = float(dice.choice([0.0, 1e9])), place % 2
        if "pauses" in kind:
            job["save_every_s"] = float(dice.choice([0.0, 1200.0, np.inf]))
            job["startup_s"], job["save_s"] = float(dice.choice([0.0, 30.0])), 20.0
        if "elastic" in kind and job.get("workers", 1.0) == 1.0:
            job["scaling"] = float(dice.integers(0, 3))
            job["save_every_s"], job["startup_s"] = float(dice.choice([0.0, 1200.0])), 30.0
        if "graphs" in kind and place % 3 == 2:
            after[place] = sorted({place - int(back) for back in dice.integers(1, 3, 2)})
    return after
