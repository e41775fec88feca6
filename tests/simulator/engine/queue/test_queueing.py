"""Who starts first when all is full, and who may pass whom."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_simulator.engine.queue.queueing import sort
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing import random_worlds
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

HOUR = 3600.0
HALF = 1800.0
Job = dict[str, float]


def job(arrival_s: float, cores: float, hours: float = 1.0, **more: float) -> Job:
    return {"arrival_s": arrival_s, "cpu_cores": cores, "runtime_s": hours * HOUR, **more}


def starts_h(
    queue: str, jobs: list[Job], nodes: list[dict[str, float]] | None = None
) -> list[float]:
    """Return when each job started, in hours."""
    world = make_world(jobs, nodes or [{}])
    started = simulate(world, policy_named(f"run-now+spread+{queue}")).start_s / HOUR
    return [round(hours, 3) for hours in started.tolist()]


# Eight of ten cores are taken for two hours; a large job comes, then a short and a long small one.
FULL = [job(0, 8, 2.0), job(36, 6), job(72, 2, 1.5), job(108, 2, 3.0)]


@pytest.mark.parametrize(
    ("queue", "starts"),
    [
        pytest.param("oldest-fit", [0.0, 2.0, 0.02, 1.52], id="whoever-fits"),
        pytest.param("fcfs", [0.0, 2.0, 2.0, 2.0], id="nobody-passes-the-large-one"),
        pytest.param("easy", [0.0, 2.0, 0.02, 1.52], id="both-leave-the-large-one-its-room"),
        pytest.param("sjf", [0.0, 2.0, 0.02, 1.52], id="whoever-fits-the-shortest-first"),
    ],
)
def test_a_large_job_and_small_ones_behind_it(queue: str, starts: list[float]) -> None:
    assert starts_h(queue, FULL) == starts


def test_easy_lets_pass_what_ends_before_the_first_one_can_start_and_nobody_else() -> None:
    jobs = [job(0, 8, 2.0), job(36, 10), job(72, 2, 1.5), job(108, 2, 1.0)]
    assert starts_h("easy", jobs) == [0.0, 2.0, 0.02, 3.0]
    assert starts_h("oldest-fit", jobs) == [0.0, 2.52, 0.02, 1.52], "the large one is delayed"


def test_easy_reserves_one_node_and_lets_others_run_on_the_rest() -> None:
    jobs = [job(0, 10, 1.0), job(0, 8, 2.0), job(36, 10), job(72, 2, 5.0)]
    assert starts_h("easy", jobs, [{}, {}]) == [0.0, 0.0, 1.0, 0.02]


def test_easy_lets_pass_where_a_job_ends_in_time_whatever_node_the_rule_likes_best() -> None:
    """Two workers wait for the slow node; on it the last job would still run when they start."""
    jobs = [job(0, 7), job(0, 8, 4.0), job(36, 5, workers=2.0), job(72, 2, 1.2)]
    assert starts_h("easy", jobs, [{}, {"speed": 2.0}]) == [0.0, 0.0, 1.0, 0.02]


def test_easy_plans_by_estimates_and_starts_by_what_happens() -> None:
    early = [job(0, 10, 1.0, estimate_s=4 * HOUR), job(36, 10), job(72, 1)]
    assert starts_h("easy", early) == [0.0, 1.0, 2.0]


def test_shortest_first_takes_the_short_job_that_came_later() -> None:
    jobs = [job(0, 10), job(36, 10, 3.0), job(72, 10, 0.5)]
    assert starts_h("sjf", jobs) == [0.0, 1.5, 1.0]
    assert starts_h("fcfs", jobs) == [0.0, 1.0, 4.0]


def test_jobs_of_one_priority_go_in_order_of_arrival() -> None:
    jobs = [job(0, 10), *(job(36.0 + place, 10, 1.0) for place in range(4))]
    assert starts_h("sjf", jobs) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_what_comes_at_one_instant_is_put_in_order_before_anybody_starts() -> None:
    assert starts_h("sjf", [job(0, 10, 3.0), job(0, 10, 0.5)]) == [0.5, 0.0]
    two_ends = [job(0, 5), job(0, 5), job(36, 8, 0.5), job(72, 5, 5.0)]
    assert starts_h("sjf", two_ends) == [0.0, 0.0, 1.0, 1.5]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 60))
def test_a_queue_is_sorted_however_much_it_was_so(priorities: list[int], sorted_until: int) -> None:
    priority = np.array([*sorted(priorities[:sorted_until]), *priorities[sorted_until:]], float)
    waiting = np.arange(priority.size)
    expected = np.argsort(priority, kind="stable")
    sort(waiting, priority)
    assert waiting.tolist() == expected.tolist()


def random_world(seed: int) -> World:
    dice = np.random.default_rng(seed)
    arrivals_s = np.sort(dice.choice(7200, 25, replace=False)) + 0.5
    jobs = [
        job(float(at), float(dice.integers(1, 11)), float(dice.integers(1, 12)) / 4)
        for at in arrivals_s
    ]
    return make_world(jobs, [{}, {"speed": 2.0}])


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_first_come_first_served_starts_in_order_of_arrival(seed: int) -> None:
    started = simulate(random_world(seed), policy_named("fcfs")).start_s
    assert (np.diff(started) >= 0).all()


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["oldest-fit", "fcfs", "easy", "concurrent", "sjf", "f2"]),
)
def test_all_jobs_run_and_no_node_is_overfull(seed: int, queue: str) -> None:
    world = random_world(seed)
    ran = simulate(world, policy_named(queue))
    assert (ran.start_s >= world.jobs.arrival_s).all()
    for at in ran.start_s:
        running = (ran.start_s <= at) & (ran.end_s > at)
        used = np.bincount(ran.node[running], world.jobs.cpu_cores[running], 2)
        assert (used <= world.nodes.cpu_capacity + 1e-9).all()


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_easy_delays_nobody_who_is_first_behind_a_strict_queue(seed: int) -> None:
    """The first job that has to wait starts no later than without any backfilling."""
    world = random_world(seed)
    strict, easy = (simulate(world, policy_named(name)) for name in ("fcfs", "easy"))
    waited = np.flatnonzero(strict.start_s > world.jobs.arrival_s)
    if waited.size:
        assert easy.start_s[waited[0]] <= strict.start_s[waited[0]] + 1e-6


@pytest.mark.parametrize("kind", ["", "gangs"])
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000))
def test_easy_plans_alike_whether_or_not_nodes_could_be_capped(kind: str, seed: int) -> None:
    """On a steady grid nothing is ever dirty, so nothing is capped: nothing else may differ."""
    world = random_worlds.random_world(seed, kind)
    steady = np.full_like(world.grids.carbon_g_per_kwh, 123.4)
    grids = world.grids._replace(
        carbon_g_per_kwh=steady, forecast_carbon_g_per_kwh=steady, pue_relative=np.empty(0)
    )
    world = world._replace(grids=grids)
    plain, capped = (simulate(world, policy_named(f"easy{cap}")) for cap in ("", "+cap-when-dirty"))
    assert capped.caps.node.size == 0
    np.testing.assert_allclose(capped.start_s, plain.start_s, atol=1e-6, rtol=0.0)


def test_carbon_aware_provisioning_lets_few_cores_run_in_a_dirty_hour() -> None:
    """Two of ten cores may run at 400 g/kWh, all at 100: the second job waits for the clean hour,
    and the third, small as it is, behind it. The first is alone, and thus runs whatever it asks.
    """
    grid = [(0.0, 400.0, 50.0), (3600.0, 100.0, 50.0), (7200.0, 400.0, 50.0),
            (14_400.0, 100.0, 50.0)]  # fmt: skip
    jobs = [
        {"cpu_cores": 2.0, "runtime_s": 9000.0},
        {"cpu_cores": 3.0, "arrival_s": 10.0, "runtime_s": 1800.0},
        {"cpu_cores": 1.0, "arrival_s": 20.0, "runtime_s": 600.0},
        {"cpu_cores": 8.0, "arrival_s": 7200.0, "runtime_s": 600.0},
    ]
    schedule = simulate(make_world(jobs, grids=[grid]), policy_named("cap-fifo"))
    assert schedule.start_s.tolist() == [0.0, 3600.0, 3600.0, 9000.0]
