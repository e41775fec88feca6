"""An operator beside a simulated run: it sees what runs there, and plans by its own functions.

What it releases when can then be compared with what the simulator's engine released.
"""

import heapq
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.cluster_settings import PowerAssumptions
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import Gpu
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.state import Node
from greensched_operator.controller.recording import Recorder
from greensched_operator.holding.holding import HoldTerms
from greensched_operator.holding.judging import HoldRules, MayWait, ReleaseNow, terms_of
from greensched_operator.holding.pause_terms import progress_of
from greensched_operator.objects.green_policy import GreenPolicy
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.busy_cores import BusyCores
from greensched_operator.planning.cluster_state import Zone, mean_zone
from greensched_operator.planning.outlooks import Outlooks, slot_begin
from greensched_operator.planning.pausing import Pause, choose_pauses
from greensched_operator.planning.plan_annotations import pause_annotations
from greensched_operator.planning.queued_works import QueuedWorks
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts, requeued, room_check
from greensched_operator.planning.when_choice import decision_to_make
from greensched_operator.runtime.settings import OperatorSettings
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_policies.learned.when_head import when_policy
from greensched_policies.library.nets import KernelNet
from greensched_policies.planning.held_start import has_moved
from greensched_policies.planning.outlook import SLOT_S, Outlook, coming_day, outlook_of
from greensched_policies.planning.planning import Running
from greensched_policies.rules.catalogue import WHEN_RULES, WhenPolicy
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.testing.jobs_as_work import (
    as_running,
    hold_rules,
    run_segment_of,
    waiting_job,
)
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

ROUNDING_S = 1e-3  # of times since the epoch
REPLAN_S = float(OperatorSettings.model_fields["replan_every_s"].default)
LONG_S = 5 * 86_400.0  # longer than any world lasts
AHEAD = 300  # slots: longer than any wait and run


@dataclass
class OperatorBeside:
    """An operator beside a simulated run: it sees what runs, and keeps its own plans."""

    world: World
    policy: GreenPolicy
    schedule: Schedule
    held: dict[int, MayWait]
    plans: dict[int, Planned]
    starts_s: dict[int, float]  # by job, since the scenario's begin
    pauses_jobs: bool = False  # also those that can be suspended
    queue: QueuedWorks = field(default_factory=QueuedWorks)
    by_plan: dict[int, Planned] = field(default_factory=dict)  # jobs released as planned, last
    released: dict[int, tuple[float, Work]] = field(default_factory=dict)  # last, and with what
    paused: list[tuple[int, float]] = field(default_factory=list)  # jobs, and when
    resumed: list[tuple[int, float]] = field(default_factory=list)
    zones: tuple[Zone, ...] = field(init=False)
    busy: BusyCores = field(init=False)
    clock: ManualClock = field(default_factory=ManualClock)
    budgets: Budgets = field(default_factory=Budgets)
    recorder: Recorder = field(init=False)  # it spends what the ledger would
    busy_share: float = 0.0
    busiest_share: float = 0.0

    def __post_init__(self) -> None:
        self.zones = zones_of(self.world)
        self.busy = BusyCores(self.world.start_s)
        self.recorder = Recorder(lambda record: None, self.budgets, self.clock, "EUR")

    def arrives(self, job: int, now_s: float) -> None:
        """Plan a job that has just arrived."""
        if (waiting := self.may_wait(job)) is None:
            self.starts_s[job] = now_s
            return
        self.held[job] = waiting
        self.decide(now_s, [waiting], self.situation(now_s, *self.plans.values()))

    def note_busy(self, now_s: float) -> None:
        """Count what runs, as with each plan of all."""
        running, at_s = self.running(now_s), self.world.start_s + now_s
        self.busy_share = self.busy.note(self.zones, running, at_s)
        self.busiest_share = max(self.busiest_share, self.busy_share)

    def has_plans(self, now_s: float) -> bool:
        """Return whether any job is held, or queues for a node."""
        return bool(self.held or self.queued(now_s))

    def queued(self, now_s: float) -> tuple[Planned, ...]:
        """Return the plans of released jobs that wait for a node, perhaps for ever."""
        segments = self.schedule.run_segments
        released_s = np.full(self.world.jobs.arrival_s.size, np.inf)
        for job, (at_s, _) in self.released.items():
            released_s[job] = at_s
        has_node = released_s[segments.job] - ROUNDING_S <= segments.start_s
        has_node &= segments.start_s <= now_s
        owners = {self.released[job][1].uid for job in segments.job[has_node].tolist()}
        return self.queue.without(owners)

    def plans_again(self, now_s: float, *, is_whole: bool) -> None:
        """Plan all held jobs again, as after a new forecast, or those whose room is gone."""
        staying = {f"job-{job}": one for job, one in self.plans.items()}
        self.plans.clear()
        self.queue.replace(requeued(self.situation(now_s)))
        situation = replace(self.situation(now_s), staying=staying, may_move=is_whole)
        self.decide(now_s, list(self.held.values()), situation)

    def decide(self, now_s: float, waiting: Sequence[MayWait], situation: Situation) -> None:
        """Plan jobs, start what starts now, and write the plans of the rest."""
        planned, released = plan_starts(waiting, situation)
        for each in released:
            self.start(int(each.work.name), now_s, each.reason)
        for one in planned:
            job = int(one.waiting.work.name)
            self.record(one, situation)
            written = {
                labels.PLANNED_START: format_timestamp(round(one.start_s)),
                labels.DECISION: json.dumps({"carbonGramsAtArrival": one.at_arrival_g}),
            }
            work = replace(
                one.waiting.work, annotations={**one.waiting.work.annotations, **written}
            )
            self.held[job] = replace(one.waiting, work=work)
            self.plans[job] = one
            if one.is_now:
                self.start(job, now_s, ReleaseReason.NOW_IS_BEST)

    def record(self, one: Planned, situation: Situation) -> None:
        """Record a plan, unless it is the one that is written."""
        work = one.waiting.work
        before_s = work.marks.planned_start_s
        is_new = has_moved(math.nan if before_s is None else before_s, one.start_s)
        if is_new or not self.recorder.knows(work):
            self.recorder.planned(one, situation)

    def start_due(self, now_s: float) -> None:
        """Start what is due by now, each at its time; plan again what then has no room."""
        while self.plans:
            job = min(self.plans, key=lambda each: (self.plans[each].start_s, each))
            one = self.plans[job]
            at_s = one.start_s - self.world.start_s
            if at_s > now_s:
                return
            check = room_check(self.situation(at_s, *self.plans.values()))
            if one.start_s >= one.waiting.terms.latest_start_s:
                self.start(job, at_s, ReleaseReason.LATEST_START)
            elif check(one):
                self.start(job, at_s, ReleaseReason.PLANNED_START)
            else:
                del self.plans[job]
                situation = self.situation(at_s, *self.plans.values())
                self.decide(at_s, [self.held[job]], situation)

    def pause(self, now_s: float) -> None:
        """Pause running jobs, and plan what is left of them."""
        names, rules = [zone.name for zone in self.zones], self.rules
        run_segments = [
            run_segment_of(as_running(self.released[job][1]), now_s - since_s, names[one.zone], one)
            for job, since_s, one in self.running_jobs(now_s)
            if job in self.released and self.can_save(job, now_s)
        ]
        cores = sum(each.work.cpu_cores for each in self.held.values())
        situation, found = self.situation(now_s, *self.plans.values()), list[MayWait]()
        for each in choose_pauses(run_segments, rules, situation, cores):
            work = self.as_paused(each, now_s)
            terms, _ = terms_of(work, rules)
            assert isinstance(terms, HoldTerms)
            found.append(MayWait(work, terms, self.policy))
            self.held[int(work.name)] = found[-1]
            self.queue.drop(work.uid)
            self.paused.append((int(work.name), now_s))
            self.recorder.paused(each.planned, situation)
        if found:
            self.decide(now_s, found, self.situation(now_s, *self.plans.values()))

    def can_save(self, job: int, now_s: float) -> bool:
        """Return whether a running job does not end before its work is saved."""
        segments, save_s = self.schedule.run_segments, float(self.world.jobs.save_s[job])
        own = (segments.job == job) & self.runs_at(now_s)
        stops_s = now_s + save_s / self.world.nodes.speed[segments.node[own]]
        is_last = segments.end_s[own] == self.schedule.end_s[job]  # it ends; others are paused
        least_s = stops_s + np.where(is_last, ROUNDING_S, -ROUNDING_S)
        stops_at_once = segments.end_s[own] == now_s  # it has done nothing that could be saved
        return bool(((segments.end_s[own] >= least_s) | stops_at_once).all())

    def runs_at(self, now_s: float) -> npt.NDArray[np.bool_]:
        """Return which run segments run, those included that are paused now and stop at once."""
        segments = self.schedule.run_segments
        is_last = segments.end_s == self.schedule.end_s[segments.job]
        goes_on = np.where(is_last, now_s < segments.end_s, now_s <= segments.end_s)
        return np.asarray((segments.start_s <= now_s) & goes_on)

    def as_paused(self, pause: Pause, now_s: float) -> Work:
        """Return a job as it is written when it is paused."""
        work, paused_at_s = pause.planned.waiting.work, self.world.start_s + now_s
        progress = replace(pause.progress, paused_at_s=paused_at_s)
        written = pause_annotations(pause.planned, progress)
        kept = {name: text for name, text in work.annotations.items() if name not in written}
        return replace(work, annotations=kept | written, is_stopped=True, is_running=False)

    @property
    def rules(self) -> HoldRules:
        """Return the rules by which jobs are judged."""
        return hold_rules(self.world, self.policy)

    def start(self, job: int, now_s: float, reason: ReleaseReason) -> None:
        """Release a held job; it queues until a node takes it."""
        work = self.held.pop(job).work
        if work.is_paused:
            self.resumed.append((job, now_s))
        self.starts_s.setdefault(job, now_s)
        self.released[job], self.clock.time_s = (now_s, work), self.world.start_s + now_s
        self.recorder.released(ReleaseNow(work, reason, ""))
        if (planned := self.plans.pop(job, None)) is not None:
            self.queue.put(planned)
            self.by_plan[job] = planned

    def may_wait(self, job: int) -> MayWait | None:
        """Return a job as the operator judges it; None if it is not held."""
        work = waiting_job(self.world, job)
        if not self.pauses_jobs:
            work = replace(work, is_ours=False)
        terms, _ = terms_of(work, self.rules)
        if is_replica(self.world.jobs)[job] or not isinstance(terms, HoldTerms):
            return None
        terms = replace(terms, pod_power_w=_profile_w(self.world, job))
        return MayWait(work, terms, self.policy)

    def situation(self, now_s: float, *earlier_plans: Planned) -> Situation:
        """Return what the operator sees now."""
        world = self.world
        outlook = self.outlook(slot_begin(world.start_s + now_s))
        return Situation(
            now_s=world.start_s + now_s,
            zones=self.zones,
            outlooks=Outlooks(outlook, ("",) * len(self.zones), (None,) * len(self.zones)),
            running=self.running(now_s),
            earlier_plans=earlier_plans,
            zones_for=lambda _: frozenset(),
            when_for=lambda one: self.when_for(one, now_s, outlook),
            opens_s=lambda one: (
                -np.inf
                if one.work.is_paused
                else self.budgets.opens_s(
                    one.work.namespace, one.policy.budget, world.start_s + now_s
                )
            ),
            jitter_s=120.0,
            busy_share=self.busy_share,
            queued=self.queued(now_s),
        )

    def when_for(self, one: MayWait, now_s: float, outlook: Outlook) -> WhenPolicy:
        """Return the rule that chooses a job's start, or the model of its policy as one."""
        if self.world.when_net is None:
            return WHEN_RULES[one.policy.when_policy]
        at_s, mean = self.world.start_s + now_s, self.world.nodes.memory_capacity.mean()
        asked, day = decision_to_make(one, at_s, mean), coming_day(outlook, at_s)
        return when_policy(KernelNet(self.world.when_net), asked, day)

    def running(self, now_s: float) -> tuple[Running, ...]:
        """Return the jobs that run, each until its expected end."""
        return tuple(each for _, _, each in self.running_jobs(now_s))

    def running_jobs(self, now_s: float) -> list[tuple[int, float, Running]]:
        """Return each worker of the jobs that run and do not stop: its job, and since when."""
        world, segments = self.world, self.schedule.run_segments
        found = list[tuple[int, float, Running]]()
        for job, node, start_s, runs in zip(
            segments.job, segments.node, segments.start_s, self.runs_at(now_s), strict=True
        ):
            has_begun = start_s < now_s - ROUNDING_S or job in self.starts_s
            if runs and has_begun and job not in self.held:
                jobs = world.jobs
                until_s = start_s + self.left_s(job) / world.nodes.speed[node]
                if is_replica(jobs)[job]:
                    until_s = np.inf  # only the autoscaler knows
                zone = int(world.nodes.zone[node])
                needs = jobs.cpu_cores[job], jobs.gpus[job], jobs.memory_bytes[job]
                running = Running(zone, world.start_s + until_s, *map(float, needs))
                found.append((int(job), float(start_s), running))
        return found

    def left_s(self, job: int) -> float:
        """Return what is left of a job's estimate, by what is written on it."""
        done_s = progress_of(self.released[job][1]).done_s if job in self.released else 0.0
        return max(float(self.world.jobs.estimate_s[job]) - done_s, 0.0)

    def outlook(self, begin_s: float) -> Outlook:
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
    every = [_node_of(world, node) for node in range(world.nodes.zone.size)]
    return tuple(
        mean_zone(name, [node for node in every if node.zone == name], assumed)
        for name in world.zones
    )


def _node_of(world: World, node: int) -> Node:
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


def _profile_w(world: World, job: int) -> float | None:
    """Return the watts that the JobPowerProfile of a job has for a pod, without PUE.

    Only work whose GPUs draw another share than is assumed has one. Its watts are those on the
    first zone's mean node: where nodes differ by more than their PUE, the simulator plans by those
    of each zone instead.
    """
    gpus, gpu_ratio = float(world.jobs.gpus[job]), float(world.jobs.gpu_ratio[job])
    if not gpus or gpu_ratio == world.gpu_ratio:
        return None
    zone = zones_of(world._replace(gpu_ratio=gpu_ratio))[0]
    watts = float(world.jobs.cpu_cores[job]) * zone.watts_per_core + gpus * zone.watts_per_gpu
    return watts / zone.pue


def decided_by_operator(
    world: World, policy: GreenPolicy, schedule: Schedule, *, pauses: bool = False
) -> OperatorBeside:
    """Return the operator after it has released each job, as the run goes on around it."""
    operator = OperatorBeside(world, policy, schedule, {}, {}, {}, pauses)
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
        if pauses:
            operator.pause(now_s)
    operator.start_due(np.inf)
    return operator
