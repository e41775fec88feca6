"""The simulator decides as the live components do: compiled or not, by columns or by a view."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_core.clock import ManualClock
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import Gpu
from greensched_core.state import Node
from greensched_core.testing import make_workload
from greensched_extender.policy_choice import rule
from greensched_extender.scoring import Appraisal, ScoringAssumptions, ZoneMeans, appraise
from greensched_extender.snapshot import Snapshot
from greensched_extender.view import View
from greensched_policies.compiling.compiled import compiled
from greensched_policies.costs import capping
from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from greensched_policies.costs.sleeping import SleepColumns, with_waking
from greensched_policies.encoding.queue_columns import QueueColumns
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.encoding.zone_preference import prefer_zone
from greensched_policies.kernel.seeing_nodes import (
    NodesShown,
    Singles,
    empty_scratch,
    fill_of_day,
)
from greensched_policies.learned.guard import Guard
from greensched_policies.library.grid_table import grid_table
from greensched_policies.library.nets import NO_NET
from greensched_policies.library.node_names import Rows
from greensched_policies.rules.catalogue import (
    BAD_WHEN_RULES,
    CAP_RULES,
    ORDER_RULES,
    SLEEP_RULES,
    WHEN_RULES,
    WHERE_RULES,
)
from greensched_simulator.arrays.moving import Data
from greensched_simulator.engine.execution.workers import workload_columns_of
from greensched_simulator.engine.state import observing
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet, rules_of, score_nodes
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.memory import nodes_memory
from greensched_simulator.engine.state.observing import NewWorker
from greensched_simulator.engine.state.recorded import nothing_recorded
from greensched_simulator.engine.state.terms import RunConfig
from greensched_simulator.policy import Policy
from greensched_simulator.runs.run_inputs import run_config_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import cluster_as, make_world
from greensched_simulator.world.world import World
from tests.policies.encoding.encoded_by_numpy import encode_where
from tests.policies.nodes_seen import TIMING, decision, seen_by_library
from tests.policies.random_decisions import random_decision

HOUR = 3600.0
GIB = 2.0**30
SINGLE = 1e-6  # relative, what float32 holds
DOUBLE = 1e-9  # relative, what float64 holds with room to spare

seeds = st.integers(0, 2**32)


def rules(when: str, where: str, order: str = "first-come", cap: str = "full-speed") -> RuleSet:
    """Return the compiled rules; numba calls a part of how they are handed over experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return rules_of(when, where, order, cap)


def numbers(columns: Any, place: int) -> Any:
    """Return one candidate's of some columns, as numbers."""
    return type(columns)(*(float(each.flat[place % each.size]) for each in columns))


def seen_compiled(
    cluster: ClusterState,
    zones: ZoneColumns,
    workload: WorkloadColumns,
    model: CostModel,
    weights: Weights,
    now_s: float = 0.0,
    planned_zone: int = NOWHERE,
) -> tuple[Singles, Singles]:
    """Return what compiled code sees of all nodes, each of which is a zone of its own."""
    see: Any = observing.observe
    count = cluster.zone.size
    features, context = np.empty((1, 22, count), np.float32), np.empty((1, 15), np.float32)
    scratch = empty_scratch(count, count)
    scratch.means[:] = np.concatenate(zones)
    fill_of_day(scratch.means, scratch.means, scratch.of_day)
    left_s, begin_s = TIMING.left_s, TIMING.now_s - now_s
    worker = NewWorker(
        numbers(workload, 0), Data(0.0, 0), now_s, left_s, planned_zone, model.gpu_ratio
    )
    terms = RunConfig(
        0, HOUR, count, weights, model, begin_s=begin_s,
        runtime_error=TIMING.runtime_error, on_time_target=TIMING.on_time_target,
    )  # fmt: skip
    shown = NodesShown(features, context, True, True)
    see(cluster, np.arange(count), worker, terms, scratch, shown)
    return features.transpose((0, 2, 1)), context


@given(seeds)
def test_costs_and_observations_are_the_same_compiled(seed: int) -> None:
    nodes, workload, zones, model, weights = random_decision(seed)
    cost = placement_cost(nodes, workload, zones, model)
    count = nodes.speed.size
    one_by_one = [
        compiled(placement_cost)(
            *(numbers(each, place) for each in (nodes, workload, zones)), model
        )
        for place in range(count)
    ]
    np.testing.assert_allclose(np.array(one_by_one).T, np.concatenate(cost), rtol=DOUBLE)
    planned, cluster = seed % count, cluster_as(nodes, np.arange(count), model)
    seen = seen_compiled(cluster, zones, workload, model, weights, planned_zone=planned)
    asked = decision(*weights, planned_zone=planned)
    said = encode_where(nodes, workload, zones, cost, model, asked)
    served = seen_by_library(nodes, workload, zones, model, asked)
    for ours, its, theirs in zip(seen, served.observation, said, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=SINGLE, atol=SINGLE)
        np.testing.assert_allclose(its, theirs, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(served.power_w, cost.power_w[0], rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(served.runtime_s, cost.runtime_s[0], rtol=SINGLE)


@given(seeds)
def test_what_waking_costs_is_the_same_compiled(seed: int) -> None:
    nodes, workload, zones, model, weights = random_decision(seed)
    dice, count, now_s = np.random.default_rng(seed), nodes.speed.size, 100.0
    told = dice.uniform(0.0, 400.0, (6, count))
    saved_w, wake_s, wake_j, _, asleep_from_s, awake_from_s = told
    asleep_from_s[dice.random(count) < 0.3] = np.inf
    sleeps = (nodes.is_empty > 0.0) & (asleep_from_s < now_s)
    awake_s = np.where(sleeps, wake_s, np.maximum(awake_from_s - now_s, 0.0))
    sleep = SleepColumns(saved_w[None], awake_s, np.where(sleeps, wake_j, 0.0))
    cost = with_waking(placement_cost(nodes, workload, zones, model), nodes, sleep, zones)
    cluster = cluster_as(nodes, np.arange(count), model)._replace(sleep=told)
    seen = seen_compiled(cluster, zones, workload, model, weights, now_s)
    said = encode_where(nodes, workload, zones, cost, model, decision(*weights))
    for ours, theirs in zip(seen, said, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=SINGLE, atol=SINGLE)


@pytest.mark.parametrize("name", SLEEP_RULES)
@settings(max_examples=50)
@given(seed=seeds)
def test_every_sleep_rule_is_the_same_compiled(name: str, seed: int) -> None:
    dice = np.random.default_rng(seed)
    sleep = SleepColumns._make(dice.uniform(0.0, 500.0, (2, 9)) for _ in SleepColumns._fields)
    sleep.saved_w[dice.random((2, 9)) < 0.3] = 0.0
    plain = SLEEP_RULES[name]
    np.testing.assert_allclose(compiled(plain)(sleep), plain(sleep), rtol=DOUBLE)


@pytest.mark.parametrize("name", CAP_RULES)
@settings(max_examples=50)
@given(seed=seeds)
def test_every_cap_rule_is_the_same_compiled(name: str, seed: int) -> None:
    dice = np.random.default_rng(seed)
    seen = CapColumns._make(dice.uniform(0.1, 2.0, (1, 6)) for _ in CapColumns._fields)
    seen = seen._replace(keeps_deadlines=np.floor(seen.keeps_deadlines))
    (cap,) = rules("run-now", "spread", cap=name).cap
    np.testing.assert_allclose(cap(seen), CAP_RULES[name](seen), rtol=DOUBLE)


@given(seeds)
def test_what_a_cap_does_is_the_same_compiled(seed: int) -> None:
    dice = np.random.default_rng(seed)
    power_cap, idle_w = float(dice.uniform(0.3, 1.0)), float(dice.uniform(0.0, 80.0))
    gpu = (power_cap, idle_w, idle_w + float(dice.uniform(0.0, 600.0)), float(dice.random()))
    for function in (capping.gpu_speed, capping.gpu_watts):
        assert compiled(function)(*gpu) == pytest.approx(float(function(*gpu)), rel=DOUBLE)
    share = float(dice.random())
    for of in (capping.cpu_speed, capping.cpu_power, capping.frequency_within):
        found = compiled(of)(power_cap, share)
        assert found == pytest.approx(float(of(power_cap, share)), rel=DOUBLE)


@pytest.mark.parametrize("name", WHERE_RULES)
@settings(max_examples=50)
@given(seed=seeds)
def test_every_where_rule_is_the_same_compiled(name: str, seed: int) -> None:
    nodes, workload, zones, model, weights = random_decision(seed)
    cost = placement_cost(nodes, workload, zones, model)
    seen = encode_where(nodes, workload, zones, cost, model, decision(*weights))
    (where,) = rules("run-now", name).where
    plain = WHERE_RULES[name]
    off = SINGLE if name == "topsis" else DOUBLE  # the one that sums: numpy in another order
    np.testing.assert_allclose(where(*seen), plain(*seen), rtol=off)


@pytest.mark.parametrize("name", [*WHEN_RULES, *BAD_WHEN_RULES])
@settings(max_examples=50)
@given(seed=seeds)
def test_every_when_rule_is_the_same_compiled(name: str, seed: int) -> None:
    dice = np.random.default_rng(seed)
    shape = (1, int(dice.integers(1, 100)))
    slots = SlotColumns._make(dice.uniform(0.0, 2.0, shape) for _ in SlotColumns._fields)
    slots = slots._replace(
        wait_s=np.arange(0.0, 900.0 * shape[1], 900.0)[None, :], runtime_s=3600.0 * slots.runtime_s
    )
    (when,) = rules(name, "spread").when
    plain = {**WHEN_RULES, **BAD_WHEN_RULES}[name]
    np.testing.assert_allclose(when(slots), plain(slots), rtol=DOUBLE, atol=1e-15)


@pytest.mark.parametrize("name", ORDER_RULES)
@settings(max_examples=50)
@given(seed=seeds)
def test_every_order_rule_is_the_same_compiled(name: str, seed: int) -> None:
    dice = np.random.default_rng(seed)
    shape = (1, int(dice.integers(1, 60)))
    queue = QueueColumns._make(dice.uniform(1.0, 90_000.0, shape) for _ in QueueColumns._fields)
    (order,) = rules("run-now", "spread", name).order
    np.testing.assert_allclose(order(queue), ORDER_RULES[name](queue), rtol=DOUBLE)


def live_view(world: World, pods: dict[int, list[int]]) -> View:
    """Return the extender's view of a world's nodes with such jobs bound to them."""
    snapshot = Snapshot(
        ManualClock(1e9), utilisation_ratio=world.utilisation_ratio, gpu_ratio=world.gpu_ratio,
        default_pue=1.0, provisional_ttl_s=60.0,
    )  # fmt: skip
    machines, jobs = world.nodes, world.jobs
    curves = world.curve_watts.reshape(-1, 11)
    for row, name in enumerate(world.node_names):
        gpus = int(machines.gpu_capacity[row])
        gpu = Gpu("any", gpus, float(machines.gpu_idle_w[row]), float(machines.gpu_peak_w[row]))
        curve = PowerCurve(tuple(curves[int(machines.curve_class[row])].tolist()))
        snapshot.put_node(
            Node(
                name, world.zones[machines.zone[row]], float(machines.cpu_capacity[row]),
                float(machines.memory_capacity[row]), gpu if gpus else None, curve, "annotation",
                "test", float(machines.speed[row]), float(machines.pue[row]),
            )
        )  # fmt: skip
        for job in pods.get(row, []):
            asked = (jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job])
            snapshot.put_pod(f"uid-{job}", name, (float(asked[0]), *map(float, asked[1:])))  # type: ignore[arg-type]  # three of them
    return snapshot.view()


def zone_means(world: World, view: View, begin_s: float, end_s: float) -> ZoneMeans:
    """Return the forecast means over a run for the zones of a view, reckoned another way."""
    grids = world.grids
    found = np.full((2, len(view.facts.zones)), np.nan)
    for place, zone in enumerate(view.facts.zones):
        if zone not in world.zones:
            continue
        own = slice(*grids.starts[world.zones.index(zone) :][:2])
        cuts = np.append(np.clip(grids.times_s[own], begin_s, end_s), end_s)
        for signal, values in enumerate(
            (grids.forecast_carbon_g_per_kwh[own], grids.forecast_price_per_mwh[own])
        ):
            found[signal, place] = (np.diff(cuts) * values).sum() / (end_s - begin_s)
    return ZoneMeans(np.concatenate([found, found]))


def live(world: World, view: View, rows: Rows, job: int, now_s: float, where: str) -> Appraisal:
    """Return what the extender says of a job that comes now."""
    jobs = world.jobs
    workload = make_workload(
        cpu_cores=float(jobs.cpu_cores[job]), memory_bytes=float(jobs.memory_bytes[job]),
        gpus=float(jobs.gpus[job]), runtime_s=float(jobs.estimate_s[job]),
    )  # fmt: skip
    assumptions = ScoringAssumptions(
        world.utilisation_ratio, world.gpu_ratio, world.empty_nodes_sleep, HOUR
    )
    guard = Guard(rule(where), rule(where), budget_s=60.0, monotonic=lambda: 0.0, count=print)
    means = zone_means(world, view, now_s, now_s + workload.runtime_s)  # type: ignore[operator]  # it was told
    return appraise(view, rows, workload, means, assumptions, guard, decision(*world.weights))


def random_world(seed: int, jobs: int, nodes: int = 6) -> World:
    """Return a world of unlike nodes in two zones that change by the hour; every job fits each."""
    dice = np.random.default_rng(seed)
    arrivals_s = np.sort(dice.choice(7200, jobs, replace=False)) + 0.5  # no two at a time
    told = [
        {
            "arrival_s": float(arrival_s),
            "runtime_s": float(dice.integers(60, 9000)),
            "cpu_cores": float(dice.choice([0.5, 1.0, 4.0, 7.3])),
            "memory_bytes": float(dice.integers(1, 16)) * GIB,
            "gpus": float(dice.choice([0.0, 0.0, 1.0])),
        }
        for arrival_s in arrivals_s
    ]
    machines = [
        {
            "cpu_capacity": float(dice.choice([8.0, 16.0, 32.0])),
            "gpu_capacity": float(dice.choice([1.0, 4.0])),
            "gpu_idle_w": 30.0,
            "gpu_peak_w": 300.0,
            "curve_class": float(dice.integers(0, 2)),
            "speed": float(dice.choice([0.7, 1.0, 1.9])),
            "pue": float(dice.choice([1.0, 1.4])),
            "zone": float(node % 2),
        }
        for node in range(nodes)
    ]
    grids = [
        [(hour * HOUR, dice.uniform(20, 800), dice.uniform(-50, 300)) for hour in range(6)]
        for _ in range(2)
    ]
    weights = Weights(*dice.uniform(0.0, 1.0, 3).tolist())
    sleeps = bool(dice.random() < 0.5)
    return make_world(told, machines, grids, weights=weights, empty_nodes_sleep=sleeps)


@pytest.mark.parametrize("where", WHERE_RULES)
@settings(max_examples=20)
@given(seed=seeds, now_s=st.floats(0.0, 5 * HOUR))
def test_the_extender_gives_the_same_scores(where: str, seed: int, now_s: float) -> None:
    world = random_world(seed, jobs=8)
    on = np.random.default_rng(seed).integers(0, len(world.node_names), 7)
    view = live_view(world, {row: np.flatnonzero(on == row).tolist() for row in range(6)})
    rows = view.names.rows(list(world.node_names))
    said = live(world, view, rows, 7, now_s, where).answer.relative_cost[0]
    jobs, grids = world.jobs, world.grids
    forecast = grids.forecast_carbon_g_per_kwh, grids.forecast_price_per_mwh
    table = grid_table(grids.starts, grids.times_s, *forecast)
    terms = run_config_of(world, Policy("run-now", where))
    own = NodeColumns(*view.candidates(rows))._replace(curve_class=world.nodes.curve_class[None])
    cluster = cluster_as(own, world.nodes.zone, terms.model)
    workload = workload_columns_of(7, jobs, nothing_recorded(jobs, cluster, terms, False), terms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        worker = NewWorker(workload, Data(0.0, 0), now_s, np.inf, NOWHERE, world.gpu_ratio)
        seen = cluster, np.arange(rows.size), table, terms, rules("run-now", where)
        memory = nodes_memory(len(world.zones), rows.size, NO_NET)
        scored = score_nodes(*seen, worker, memory)
        preferred = score_nodes(*seen, worker._replace(planned_zone=1), memory)
    np.testing.assert_allclose(scored, said, rtol=SINGLE)
    expected, most = prefer_zone(said, world.nodes.zone == 1), np.abs(said).max()
    np.testing.assert_allclose(preferred, expected, rtol=SINGLE, atol=3.0 * SINGLE * most)


def bound_to(ran: Schedule, job: int) -> dict[int, list[int]]:
    """Return the jobs on each node when one was placed."""
    at_s = ran.start_s[job]
    others = np.flatnonzero((ran.start_s <= at_s) & (at_s < ran.end_s))
    pods: dict[int, list[int]] = {}
    for other in others[others != job]:
        pods.setdefault(int(ran.node[other]), []).append(int(other))
    return pods


@pytest.mark.parametrize("where", WHERE_RULES)
@settings(max_examples=20)
@given(seed=seeds)
def test_the_extender_would_have_placed_every_job_where_the_simulator_did(
    where: str, seed: int
) -> None:
    world = random_world(seed, jobs=30)
    ran = simulate(world, Policy("run-now", where))
    for job in np.flatnonzero(ran.start_s == world.jobs.arrival_s).tolist():
        view = live_view(world, bound_to(ran, job))
        rows = view.names.rows(list(world.node_names))
        fitting = fits(world, bound_to(ran, job), job)
        said = live(world, view, rows[fitting], job, ran.start_s[job], where)
        cost = said.answer.relative_cost[0]
        assert cost[fitting.tolist().index(ran.node[job])] <= cost.min() + SINGLE


def fits(world: World, pods: dict[int, list[int]], job: int) -> Any:
    """Return the places of the nodes that have room for a job."""
    machines, jobs = world.nodes, world.jobs
    found = []
    for row in range(machines.zone.size):
        there = pods.get(row, [])
        found.append(
            jobs.cpu_cores[[*there, job]].sum() <= machines.cpu_capacity[row] + 1e-9
            and jobs.memory_bytes[[*there, job]].sum() <= machines.memory_capacity[row]
            and jobs.gpus[[*there, job]].sum() <= machines.gpu_capacity[row]
        )
    return np.flatnonzero(found)
