"""A world that is ready to run under a policy, again and again, each time by other nets."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_operator.objects.green_policy import GreenPolicy
from greensched_policies.library.grid_table import GridTable
from greensched_simulator.engine.engine import run
from greensched_simulator.engine.holding.held_run import run_held
from greensched_simulator.engine.holding.hold import HoldTable
from greensched_simulator.engine.run import Given
from greensched_simulator.engine.state.choices import RuleSet, rules_of
from greensched_simulator.engine.state.cluster import idle_cluster, node_table
from greensched_simulator.policy import QUEUES, USUAL_CAP, Policy
from greensched_simulator.runs.hold_terms import (
    REPLAN_S,
    green_policy_of,
    hold_table,
    plan_with,
)
from greensched_simulator.runs.learned_heads import LearnedHeads, heads_of, when_rule_of
from greensched_simulator.runs.looking_ahead import (
    empty_plan,
    forecast_of,
    green_policy_pauses,
    looks_ahead,
)
from greensched_simulator.runs.run_inputs import (
    estimates_in,
    planned_jobs,
    run_config_of,
    steps_watched,
)
from greensched_simulator.runs.schedule import Schedule, schedule_of
from greensched_simulator.runs.sleep_tables import sleep_table
from greensched_simulator.world.world import World


class TimedSchedule(NamedTuple):
    """A schedule, and the wall seconds that the compiled engine took for it; not reproducible."""

    schedule: Schedule
    engine_s: float


class _Shared:
    """What the runs of a world share: forecasts, and how long a GreenPolicy may hold its jobs."""

    def __init__(self) -> None:
        self.forecasts = dict[bool, GridTable]()
        self.tables = dict[tuple[GreenPolicy, bool, str], HoldTable]()


class ReadyRun:
    """A run of a world under a policy that has not begun; the same nets give the same bytes."""

    def __init__(
        self,
        world: World,
        policy: Policy,
        shared: _Shared | None = None,
        replan_every_s: float = REPLAN_S,
    ) -> None:
        """Raise BadInput for policies that cannot run in the world.

        `replan_every_s` is how often held jobs are planned again, the operator's by default.
        """
        shared = _Shared() if shared is None else shared
        self._replan_every_s = replan_every_s
        self._world, self._policy, self._sleep = world, policy, sleep_table(world, policy)
        self._estimates = estimates_in(world, self._sleep)
        self._jobs = planned_jobs(world, self._estimates)
        self._terms, self._steps_s = run_config_of(world, policy), steps_watched(world, policy)
        ahead = looks_ahead(world, policy)
        if ahead not in shared.forecasts:
            shared.forecasts[ahead] = forecast_of(world, in_slots=ahead)
        self._forecast = shared.forecasts[ahead]
        self._green = green_policy_of(world, policy)
        self._held = None if self._green is None else self._held_in(shared, self._green)

    def run(self, heads: LearnedHeads | None = None) -> TimedSchedule:
        """Return the schedule; `heads` decide in place of those in the policy's bundle."""
        world, policy = self._world, self._policy
        heads = heads_of(world, policy) if heads is None else heads
        given, rules, held = self._given(), self._rules(heads), self._held
        if held is not None:
            held = held._replace(learned=held.learned._replace(net=heads.when))
            given = given._replace(plan=plan_with(given.plan, world, held))
        inputs = (given, rules) if held is None else (given, rules, held)
        with warnings.catch_warnings():  # calling rules uses an experimental feature of numba
            warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
            engine = _engine_for(run if held is None else run_held, inputs)
        began_s = time.perf_counter()
        recorded, changes, suspended, broken, off = engine(*inputs)
        engine_s = time.perf_counter() - began_s
        sleep = given.cluster.sleep
        schedule = schedule_of(world, recorded, changes, suspended, broken, sleep, off)
        return TimedSchedule(schedule, engine_s)

    def _held_in(self, shared: _Shared, green: GreenPolicy) -> HoldTable:
        """Return how long jobs may be held; who chooses starts makes no difference to it."""
        pauses = green_policy_pauses(self._world, self._policy)
        key = replace(green, when_policy=""), pauses, self._policy.sleep
        if key not in shared.tables:
            shared.tables[key] = hold_table(
                self._world, green, self._estimates,
                pauses=pauses, replan_every_s=self._replan_every_s,
            )  # fmt: skip
        return shared.tables[key]

    def _rules(self, heads: LearnedHeads) -> RuleSet:
        policy, order = self._policy, QUEUES[self._policy.queue].order
        when = policy.when if self._green is None else when_rule_of(self._green)
        rules = rules_of(when, policy.placing.rule, order, policy.cap_rule, policy.pause)
        return rules._replace(where_net=heads.where, cap_net=heads.how_fast)

    def _given(self) -> Given:
        """Return the inputs of a run, with idle nodes and an empty plan."""
        world, policy = self._world, self._policy
        cluster = idle_cluster(
            world.nodes, node_table(world.nodes), world.jobs.gpus, self._sleep.copy(),
            world.curve_watts,
            capped=policy.cap != USUAL_CAP, only_node_0=policy.placing.only_node_0,
        )  # fmt: skip
        return Given(
            jobs=self._jobs,
            precedence=world.precedence,
            estimates=self._estimates,
            cluster=cluster,
            grid=self._forecast,
            plan=empty_plan(world, is_looked_at=looks_ahead(world, policy)),
            terms=self._terms,
            steps_s=self._steps_s,
            outages=world.outages,
            autoscaled=world.autoscaled,
        )


def ready_runs(world: World, policies: Sequence[Policy]) -> list[ReadyRun]:
    """Return a run for each policy; they share what does not depend on it."""
    shared = _Shared()
    return [ReadyRun(world, policy, shared) for policy in policies]


def _engine_for(engine: Any, inputs: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the engine's machine code, so that compiling or loading it is not timed."""
    whole = engine.whole
    compiled: Callable[..., Any] = whole.compile((*map(whole.typeof_pyval, inputs),))
    return compiled
