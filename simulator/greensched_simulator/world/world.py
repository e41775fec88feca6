"""The inputs of a run other than its policy: nodes, jobs and grids as arrays, from one seed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_operator.objects.green_policy import GreenPolicy
from greensched_policies.billing.supply import Battery
from greensched_policies.costs.cost import CURVE_POINTS, Floats, curve_table
from greensched_policies.costs.scaling import NO_SCALING
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.nets import CandidateNet
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.moving import NO_LINKS
from greensched_simulator.arrays.nodes import (
    NO_AUTOSCALED,
    AutoscaledGroups,
    NodeArrays,
    Outages,
)
from greensched_simulator.arrays.precedence import NO_PRECEDENCE, Precedence, whole_jobs
from greensched_simulator.arrays.seeds import naming_seed
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.scenario.policy_file import read_policy_file
from greensched_simulator.world.elastic_jobs import scaling_of
from greensched_simulator.world.grid_doubts import notes_on_files
from greensched_simulator.world.job_building import JobList, build_jobs
from greensched_simulator.world.job_drafts import Capacity
from greensched_simulator.world.network import links_of
from greensched_simulator.world.node_autoscaling import autoscaled_of
from greensched_simulator.world.node_outages import NO_OUTAGES, outages_of
from greensched_simulator.world.node_power import power_of
from greensched_simulator.world.services import ServiceRows, with_services
from greensched_simulator.world.zone_grids import DAY_S, Grids, build_grids
from greensched_simulator.world.zone_solar import battery_of

_HOUR_S = 3600.0
_PAST_THE_END_S = 30 * DAY_S  # queues may grow long


class World(NamedTuple):
    """A scenario, drawn with one seed."""

    jobs: JobArrays
    job_names: tuple[str, ...]
    nodes: NodeArrays
    node_names: tuple[str, ...]
    zones: tuple[str, ...]
    currency: str
    grids: Grids
    curve_watts: Floats  # flat [classes * 11]: watts at 0, 10 … 100 % CPU load, without GPUs
    length_s: float
    weights: Weights
    utilisation_ratio: float  # CPU used per CPU requested
    gpu_ratio: float  # share of a GPU's watts above idle that a job draws
    empty_nodes_sleep: bool
    name: str  # the scenario's
    start_s: float  # seconds since the epoch
    seed: int
    notes: tuple[str, ...]  # what was assumed or left out, each a sentence
    precedence: Precedence = NO_PRECEDENCE
    services: tuple[ServiceRows, ...] = ()  # their replicas are rows of the jobs
    batteries: tuple[Battery | None, ...] = ()  # [Z], None without panels; [0] if no zone has any
    scaling: Floats = NO_SCALING  # of elastic jobs, by the row that each names
    outages: Outages = NO_OUTAGES  # of the nodes that are awake then
    autoscaled: AutoscaledGroups = NO_AUTOSCALED
    links: Floats = NO_LINKS  # [4,Z,Z] between zones, if any job has data: see `moving`
    caps_package_power: bool = False  # CPU caps limit watts of packages, else frequency
    green_policy: GreenPolicy | None = None  # for the policy of that name
    when_net: CandidateNet | None = None  # that chooses starts, if it names a model


class NamedNodes(NamedTuple):
    """The nodes of a scenario, their names, and their power curves."""

    nodes: NodeArrays
    names: tuple[str, ...]
    curve_watts: Floats


def build_world(scenario: Scenario, seed: int | None = None) -> World:
    """Return the world of a scenario, drawn with `seed` or its own; equal seeds give equal bytes.

    Raises BadInput for jobs that fit no node, unless the scenario skips them, and for files that
    changed since the scenario was loaded and now have faults.
    """
    seed = scenario.seed if seed is None else seed
    built = nodes_of(scenario)
    found, services = _asked_of(scenario, seed, built.nodes)
    horizon_s = _horizon_s(scenario, found, built.nodes)
    grids = build_grids(scenario, seed, horizon_s)
    nodes = _by_weather(built.nodes, grids)
    weights, assumed = scenario.weights, scenario.assumptions
    green = read_policy_file(scenario.green_policy) if scenario.green_policy else None
    return World(
        jobs=found.jobs,
        job_names=found.names,
        nodes=nodes,
        node_names=built.names,
        zones=tuple(scenario.grids),
        currency=scenario.currency,
        grids=grids,
        curve_watts=built.curve_watts,
        length_s=scenario.length_s,
        weights=Weights(weights.cost, weights.carbon, weights.performance),
        utilisation_ratio=assumed.utilisation_ratio,
        gpu_ratio=assumed.gpu_ratio,
        empty_nodes_sleep=assumed.empty_nodes_sleep,
        name=scenario.name,
        start_s=scenario.start_s,
        seed=seed,
        notes=(*_notes(scenario, found, grids), *(green.notes if green else ())),
        precedence=found.precedence,
        services=services,
        batteries=_batteries(scenario) if grids.solar_w.size else (),
        scaling=scaling_of(scenario.workload),
        outages=outages_of(scenario.cluster.nodes, seed, horizon_s),
        autoscaled=autoscaled_of(scenario.cluster.nodes, nodes, seed),
        links=links_of(scenario),
        caps_package_power=assumed.cpu_caps == "package-power",
        green_policy=green.policy if green else None,
        when_net=green.when_net if green else None,
    )


def _batteries(scenario: Scenario) -> tuple[Battery | None, ...]:
    return tuple(battery_of(scenario.sites.get(zone)) for zone in scenario.grids)


def _notes(scenario: Scenario, found: JobList, grids: Grids) -> tuple[str, ...]:
    return (*found.notes, *notes_on_files(scenario), *_notes_on_grids(scenario, grids))


def refuse_seeds(scenario: Scenario, seeds: Sequence[int]) -> None:
    """Raise BadInput that names the first seed whose jobs are refused.

    Drawing jobs takes far less time than running them.
    """
    nodes = nodes_of(scenario).nodes
    for seed in seeds:
        with naming_seed(seed):
            _asked_of(scenario, seed, nodes)


def _asked_of(
    scenario: Scenario, seed: int, nodes: NodeArrays
) -> tuple[JobList, tuple[ServiceRows, ...]]:
    found = build_jobs(scenario, seed, capacity_of(nodes))
    return with_services(scenario, seed, found, nodes)


def capacity_of(nodes: NodeArrays) -> Capacity:
    """Return the total capacity and the shapes of the nodes."""
    columns = np.stack([nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity], axis=1)
    cores = float(nodes.cpu_capacity.sum())
    shapes, counts = np.unique(columns, axis=0, return_counts=True)
    return Capacity(
        cpu_cores=cores,
        memory_bytes=float(nodes.memory_capacity.sum()),
        gpus=float(nodes.gpu_capacity.sum()),
        speed=float(nodes.cpu_capacity @ nodes.speed) / cores,
        shapes=tuple(
            (row[0], row[1], row[2], alike)
            for row, alike in zip(shapes.tolist(), counts.tolist(), strict=True)
        ),
    )


def idle_watts(world: World) -> Floats:
    """Return the watts of each node while empty and awake, [N]: with its GPUs, without PUE."""
    nodes = world.nodes
    curve_w = world.curve_watts[nodes.curve_class.astype(np.int64) * CURVE_POINTS]
    return curve_w + nodes.gpu_capacity * nodes.gpu_idle_w


def highest_watts(world: World) -> Floats:
    """Return the most watts that each node can draw, [N]: at full load or waking, without PUE."""
    nodes = world.nodes
    highest_w = world.curve_watts.reshape(-1, CURVE_POINTS).max(axis=1)
    full_w = highest_w[nodes.curve_class.astype(np.int64)] + nodes.gpu_capacity * nodes.gpu_peak_w
    most_w: Floats = np.maximum(full_w, nodes.wake_w)
    return most_w


def nodes_of(scenario: Scenario) -> NamedNodes:
    """Return all nodes, ordered by group; load_scenario refuses a zone without a grid."""
    groups = scenario.cluster.nodes
    zones = list(scenario.grids)
    classes: dict[tuple[float, ...], int] = {}
    rows = []
    for group in groups:
        power = power_of(group)
        row = classes.setdefault(power.curve.watts, len(classes))
        rows.append((
            group.cpu_cores, group.memory, power.gpus, power.gpu_idle_w, power.gpu_peak_w,
            row, power.speed, group.pue, power.sleep_w, power.wake_s, power.wake_w,
            group.embodied.g_per_s if group.embodied else 0.0,
        ))  # fmt: skip
    counts = [group.count for group in groups]
    table = np.repeat(np.array(rows, dtype=np.float64), counts, axis=0)
    zone = np.repeat(np.array([zones.index(group.zone) for group in groups], np.int64), counts)
    columns = (np.ascontiguousarray(column) for column in table.T)
    names = tuple(f"{group.name}-{number}" for group in groups for number in range(group.count))
    return NamedNodes(NodeArrays._make((*columns, zone)), names, curve_table(list(classes)))


def _by_weather(nodes: NodeArrays, grids: Grids) -> NodeArrays:
    """Return the nodes, with their zone's mean PUE if that depends on the weather."""
    if grids.pue_mean.size == 0:
        return nodes
    mean = grids.pue_mean[nodes.zone]
    return nodes._replace(pue=np.where(np.isnan(mean), nodes.pue, mean))


def _horizon_s(scenario: Scenario, found: JobList, nodes: NodeArrays) -> float:
    """Return a full hour by which all work should be done."""
    jobs = found.jobs
    waits_s = jobs.deadline_s - jobs.arrival_s
    longest_s = float(np.max(np.where(np.isfinite(waits_s), waits_s, 0.0)))
    runtime_s = np.maximum(jobs.runtime_s, jobs.estimate_s)
    whole_s = whole_jobs(found.precedence, jobs.arrival_s, runtime_s).runtime_s
    longest_s += float(whole_s.max() / nodes.speed.min())
    end_s = scenario.length_s + longest_s + _PAST_THE_END_S
    return float(np.ceil(end_s / _HOUR_S) * _HOUR_S)


def _notes_on_grids(scenario: Scenario, grids: Grids) -> list[str]:
    """Return notes on missing data within the scenario's length and soon after, and on PUE."""
    notes = []
    for number, zone in enumerate(scenario.grids):
        own = slice(grids.starts[number], grids.starts[number + 1])
        times_s = grids.times_s[own]
        for signal, column in (
            ("carbon", grids.carbon_g_per_kwh),
            ("price", grids.price_per_mwh),
            *([("sun", grids.solar_w)] if battery_of(scenario.sites.get(zone)) else []),
            *([("temperature", grids.pue_relative)] if _follows_weather(grids, number) else []),
        ):
            values = column[own]
            widths_s = np.diff(np.clip(times_s, 0.0, scenario.length_s))
            missing_s = float(widths_s[np.isnan(values[:-1])].sum())
            if missing_s > 0:
                notes.append(f"{zone} has no {signal} for {missing_s / _HOUR_S:g} h")
            known = times_s[:-1][~np.isnan(values[:-1])]
            if known.size and known[-1] < scenario.length_s:
                notes.append(f"{zone} has no {signal} after the scenario's length; work that "
                    f"still runs then has none")  # fmt: skip
        if _follows_weather(grids, number):
            within = (times_s < scenario.length_s) & np.isfinite(grids.pue_relative[own])
            pue = grids.pue_relative[own][within] * grids.pue_mean[number]
            notes.append(f"{zone} has a PUE of {pue.min():.2f} to {pue.max():.2f} by its weather, "
                         f"{grids.pue_mean[number]:.2f} in the mean")  # fmt: skip
    return notes


def _follows_weather(grids: Grids, zone: int) -> bool:
    return grids.pue_mean.size > 0 and bool(np.isfinite(grids.pue_mean[zone]))
