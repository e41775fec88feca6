"""A GreenPolicy's budget in the simulator: it delays as the operator's does, never too long."""

from datetime import datetime
from typing import Any

import numpy as np
import pytest

from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.hold_terms import hold_table
from greensched_simulator.runs.run_inputs import estimates_in
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.operator_beside import decided_by_operator
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

pytestmark = pytest.mark.engine

HOUR_S = 3600.0
MOST_JITTER_S = 120.0
MIDNIGHT_S = datetime.fromisoformat("2023-06-02T00:00:00+00:00").timestamp()
AMPLE = {"period": "Day", "carbonKg": 1e6, "energyKwh": 1e6}
# 10 W of one core for an hour: of a node that takes 200 W more with ten cores that are half used.
JOB_KWH = 0.01
SEEDS = [seed for seed in range(30) if random_world(seed).nodes.zone.size > 1][12:20]


def policy_with(budget: dict[str, Any] | None, delay: str = "5h") -> GreenPolicy:
    """Return a policy that holds all jobs; None: it has no budget."""
    spec = {"mode": "enforce", "defaultDelay": delay} | ({"budget": budget} if budget else {})
    policy = parse({"metadata": {"name": "p"}, "spec": spec})
    assert policy.faults == ()
    return policy


def drawn(seed: int, policy: GreenPolicy, until_midnight_s: float) -> World:
    """Return a world of alike nodes and whole numbers that begins so long before midnight."""
    world = random_world(seed, sleeps=False)
    grids, nodes, jobs = world.grids, world.nodes, world.jobs
    cores, speed = np.full(nodes.zone.size, 16.0), np.array([2.0, 0.5])[nodes.zone]
    return world._replace(
        grids=grids._replace(
            pue_relative=np.zeros(0),
            carbon_g_per_kwh=np.rint(grids.carbon_g_per_kwh),
            price_per_mwh=np.rint(grids.price_per_mwh),
            forecast_carbon_g_per_kwh=np.rint(grids.forecast_carbon_g_per_kwh),
            forecast_price_per_mwh=np.rint(grids.forecast_price_per_mwh),
        ),
        nodes=nodes._replace(cpu_capacity=cores, speed=speed),
        jobs=jobs._replace(
            estimate_s=np.rint(jobs.estimate_s),
            gpu_ratio=np.full(jobs.gpus.size, world.gpu_ratio),
        ),
        green_policy=policy,
        start_s=MIDNIGHT_S - until_midnight_s,
    )


def scheduled(world: World) -> Schedule:
    """Return the schedule of a world under its GreenPolicy."""
    return simulate(world, policy_named("green-policy"))


def three_jobs(budget: dict[str, Any], until_midnight_s: float) -> Schedule:
    """Return the schedule of three jobs of an hour, a minute apart, on a grid that never changes.

    Without a budget each starts on arrival.
    """
    jobs = [{"arrival_s": 60.0 * place} for place in range(3)]
    world = make_world(jobs)._replace(
        green_policy=policy_with(budget), start_s=MIDNIGHT_S - until_midnight_s
    )
    return scheduled(world)


@pytest.mark.parametrize(
    ("until_midnight_s", "starts_s"),
    [
        pytest.param(2 * HOUR_S, [0.0, 2 * HOUR_S, 2 * HOUR_S], id="until-the-next-period"),
        pytest.param(5 * HOUR_S, [0.0, 5 * HOUR_S, 5 * HOUR_S], id="before-their-latest-starts"),
        pytest.param(6 * HOUR_S, [0.0, 5 * HOUR_S + 60.0, 5 * HOUR_S + 120.0], id="no-longer"),
        pytest.param(60.0, [0.0, 60.0, 120.0 + 5 * HOUR_S], id="one-arrives-as-a-period-begins"),
        pytest.param(90.0, [0.0, 90.0, 120.0 + 5 * HOUR_S], id="and-it-counts-in-that"),
    ],
)
def test_work_waits_while_the_budget_is_spent(
    until_midnight_s: float, starts_s: list[float]
) -> None:
    schedule = three_jobs({"period": "Day", "energyKwh": JOB_KWH}, until_midnight_s)
    late_s = schedule.start_s - np.array(starts_s)
    at_midnight = schedule.start_s >= until_midnight_s
    assert (late_s[~at_midnight] == 0.0).all()
    assert ((late_s >= 0.0) & (late_s <= MOST_JITTER_S)).all()


@pytest.mark.parametrize(
    ("jobs", "started"),
    [(0.0, 0), (0.99, 1), (1.0, 1), (1.01, 2), (2.0, 2), (2.01, 3)],
)
def test_the_job_that_spends_the_last_of_it_still_starts(jobs: float, started: int) -> None:
    for budget in ({"energyKwh": jobs * JOB_KWH}, {"carbonKg": jobs * JOB_KWH * 0.1}):
        schedule = three_jobs({"period": "Day", **budget}, 3 * HOUR_S)
        assert int((schedule.start_s < HOUR_S).sum()) == started


@pytest.mark.parametrize(
    ("period", "begin", "ends"),
    [
        pytest.param("Day", "2023-06-04T22:00:00Z", ["2023-06-05", "2023-06-06"], id="day"),
        pytest.param("Day", "2023-06-05T00:00:00Z", ["2023-06-06", "2023-06-07"], id="midnight"),
        pytest.param("Week", "2023-06-04T22:00:00Z", ["2023-06-05", "2023-06-12"], id="sunday"),
        pytest.param("Month", "2023-06-30T22:00:00Z", ["2023-07-01", "2023-08-01"], id="month"),
    ],
)
def test_periods_end_by_utc_and_cover_all_waits(period: str, begin: str, ends: list[str]) -> None:
    policy = policy_with({"period": period, "carbonKg": 1.0}, "24h")
    begin_s = datetime.fromisoformat(begin).timestamp()
    world = make_world([{"arrival_s": 0.0}])._replace(green_policy=policy, start_s=begin_s)
    table = hold_table(world, policy, estimates_in(world, np.zeros((0, 0)))).budget
    expected = [datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() for day in ends]
    assert (table.ends_s + begin_s).tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "budget",
    [
        pytest.param({"period": "Day", "carbonKg": 0.1}, id="little-carbon"),
        pytest.param({"period": "Day", "energyKwh": 1.0, "carbonKg": 0.4}, id="both"),
        pytest.param({"period": "Day", "energyKwh": 0}, id="nothing"),
    ],
)
def test_both_release_each_job_at_the_same_time(seed: int, budget: dict[str, Any]) -> None:
    for until_midnight_s in (2.5 * HOUR_S, 4 * HOUR_S):
        policy = policy_with(budget)
        world = drawn(seed, policy, until_midnight_s)
        schedule = scheduled(world)
        operator = decided_by_operator(world, policy, schedule)
        expected = [operator.starts_s[job] for job in range(world.jobs.arrival_s.size)]
        assert schedule.planned_s == pytest.approx(np.array(expected), abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_ample_budget_changes_nothing(seed: int) -> None:
    usual, ample = (
        scheduled(drawn(seed, policy_with(budget), 3 * HOUR_S)) for budget in (None, AMPLE)
    )
    assert ample.planned_s.tolist() == usual.planned_s.tolist()
    assert ample.node.tolist() == usual.node.tolist()


def test_a_spent_budget_delays_and_never_past_the_latest_start() -> None:
    at_midnight, delayed = 0, 0
    for seed in SEEDS:
        policy = policy_with({"period": "Day", "carbonKg": 0.02})
        world = drawn(seed, policy, 3 * HOUR_S)
        planned_s = scheduled(world).planned_s
        usual_s = scheduled(world._replace(green_policy=policy_with(None))).planned_s
        latest_s = world.jobs.arrival_s + 5 * HOUR_S
        assert (planned_s <= latest_s + 1e-6).all()
        after_s = planned_s - 3 * HOUR_S
        at_midnight += int(((after_s >= 0.0) & (after_s <= MOST_JITTER_S)).sum())
        delayed += int((planned_s > usual_s).sum())
    assert min(at_midnight, delayed) > 5
