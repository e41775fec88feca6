"""Builder for tests: a world from rows of nodes, jobs and grid steps, without files."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle, islice, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from greensched_policies.billing.supply import Battery
from greensched_policies.billing.timelines import NO_CAPS, NO_SLEEPS, Caps, Sleeps
from greensched_policies.costs.capping import cpu_speed, gpu_speed
from greensched_policies.costs.cost import (
    CostModel,
    Floats,
    Integers,
    NodeColumns,
    curve_table,
    watts_before,
)
from greensched_policies.costs.scaling import NO_SCALING
from greensched_policies.encoding.weights import Weights
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.moving import NO_LINKS
from greensched_simulator.arrays.nodes import AutoscaledGroups, NodeArrays, Outages
from greensched_simulator.arrays.precedence import precedence_of
from greensched_simulator.engine.state.cluster import ClusterState, node_table
from greensched_simulator.runs.schedule import RunSegments, Schedule
from greensched_simulator.testing.drawn_power import caps_at
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world
from greensched_simulator.world.zone_grids import Grids

GIB = 2.0**30
_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity
GPU_RATIO = 0.8  # of jobs that name none
STRAIGHT = [100.0 + 20.0 * k for k in range(11)]
SOON_FLAT = [50.0] + [120.0] * 10
STEADY = [(0.0, 100.0, 50.0)]  # begin, g/kWh, money per MWh

Fields = Mapping[str, float]
StepValues = tuple[float, float, float]

_SCENARIO = {
    "name": "small",
    "start": "2023-06-01T00:00:00Z",
    "length": "1h",
    "cluster": {"nodes": [{"name": "node", "count": 1, "hardware": "epyc-7763-1s", "cpu_cores": 8,
                           "memory": "8Gi", "zone": "A"}]},
    "grids": {"A": {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
    "workload": {"generator": {"jobs": 1, "cpu_cores": [1]}},
}  # fmt: skip
_NODE = {"cpu_capacity": 10.0, "memory_capacity": 64 * GIB, "gpu_capacity": 0.0, "gpu_idle_w": 0.0,
         "gpu_peak_w": 0.0, "curve_class": 0.0, "speed": 1.0, "pue": 1.0,
         "sleep_w": math.nan, "wake_s": 0.0, "wake_w": math.nan,
         "embodied_g_per_s": 0.0, "zone": 0}  # fmt: skip
_JOB = {"arrival_s": 0.0, "runtime_s": 3600.0, "estimate_s": math.nan, "cpu_cores": 1.0,
        "memory_bytes": GIB, "gpus": 0.0, "gpu_ratio": GPU_RATIO, "workers": 1.0,
        "deadline_s": math.inf,
        "startup_s": 0.0, "save_every_s": math.inf, "save_s": 0.0,
        "leaves_at_s": math.inf, "scaling": 0.0, "frequency_sensitivity": 0.5,
        "data_bytes": 0.0, "data_zone": 0}  # fmt: skip


class Extras(TypedDict, total=False):
    """Optional fields of a world, named as in `World`."""

    length_s: float
    weights: Weights
    empty_nodes_sleep: bool
    scaling: Floats
    links: Floats
    caps_package_power: bool


_USUAL: Extras = {
    "length_s": 7200.0,
    "weights": Weights(1.0, 1.0, 1.0),
    "empty_nodes_sleep": False,
    "scaling": NO_SCALING,
    "links": NO_LINKS,
    "caps_package_power": False,
}


def make_world(
    jobs: Sequence[Fields],
    nodes: Sequence[Fields] = ({},),
    grids: Sequence[Sequence[StepValues]] = (STEADY,),
    *,
    forecasts: Sequence[Sequence[StepValues]] | None = None,
    weather: Sequence[Sequence[float]] | None = None,
    after: Mapping[int, Sequence[int]] = MappingProxyType({}),
    **extras: Unpack[Extras],
) -> World:
    """Return a world of the given jobs, nodes and zones; all else has small, equal defaults.

    Rows have the names of `JobArrays` and `NodeArrays`; curve class 0 is linear, 1 soon flat. A
    step is its begin, g/kWh and money per MWh. `weather` is the PUE of each step relative to that
    of the nodes. Jobs are in order of arrival; `after` maps a job's index to those that it waits
    for. By default, an estimate is the runtime, and watts asleep and waking are the idle ones. Half
    of the requested CPU is used.
    """
    steps = np.array([step for zone in grids for step in zone])
    seen = steps if forecasts is None else np.array([step for zone in forecasts for step in zone])
    pue = np.array([value for zone in weather or () for value in zone])
    ends = np.cumsum([0, *(len(zone) for zone in grids)])
    world = build_world(parse_scenario(_SCENARIO, Path()), 0)._replace(
        jobs=_jobs(jobs),
        job_names=tuple(f"job-{number}" for number in range(len(jobs))),
        nodes=_nodes(nodes),
        node_names=tuple(f"node-{number}" for number in range(len(nodes))),
        zones=tuple("ABCDEFGH"[: len(grids)]),
        grids=Grids(ends, *map(np.ascontiguousarray, (*steps.T, *seen.T[1:])))._replace(
            pue_relative=pue
        ),
        curve_watts=curve_table([STRAIGHT, SOON_FLAT]),
        utilisation_ratio=0.5,
        gpu_ratio=GPU_RATIO,
        precedence=precedence_of([after.get(job, ()) for job in range(len(jobs))]),
        **_USUAL,
    )
    return world._replace(**extras)


def _jobs(rows: Sequence[Fields]) -> JobArrays:
    columns = _columns(_JOB, rows)
    columns["estimate_s"] = np.where(
        np.isnan(columns["estimate_s"]), columns["runtime_s"], columns["estimate_s"]
    )
    data_zone = columns.pop("data_zone").astype(np.int64)
    return JobArrays(**columns, data_zone=data_zone)


def _nodes(rows: Sequence[Fields]) -> NodeArrays:
    columns = _columns(_NODE, rows)
    idle_w = np.array([STRAIGHT[0], SOON_FLAT[0]])[columns["curve_class"].astype(int)]
    idle_w += columns["gpu_capacity"] * columns["gpu_idle_w"]
    for name in ("sleep_w", "wake_w"):
        columns[name] = np.where(np.isnan(columns[name]), idle_w, columns[name])
    zone = columns.pop("zone").astype(np.int64)
    return NodeArrays(**columns, zone=zone)


def drawn_world(
    jobs: Sequence[Mapping[str, Any]],
    nodes: Sequence[Fields],
    grids: Sequence[Sequence[tuple[float, float]]],
    *,
    empty_nodes_sleep: bool = False,
    weather: Sequence[float] | None = None,
    links: Floats = NO_LINKS,
) -> World:
    """Return a world of drawn jobs, with g/kWh and money per MWh by hour in each zone.

    `weather` is the PUE of each hour relative to that of the nodes, repeated, in all zones.

    Jobs have the names of `JobArrays`, except `wait_s` in place of a deadline, the `error` of their
    estimate and, used for one job in three, `before`: how far ahead in the order of arrival are the
    jobs that it waits for. No job has more workers than fit on the nodes.
    """
    jobs = sorted(jobs, key=lambda job: job["arrival_s"])
    after = {
        place: sorted(place - back for back in job["before"] if back <= place)
        for place, job in enumerate(jobs)
        if place % 3 == 2
    }
    rows = [
        {name: value for name, value in job.items() if name not in ("wait_s", "error", "before")}
        | {
            "workers": min(job["workers"], most_workers(job, nodes)),
            "estimate_s": job["runtime_s"] * job["error"],
            "deadline_s": job["arrival_s"] + job["runtime_s"] + job["wait_s"],
            "startup_s": min(job["startup_s"], job["runtime_s"] / 2),
        }
        for job in jobs
    ]
    steps = [[(hour * 3600.0, *pair) for hour, pair in enumerate(zone)] for zone in grids]
    pue = [[*islice(cycle(weather), len(zone))] for zone in grids] if weather else None
    return make_world(
        rows, nodes, steps, empty_nodes_sleep=empty_nodes_sleep, after=after, weather=pue,
        links=links,
    )  # fmt: skip


def even_links(
    latency_s: float = 0.0,
    s_per_gb: float = 8.0,
    kwh_per_gb: float = 0.06,
    price_per_gb: float = 0.02,
) -> Floats:
    """Return equal links between two zones; moving data within a zone is free."""
    link = np.array([latency_s, s_per_gb / 1e9, kwh_per_gb * 3.6e6 / 1e9, price_per_gb / 1e9])
    return link[:, None, None] * (1.0 - np.eye(2))


def with_outages(world: World, *spans: tuple[int, float, float]) -> World:
    """Return the world with outages, each a node, its first and its last hour."""
    events = sorted(
        (3600.0 * at, back, node)
        for node, begin, end in spans
        for at, back in ((begin, 0), (end, 1))
    )
    at_s, is_back, node = (np.array(column) for column in zip(*events, strict=True))
    return world._replace(outages=Outages(at_s, node.astype(np.int64), is_back.astype(np.int64)))


def with_autoscaling(world: World, group: Sequence[int], min_nodes: Sequence[int]) -> World:
    """Return the world with autoscaled groups of equal nodes; -1 for a node that stays on."""
    own, least, wake_s = np.array(group), np.array(min_nodes), world.nodes.wake_s.copy()
    return world._replace(autoscaled=AutoscaledGroups(own, least, wake_s, np.array([0.2, 0.7])))


def with_panels(world: World, dice: np.random.Generator) -> World:
    """Return a world of nine hours with panels and a battery in the first of its two zones."""
    solar_w = np.append(dice.uniform(0.0, 900.0, 9), np.zeros(9))
    batteries = (Battery(1e6, 200.0, 150.0, 0.8), None)
    return world._replace(grids=world.grids._replace(solar_w=solar_w), batteries=batteries)


def most_workers(job: Fields, nodes: Sequence[Fields]) -> float:
    """Return a lower bound on the workers of a job that fit on empty nodes; at least 1."""
    found = 0.0
    for node in nodes:
        memory_bytes = node.get("memory_capacity", _NODE["memory_capacity"])
        times = min(node["cpu_capacity"] // max(job["cpu_cores"], 1.0),
                    memory_bytes // job["memory_bytes"])  # fmt: skip
        found += min(times, node["gpu_capacity"] // np.ceil(job["gpus"]) if job["gpus"] else times)
    return max(found, 1.0)


def in_one_piece(
    start_s: Floats,
    end_s: Floats,
    node: npt.NDArray[np.int64],
    sleeps: Sleeps = NO_SLEEPS,
    caps: Caps = NO_CAPS,
) -> Schedule:
    """Return the schedule of jobs that start as planned and are not suspended; NaN: never ran."""
    ran = np.flatnonzero(~np.isnan(start_s))
    awake = np.full(ran.size, np.nan)
    none = np.zeros(ran.size, np.int64)
    run_segments = RunSegments(
        ran,
        node[ran],
        start_s[ran],
        awake,
        start_s[ran],
        end_s[ran],
        worker=none,
        data_zone=none,
        ready_s=start_s[ran],
    )
    return Schedule(start_s, start_s, end_s, node, run_segments, sleeps, caps)


def free_room(world: World, schedule: Schedule, at_s: float) -> Floats:
    """Return cores, bytes and GPUs free on each node right after `at_s`, [3,N]."""
    ran = schedule.run_segments
    free = np.stack(
        [world.nodes.cpu_capacity, world.nodes.memory_capacity, world.nodes.gpu_capacity]
    )
    runs = (ran.start_s <= at_s) & (at_s < ran.end_s)
    asked = np.stack([world.jobs.cpu_cores, world.jobs.memory_bytes, world.jobs.gpus])
    for run_segment in np.flatnonzero(runs):
        free[:, ran.node[run_segment]] -= asked[:, ran.job[run_segment]]
    return free


def done_s(world: World, schedule: Schedule) -> Floats:
    """Return the work that each run segment did, [P], in seconds of the reference core."""
    ran, caps = schedule.run_segments, schedule.caps
    moments_s = np.unique(np.concatenate([[0.0], caps.from_s, [np.inf]]))
    done = np.zeros(ran.job.size)
    for begin_s, end_s in pairwise(moments_s.tolist()):
        capped_speed = np.array(
            [_capped_speed(world, schedule, each, begin_s) for each in range(ran.job.size)]
        )
        length_s = np.minimum(ran.end_s, end_s) - np.maximum(ran.start_s, begin_s)
        for run_segment in range(ran.job.size):
            together = (ran.job == ran.job[run_segment]) & (ran.start_s == ran.start_s[run_segment])
            done[run_segment] += max(length_s[run_segment], 0.0) * capped_speed[together].min()
    return done


def bytes_of(schedule: Schedule) -> bytes:
    """Return all arrays of a schedule as bytes."""
    columns = (schedule.planned_s, schedule.start_s, schedule.end_s, schedule.node,
               *schedule.run_segments, *schedule.off, *schedule.caps)  # fmt: skip
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


def _capped_speed(world: World, schedule: Schedule, run_segment: int, at_s: float) -> float:
    """Return the speed of a worker's node under its power cap right after `at_s`."""
    machines, node = world.nodes, int(schedule.run_segments.node[run_segment])
    job = schedule.run_segments.job[run_segment]
    cpu_frequency, gpu_cap = caps_at(schedule, node, at_s)
    gpu = (machines.gpu_idle_w[node], machines.gpu_peak_w[node], world.jobs.gpu_ratio[job])
    speed = float(cpu_speed(cpu_frequency, world.jobs.frequency_sensitivity[job]))
    if world.jobs.gpus[job] > 0:
        speed = min(speed, float(gpu_speed(gpu_cap, *gpu)))
    return speed * float(machines.speed[node])


def can_take(world: World, job: int) -> npt.NDArray[np.bool_]:
    """Return which nodes could run a job if they were empty, [N]."""
    jobs, nodes = world.jobs, world.nodes
    asked = np.array([jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]])
    capacity = np.stack([nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity])
    able: npt.NDArray[np.bool_] = np.all(asked[:, None] <= capacity * (1 + _EPSILON), axis=0)
    return able


def _columns(usual: Fields, rows: Sequence[Fields]) -> dict[str, Floats]:
    unknown = {name for row in rows for name in row} - usual.keys()
    if unknown:
        raise ValueError(f"there is no column {', '.join(sorted(unknown))}")
    return {
        name: np.array([float(row.get(name, value)) for row in rows])
        for name, value in usual.items()
    }


def cluster_as(nodes: NodeColumns, zone: Integers, model: CostModel) -> ClusterState:
    """Return the engine's cluster with nodes in the given state, each column [1,N]."""
    now = NodeColumns(*(column[0] for column in nodes))
    count = zone.size
    return ClusterState(
        nodes=node_table(now),
        zone=zone,
        sleep=np.empty((6, 0)),
        cap=np.empty((4, 0)),
        cpu_free=now.cpu_capacity * (1.0 - now.cpu_before),
        memory_free=now.memory_free.copy(),
        gpu_free=now.gpu_free.copy(),
        gpu_shares=np.empty((count, 0)),
        busy=now.cpu_before.copy(),
        busy_w=watts_before(now, model),
        pods=1 - now.is_empty.astype(np.int64),
        next_node=np.zeros(1, np.int64),
        found=np.empty(count, np.int64),
    )  # fmt: skip
