"""What the simulator holds by a GreenPolicy is what the operator holds: the same starts."""

import heapq
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from greensched_core import labels
from greensched_core.cluster_settings import PowerAssumptions
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import Gpu
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.state import Node
from greensched_operator.holding.hold_requests import HoldRequest
from greensched_operator.holding.holding import HoldTerms, hold_terms
from greensched_operator.holding.judging import MayWait
from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.planning.busy_cores import BusyCores
from greensched_operator.planning.cluster_state import Zone, mean_zone
from greensched_operator.planning.outlooks import SLOT_S, Outlooks, slot_begin
from greensched_operator.planning.start_planning import (
    Planned,
    Situation,
    plan_starts,
    requeued,
    room_check,
)
from greensched_operator.runtime.settings import OperatorSettings
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import Running
from greensched_policies.rules.catalogue import WHEN_RULES
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World
from tests.operator.annotated_work import work_of

pytestmark = pytest.mark.engine

ROUNDING_S = 1e-3  # of times since the epoch
REPLAN_S = float(OperatorSettings.model_fields["replan_every_s"].default)
LONG_S = 5 * 86_400.0  # longer than any world lasts
AHEAD = 300  # slots: longer than any wait and run
SIGNALS = (
    "carbon_g_per_kwh", "price_per_mwh", "forecast_carbon_g_per_kwh", "forecast_price_per_mwh",
)  # fmt: skip
SEEDS = [seed for seed in range(30) if random_world(seed).nodes.zone.size > 1][:12]
POLICIES: dict[str, dict[str, Any]] = {
    "delayed": {"defaultDelay": "5h"},
    "only-deadlines": {"startDelay": "10m", "onTimeTargetPercent": 90},
    "queues": {"defaultDelay": "5h", "waitForRoom": False},
    "few-held": {"defaultDelay": "5h", "maxHeldSharePercent": 10},
    "no-limit": {"defaultDelay": "5h", "carbonLimit": "none", "weights": {"carbon": 0}},
    "quiet": {"defaultDelay": "5h", "quietHours": [{"from": "01:10", "to": "03:40"}]},
    "thresholds": {"defaultDelay": "4h", "whenPolicy": "clean-threshold", "leastSavingPercent": 0},
}


@dataclass
class Operator:
    """An operator beside a simulated run: it sees what runs, and keeps its own plans."""

    world: World
    policy: GreenPolicy
    schedule: Schedule
    held: dict[int, MayWait]
    plans: dict[int, Planned]
    starts_s: dict[int, float]  # by job, since the scenario's begin
    queued: dict[int, Planned] = field(default_factory=dict)  # released as planned
    busy: BusyCores = field(init=False)
    busy_share: float = 0.0
    busiest_share: float = 0.0

    def __post_init__(self) -> None:
        self.busy = BusyCores(self.world.start_s)

    def arrives(self, job: int, now_s: float) -> None:
        """Plan a job that has just arrived."""
        if (waiting := self.may_wait(job)) is None:
            self.starts_s[job] = now_s
            return
        self.held[job] = waiting
        planned, released = plan_starts([waiting], self.situation(now_s, *self.plans.values()))
        self.take(now_s, planned, [each.work.name for each in released])

    def note_busy(self, now_s: float) -> None:
        """Count what runs, as with each plan of all."""
        running, at_s = self.running(now_s), self.world.start_s + now_s
        self.busy_share = self.busy.note(zones_of(self.world), running, at_s)
        self.busiest_share = max(self.busiest_share, self.busy_share)

    def has_plans(self, now_s: float) -> bool:
        """Return whether any job is held, or queues for a node."""
        return bool(self.held) or any(self.schedule.start_s[job] > now_s for job in self.queued)

    def plans_again(self, now_s: float, *, is_whole: bool) -> None:
        """Plan all held jobs again, as after a new forecast, or those whose room is gone."""
        staying = {} if is_whole else {f"job-{job}": one for job, one in self.plans.items()}
        self.plans.clear()
        for one in requeued(self.situation(now_s)):
            self.queued[int(one.waiting.work.name)] = one
        situation = replace(self.situation(now_s), staying=staying)
        planned, released = plan_starts(list(self.held.values()), situation)
        self.take(now_s, planned, [each.work.name for each in released])

    def take(self, now_s: float, planned: list[Planned], released: list[str]) -> None:
        """Start what starts now, and write the plans of the rest."""
        for name in released:
            self.start(int(name), now_s)
        for one in planned:
            job = int(one.waiting.work.name)
            if one.is_now:
                self.plans[job] = one
                self.start(job, now_s)
                continue
            written = {
                labels.PLANNED_START: format_timestamp(round(one.start_s)),
                labels.DECISION: json.dumps({"carbonGramsAtArrival": one.at_arrival_g}),
            }
            work = replace(
                one.waiting.work, annotations={**one.waiting.work.annotations, **written}
            )
            self.held[job] = replace(one.waiting, work=work)
            self.plans[job] = one

    def start_due(self, now_s: float) -> None:
        """Start what is due by now, each at its time; plan again what then has no room."""
        while self.plans:
            job = min(self.plans, key=lambda each: (self.plans[each].start_s, each))
            one = self.plans[job]
            at_s = one.start_s - self.world.start_s
            if at_s > now_s:
                return
            check = room_check(self.situation(at_s, *self.plans.values()))
            if one.start_s >= one.waiting.terms.latest_start_s or check(one):
                self.start(job, at_s)
                continue
            del self.plans[job]
            planned, released = plan_starts(
                [self.held[job]], self.situation(at_s, *self.plans.values())
            )
            self.take(at_s, planned, [each.work.name for each in released])

    def start(self, job: int, now_s: float) -> None:
        """Release a job; it queues until a node takes it."""
        self.starts_s[job] = now_s
        self.held.pop(job, None)
        if (planned := self.plans.pop(job, None)) is not None:
            self.queued[job] = planned

    def may_wait(self, job: int) -> MayWait | None:
        """Return a job as the operator judges it; None if it is not held."""
        jobs, begin_s = self.world.jobs, self.world.start_s
        deadline_s = float(jobs.deadline_s[job])
        request = HoldRequest(
            begin_s + float(jobs.arrival_s[job]),
            deadline_s=begin_s + deadline_s if deadline_s < np.inf else None,
            runtime_s=float(jobs.estimate_s[job]),
        )
        slowest_speed = min(1.0, float(self.world.nodes.speed.min()))  # all nodes have GPUs
        terms = hold_terms(request, self.policy, slowest_speed=slowest_speed)
        if is_replica(jobs)[job] or not isinstance(terms, HoldTerms):
            return None
        cores, gpus = float(jobs.cpu_cores[job]), float(jobs.gpus[job])
        work = replace(
            work_of(str(job), {}), uid=f"job-{job}", cpu_cores=cores, gpus=gpus,
            memory_bytes=float(jobs.memory_bytes[job]),
        )  # fmt: skip
        return MayWait(work, terms, self.policy)

    def situation(self, now_s: float, *earlier_plans: Planned) -> Situation:
        """Return what the operator sees now."""
        world = self.world
        outlook = self.outlook(slot_begin(world.start_s + now_s))
        zones = zones_of(world)
        return Situation(
            now_s=world.start_s + now_s,
            zones=zones,
            outlooks=Outlooks(outlook, ("",) * len(zones), (None,) * len(zones)),
            running=self.running(now_s),
            earlier_plans=earlier_plans,
            zones_for=lambda _: frozenset(),
            when_for=lambda one: WHEN_RULES[one.policy.when_policy],
            opens_s=lambda _: -np.inf,
            jitter_s=120.0,
            busy_share=self.busy_share,
            queued=tuple(
                one for job, one in self.queued.items() if self.schedule.start_s[job] > now_s
            ),
        )

    def running(self, now_s: float) -> tuple[Running, ...]:
        """Return the jobs that run, each until its expected end."""
        world, found, segments = self.world, list[Running](), self.schedule.run_segments
        for job, node, start_s, end_s in zip(
            segments.job, segments.node, segments.start_s, segments.end_s, strict=True
        ):
            has_begun = start_s < now_s - ROUNDING_S or job in self.starts_s
            if start_s <= now_s < end_s and has_begun:
                jobs = world.jobs
                until_s = start_s + jobs.estimate_s[job] / world.nodes.speed[node]
                if is_replica(jobs)[job]:
                    until_s = max(jobs.leaves_at_s[job], start_s)
                zone = int(world.nodes.zone[node])
                needs = jobs.cpu_cores[job], jobs.gpus[job], jobs.memory_bytes[job]
                found.append(Running(zone, world.start_s + until_s, *map(float, needs)))
        return tuple(found)

    def outlook(self, begin_s: float) -> Any:
        """Return the forecast, which is the truth, in slots."""
        grids, zones = self.world.grids, range(len(self.world.zones))
        times_s = begin_s - self.world.start_s + SLOT_S * np.arange(AHEAD)
        values = np.empty((2, len(zones), AHEAD))
        for zone in zones:
            own = slice(*grids.starts[zone : zone + 2])
            step = np.searchsorted(grids.times_s[own], times_s, side="right") - 1
            values[0, zone] = grids.carbon_g_per_kwh[own][step]
            values[1, zone] = grids.price_per_mwh[own][step]
        return outlook_of(begin_s, SLOT_S, values[0], values[1])


def zones_of(world: World) -> tuple[Zone, ...]:
    """Return the zones as the operator reads them off its nodes."""
    assumed = PowerAssumptions(world.utilisation_ratio, world.gpu_ratio, 1.0)
    every = [node_of(world, node) for node in range(world.nodes.zone.size)]
    return tuple(
        mean_zone(name, [node for node in every if node.zone == name], assumed)
        for name in world.zones
    )


def node_of(world: World, node: int) -> Node:
    """Return a node as the operator reads it off the API server."""
    nodes, curve = world.nodes, CURVE_POINTS * int(world.nodes.curve_class[node])
    watts = PowerCurve(tuple(world.curve_watts[curve : curve + CURVE_POINTS].tolist()))
    idle_w, peak_w = float(nodes.gpu_idle_w[node]), float(nodes.gpu_peak_w[node])
    gpu = Gpu("a", int(nodes.gpu_capacity[node]), idle_w, peak_w)
    return Node(
        world.node_names[node], world.zones[nodes.zone[node]], float(nodes.cpu_capacity[node]),
        float(nodes.memory_capacity[node]), gpu, watts, "annotation", "m",
        float(nodes.speed[node]), float(nodes.pue[node]),
    )  # fmt: skip


def decided_by_operator(world: World, policy: GreenPolicy, schedule: Schedule) -> Operator:
    """Return the operator after it has released each job, as the run goes on around it."""
    operator = Operator(world, policy, schedule, {}, {}, {})
    arrivals = [(float(at_s), 1, job) for job, at_s in enumerate(world.jobs.arrival_s)]
    rolls = {float(at_s) for at_s in world.grids.times_s if at_s > 0.0}
    every = {float(at_s) for at_s in np.arange(REPLAN_S, LONG_S, REPLAN_S)}
    replans = [(at_s, 0, int(at_s in rolls)) for at_s in sorted(rolls | every)]
    for now_s, is_arrival, job in heapq.merge(arrivals, replans):
        operator.start_due(now_s)
        if is_arrival:
            operator.arrives(job, now_s)
            continue
        operator.note_busy(now_s)
        if operator.has_plans(now_s):
            operator.plans_again(now_s, is_whole=job == 1)
    operator.start_due(np.inf)
    return operator


def drawn(seed: int, cores_of_a_node: float = 16.0) -> World:
    """Return a world whose nodes never sleep; each takes all jobs, and is as fast as its zone.

    Grids and runtimes are whole numbers, so that nothing but an error could tell two starts apart.
    """
    world = random_world(seed, sleeps=False)
    grids, nodes, jobs = world.grids, world.nodes, world.jobs
    whole = {name: np.rint(getattr(grids, name)) for name in SIGNALS}
    cores, speed = np.full(nodes.zone.size, cores_of_a_node), np.array([2.0, 0.5])[nodes.zone]
    return world._replace(
        grids=grids._replace(pue_relative=np.zeros(0), **whole),
        nodes=nodes._replace(cpu_capacity=cores, speed=speed),
        jobs=jobs._replace(estimate_s=np.rint(jobs.estimate_s)),
    )


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_simulator_releases_each_job_when_the_operator_does(seed: int, name: str) -> None:
    manifest = {"metadata": {"name": "p"}, "spec": {"mode": "enforce", **POLICIES[name]}}
    policy = parse(manifest)
    assert policy.faults == ()
    world = drawn(seed)._replace(green_policy=policy)
    assert_same_releases(world, policy)


def assert_same_releases(world: World, policy: GreenPolicy) -> Operator:
    """Assert that both release each job at the same time, and return the operator."""
    schedule = simulate(world, policy_named("green-policy"))
    operator = decided_by_operator(world, policy, schedule)
    expected = [operator.starts_s[job] for job in range(world.jobs.arrival_s.size)]
    assert schedule.planned_s == pytest.approx(np.array(expected), abs=1e-3)
    return operator


def test_both_keep_as_much_room_in_clusters_that_were_busy() -> None:
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", "defaultDelay": "8h"}})
    busiest = [assert_same_releases(crowded(seed, policy), policy).busiest_share for seed in SEEDS]
    assert sum(share > 0.75 for share in busiest) > 3


def crowded(seed: int, policy: GreenPolicy) -> World:
    """Return a world whose jobs arrive in a third of the time on nodes of half the size."""
    world = drawn(seed, 8.0)
    jobs = world.jobs._replace(arrival_s=world.jobs.arrival_s / 3.0)
    return world._replace(jobs=jobs, green_policy=policy)


def test_jobs_are_held_by_every_policy_and_a_small_share_holds_fewer() -> None:
    held = dict.fromkeys(POLICIES, 0)
    for name, spec in POLICIES.items():
        policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", **spec}})
        for world in map(drawn, SEEDS):
            schedule = simulate(world._replace(green_policy=policy), policy_named("green-policy"))
            held[name] += int((schedule.planned_s > world.jobs.arrival_s).sum())
    assert min(held.values()) > 10
    assert held["few-held"] < held["delayed"]
