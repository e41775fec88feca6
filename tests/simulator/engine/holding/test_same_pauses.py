"""What the simulator pauses by a GreenPolicy is what the operator pauses, for as long."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.operator_beside import (
    ROUNDING_S,
    OperatorBeside,
    decided_by_operator,
)
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World
from tests.simulator.engine.holding import test_same_holds

pytestmark = pytest.mark.engine

HOUR_S = 3600.0
SIGNALS = (
    "carbon_g_per_kwh", "price_per_mwh", "forecast_carbon_g_per_kwh", "forecast_price_per_mwh",
)  # fmt: skip
SEEDS = [seed for seed in range(40) if random_world(seed).nodes.zone.size > 1][:6]
CROWDED = (17, 33, 41)  # released jobs wait for a node, some of them for the second time
ENDS_AS_IT_STOPS = 132  # a job would have saved its work exactly when it ends
AT_A_MERIT_STEP = 83  # a job would begin in the next step of the merit order but for rounding
POLICIES: dict[str, dict[str, Any]] = {
    "usual": {},
    "at-any-time": {"pause": {"minimumRun": "1m", "minimumPause": "0s"}, "leastSavingPercent": 0},
    "heedless-of-room": {
        "pause": {"minimumRun": "1m", "minimumPause": "0s"},
        "leastSavingPercent": 0,
        "waitForRoom": False,
    },
    "few-held": {"maxHeldSharePercent": 15, "defaultDelay": "5h"},
    "short-holds": {"longestHold": "1h", "carbonLimit": "none"},
    "quiet": {"quietHours": [{"from": "02:10", "to": "03:40"}], "pause": {"minimumRun": "20m"}},
    "budget": {"budget": {"period": "Day", "carbonKg": 0.3}},
    "by-thresholds": {"whenPolicy": "clean-threshold", "leastSavingPercent": 0},
}
CASES = test_same_holds.cases_of(SEEDS, POLICIES)
CASES += [(seed, "at-any-time") for seed in (*CROWDED, ENDS_AS_IT_STOPS, AT_A_MERIT_STEP)]
CASES += [(seed, "heedless-of-room") for seed in CROWDED]


def drawn(seed: int, policy: GreenPolicy) -> World:
    """Return a world of alike nodes and whole numbers, whose jobs can be suspended.

    Their estimates are right or too low, their runs and their slack longer than in other tests.
    """
    world = random_world(seed, "pauses", sleeps=False)
    grids, nodes, jobs = world.grids, world.nodes, world.jobs
    whole = {name: np.rint(getattr(grids, name)) for name in SIGNALS}
    cores, speed = np.full(nodes.zone.size, 16.0), np.array([2.0, 0.5])[nodes.zone]
    estimate_s = np.rint(2.0 * jobs.estimate_s)
    deadline_s = np.rint(jobs.arrival_s + 4.0 * estimate_s + 3 * HOUR_S)
    return world._replace(
        grids=grids._replace(pue_relative=np.zeros(0), **whole),
        nodes=nodes._replace(cpu_capacity=cores, speed=speed),
        jobs=jobs._replace(
            estimate_s=estimate_s,
            gpu_ratio=np.full(estimate_s.size, world.gpu_ratio),
            runtime_s=2.0 * jobs.runtime_s,
            deadline_s=np.where(is_replica(jobs), np.inf, deadline_s),
            save_every_s=np.where(is_replica(jobs), np.inf, 0.0),
            startup_s=np.full(estimate_s.size, 30.0),
            save_s=np.full(estimate_s.size, 20.0),
        ),
        green_policy=policy,
    )


def policy_of(spec: dict[str, Any]) -> GreenPolicy:
    """Return a policy that enforces."""
    policy = parse({"metadata": {"name": "p"}, "spec": {"mode": "enforce", **spec}})
    assert policy.faults == ()
    return policy


def both(seed: int, spec: dict[str, Any]) -> tuple[World, Schedule, OperatorBeside]:
    """Return a world, its schedule, and the operator that saw it."""
    policy = policy_of(spec)
    world = drawn(seed, policy)
    schedule = simulate(world, policy_named("green-policy+pause-if-worth"))
    return world, schedule, decided_by_operator(world, policy, schedule, pauses=True)


@pytest.mark.parametrize(("seed", "name"), CASES)
def test_both_pause_and_resume_each_job_at_the_same_times(seed: int, name: str) -> None:
    world, schedule, operator = both(seed, POLICIES[name])
    expected = [operator.starts_s[job] for job in range(world.jobs.arrival_s.size)]
    assert schedule.planned_s == pytest.approx(np.array(expected), abs=1e-3)
    segments = schedule.run_segments
    runs = Counter(segments.job[segments.worker == 0].tolist())
    pauses = Counter(job for job, _ in operator.paused)
    assert {job: count - 1 for job, count in runs.items() if count > 1} == dict(pauses)
    for job in pauses:
        own = segments.job == job
        paused_s = [at_s for each, at_s in operator.paused if each == job]
        assert (segments.end_s[own][:-1] >= np.array(paused_s)).all()
        assert segments.end_s[own][:-1] == pytest.approx(np.array(paused_s), abs=60.0)
        resumed_s = [at_s for each, at_s in operator.resumed if each == job]
        assert (segments.placed_s[own][1:] >= np.array(resumed_s) - 1e-3).all()


@pytest.mark.parametrize("seed", CROWDED)
def test_resumed_jobs_wait_for_a_node_in_crowded_worlds(seed: int) -> None:
    """Those released meanwhile are before them; else the operator would keep other room."""
    _, schedule, operator = both(seed, POLICIES["heedless-of-room"])
    segments, waits_s = schedule.run_segments, list[float]()
    for job, resumed_s in operator.resumed:
        placed_s = segments.placed_s[segments.job == job]
        waits_s += [placed_s[placed_s >= resumed_s - ROUNDING_S].min(initial=np.inf) - resumed_s]
    assert any(60.0 < wait_s < np.inf for wait_s in waits_s)
