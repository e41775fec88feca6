import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.job_times import (
    completions_s,
    jain_index,
    meets_deadline,
    shortest_runtimes_s,
    slowdowns,
    waits_s,
)
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.runs.utilisation import utilisation_of
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import in_one_piece, make_world
from greensched_simulator.world.world import World

HOUR = 3600.0


def schedule(starts_s: list[float], ends_s: list[float], nodes: list[int]) -> Schedule:
    return in_one_piece(np.array(starts_s), np.array(ends_s), np.array(nodes))


def outcome(world: World, ran: Schedule, until_s: float) -> Outcome:
    return outcome_of(world, ran, bill_of(world, ran, until_s), until_s)


def three_jobs() -> Outcome:
    """Return the figures of two jobs that run one after the other, and one beside the second."""
    jobs = [
        {"runtime_s": HOUR, "cpu_cores": 8.0, "deadline_s": HOUR},
        {"runtime_s": HOUR, "cpu_cores": 8.0, "deadline_s": 1.5 * HOUR},
        {"arrival_s": HOUR, "runtime_s": HOUR / 2, "cpu_cores": 2.0},
    ]
    world = make_world(jobs, grids=[[(0.0, 400.0, 100.0), (HOUR, 200.0, -20.0)]])
    return outcome(world, schedule([0.0, HOUR, HOUR], [HOUR, 2 * HOUR, 1.5 * HOUR], [0] * 3),
                   2 * HOUR)  # fmt: skip


def test_the_figures_of_three_jobs_reckoned_by_hand() -> None:
    found = three_jobs()
    assert (found.jobs, found.jobs_done, found.nodes_used) == (3, 3, 1)
    assert found.work_core_h == pytest.approx(8 + 8 + 1)
    assert (found.deadlines, found.deadlines_met) == (2, 1)
    # A core requested draws 10 W: 80 W, then 100 W for half an hour and 80 W again; 100 W idle.
    assert found.energy_active_j == pytest.approx((80 + 50 + 40) * HOUR)
    assert found.energy_idle_j == pytest.approx(200 * HOUR)
    assert found.carbon_active_g == pytest.approx(0.08 * 400 + 0.09 * 200)
    assert found.carbon_idle_g == pytest.approx(0.1 * 400 + 0.1 * 200)
    assert found.cost_active == pytest.approx(80e-6 * 100 - 90e-6 * 20)
    assert found.cost_idle == pytest.approx(100e-6 * 100 - 100e-6 * 20)
    assert found.energy_j == pytest.approx(370 * HOUR)
    assert found.carbon_g == pytest.approx(110.0)
    assert found.cost == pytest.approx(0.0142)
    assert found.wait_mean_s == pytest.approx(HOUR / 3)
    assert found.wait_p95_s == pytest.approx(0.9 * HOUR)  # linear between the last two
    assert found.slowdown_mean == pytest.approx((1 + 2 + 1) / 3)
    assert found.slowdown_p95 == pytest.approx(1.9)
    assert found.fairness == pytest.approx(4**2 / (3 * (1 + 4 + 1)))
    assert (found.billed_s, found.billed_alone_s) == (2 * HOUR, 2 * HOUR)


def test_jobs_planned_for_later_are_counted_with_their_mean_delay() -> None:
    world = make_world([{"arrival_s": HOUR} for _ in range(4)])
    at_s = [HOUR, 3 * HOUR, 2 * HOUR, 9 * HOUR]
    ran = schedule(at_s, [at + HOUR for at in at_s], [0] * 4)
    planned_s = np.array([HOUR, 3 * HOUR, 2 * HOUR, np.nan])  # the last one was never planned
    found = outcome(world, ran._replace(planned_s=planned_s), 10 * HOUR)
    assert (found.jobs_delayed, found.delay_mean_s) == (2, 1.5 * HOUR)
    assert (three_jobs().jobs_delayed, three_jobs().delay_mean_s) == (1, HOUR)


def test_how_long_three_jobs_take_and_how_full_the_node_is_reckoned_by_hand() -> None:
    found = three_jobs()
    # From arrival to end: 1 h, 2 h and half an hour.
    assert found.completion_mean_s == pytest.approx(3.5 * HOUR / 3)
    assert found.completion_median_s == pytest.approx(HOUR)
    assert found.completion_p95_s == pytest.approx(1.9 * HOUR)  # linear between the last two
    assert found.completion_p99_s == pytest.approx(1.98 * HOUR)
    assert found.makespan_s == pytest.approx(2 * HOUR)
    assert found.throughput_jobs_per_h == pytest.approx(1.5)
    # Of 10 cores and 64 GiB: 8, then 10, then 8; 1, then 2, then 1.
    assert found.cpu_utilisation_mean == pytest.approx((8 * 2 + 2 * 0.5) / 20)
    assert found.cpu_utilisation_peak == pytest.approx(1.0)
    assert found.memory_utilisation_mean == pytest.approx(2.5 / (64 * 2))
    assert found.memory_utilisation_peak == pytest.approx(2 / 64)
    assert (found.gpu_utilisation_mean, found.gpu_utilisation_peak) == (0.0, 0.0)


def test_carbon_at_the_margin_is_a_second_bill_of_the_same_schedule() -> None:
    """100 W idle and 10 more for an hour, then idle; a job that never ran is charged by it too."""
    world = make_world([{}], grids=[[(0.0, 400.0, 100.0), (HOUR, 200.0, 100.0)]])
    world = world._replace(grids=world.grids._replace(marginal_g_per_kwh=np.array([900.0, 30.0])))
    found = outcome(world, schedule([0.0], [HOUR], [0]), 2 * HOUR)
    assert found.carbon_g == pytest.approx(0.11 * 400 + 0.1 * 200)
    assert found.carbon_marginal_g == pytest.approx(0.11 * 900 + 0.1 * 30)
    never = outcome(world, schedule([np.nan], [np.nan], [-1]), 2 * HOUR)
    assert never.carbon_marginal_g == pytest.approx(0.1 * 900 + 0.1 * 30 + 2 * 0.01 * 900)


def test_carbon_of_making_the_nodes_is_separate_and_the_same_for_all() -> None:
    world = make_world([{}], [{"embodied_g_per_s": 0.01}, {}, {"embodied_g_per_s": 0.02}])
    found = outcome(world, schedule([0.0], [HOUR], [0]), 2 * HOUR)
    assert found.carbon_embodied_g == pytest.approx(0.03 * 2 * HOUR)
    bare = make_world([{}], [{}] * 3)
    assert found.carbon_g == outcome(bare, schedule([0.0], [HOUR], [0]), 2 * HOUR).carbon_g
    assert outcome(bare, schedule([0.0], [HOUR], [0]), HOUR).carbon_embodied_g == 0.0


def test_gpus_are_work_too() -> None:
    node = {"gpu_capacity": 4.0, "gpu_idle_w": 50.0, "gpu_peak_w": 300.0, "speed": 2.0}
    world = make_world([{"runtime_s": 2 * HOUR, "cpu_cores": 0.0, "gpus": 3.0}], [node])
    found = outcome(world, schedule([0.0], [HOUR], [0]), HOUR)
    assert found.work_core_h == 0.0
    assert found.work_gpu_h == pytest.approx(6.0)
    assert (found.gpu_utilisation_mean, found.gpu_utilisation_peak) == (0.75, 0.75)
    assert found.energy_active_j == pytest.approx(3 * 250 * 0.8 * HOUR)


@pytest.mark.parametrize(
    ("runtime_s", "end_s", "slowdown"),
    [
        pytest.param(100.0, 100.0, 1.0, id="at-once"),
        pytest.param(100.0, 400.0, 4.0, id="waited-three-times-as-long"),
        pytest.param(10.0, 40.0, 4.0, id="as-long-as-the-bound"),
        pytest.param(1.0, 40.0, 4.0, id="shorter-than-the-bound"),
        pytest.param(1.0, 5.0, 1.0, id="over-before-the-bound"),
    ],
)
def test_slowdown_is_bounded(runtime_s: float, end_s: float, slowdown: float) -> None:
    world = make_world([{"runtime_s": runtime_s}])
    ran = schedule([end_s - runtime_s], [end_s], [0])
    assert slowdowns(world, ran).tolist() == pytest.approx([slowdown])


def test_a_slow_node_slows_a_job_down() -> None:
    world = make_world([{"runtime_s": HOUR}] * 2, [{"speed": 2.0}, {"speed": 0.5}])
    ran = schedule([0.0, 0.0], [HOUR / 2, 2 * HOUR], [0, 1])
    assert slowdowns(world, ran).tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    ("job", "speed"),
    [
        pytest.param({}, 3.0, id="fits-everywhere"),
        pytest.param({"cpu_cores": 4.0}, 2.0, id="too-many-cores-for-the-fastest"),
        pytest.param({"memory_bytes": 16 * 2.0**30}, 2.0, id="too-many-bytes-for-the-fastest"),
        pytest.param({"gpus": 1.0}, 1.0, id="needs-a-gpu"),
    ],
)
def test_the_shortest_runtime_is_that_on_a_node_that_is_large_enough(
    job: dict[str, float], speed: float
) -> None:
    nodes = [
        {"speed": 3.0, "cpu_capacity": 2.0, "memory_capacity": 8 * 2.0**30},
        {"speed": 2.0},
        {"speed": 1.0, "gpu_capacity": 1.0},
    ]
    assert shortest_runtimes_s(make_world([job], nodes)).tolist() == [HOUR / speed]


def test_a_deadline_is_not_missed_by_a_rounding() -> None:
    deadline_s = 0.3
    job = {"runtime_s": 0.1, "deadline_s": deadline_s}
    world = make_world([job] * 3 + [{}])
    ends_s = [deadline_s, math.nextafter(deadline_s, 1.0), deadline_s + 1e-3, 0.1]
    met = meets_deadline(world, schedule([0.0] * 4, ends_s, [0] * 4))
    assert met.tolist() == [True, True, False, False]  # the last one has none


def test_a_job_that_never_ran_counts_with_the_least_it_can_still_come_to() -> None:
    jobs = [{}, {"arrival_s": 1800.0, "runtime_s": HOUR, "deadline_s": 3 * HOUR}]
    world = make_world(jobs, [{"speed": 2.0}])
    found = outcome(world, schedule([0.0, math.nan], [HOUR / 2, math.nan], [0, -1]), 2 * HOUR)
    assert (found.jobs, found.jobs_done, found.work_core_h) == (2, 1, 1.0)
    assert (found.deadlines, found.deadlines_met) == (1, 0)
    assert found.wait_mean_s == (0.0 + 5400.0) / 2
    assert found.completion_mean_s == (1800.0 + 5400.0 + 1800.0) / 2
    assert found.makespan_s == 1800.0  # of what ran
    assert found.throughput_jobs_per_h == 2.0
    assert found.slowdown_mean == (1.0 + (5400.0 + 1800.0) / 1800.0) / 2


def test_a_job_that_ends_after_the_window_is_not_done() -> None:
    world = make_world([{"deadline_s": 2 * HOUR}])
    found = outcome(world, schedule([1.0], [HOUR + 1.0], [0]), HOUR)
    assert (found.jobs_done, found.work_core_h, found.deadlines_met) == (0, 0.0, 0)


def test_where_nothing_ran_there_is_no_makespan_and_no_throughput() -> None:
    found = outcome(make_world([{}]), schedule([math.nan], [math.nan], [-1]), 2 * HOUR)
    assert (found.makespan_s, found.throughput_jobs_per_h) == (0.0, 0.0)
    assert (found.cpu_utilisation_mean, found.cpu_utilisation_peak) == (0.0, 0.0)
    assert found.completion_mean_s == 2 * HOUR + HOUR


def test_a_job_takes_from_its_arrival_to_its_end_whatever_it_waits_for() -> None:
    world = make_world([{}, {}], after={1: [0]})
    ran = schedule([0.0, 2 * HOUR], [HOUR, 3 * HOUR], [0, 0])
    assert completions_s(world, ran).tolist() == [HOUR, 3 * HOUR]
    assert waits_s(world, ran).tolist() == [0.0, HOUR]


@pytest.mark.parametrize(
    ("second_starts_s", "peak"),
    [
        pytest.param(HOUR - 1.0, 1.0, id="a-second-of-both"),
        pytest.param(HOUR, 0.6, id="one-begins-as-the-other-ends"),
    ],
)
def test_the_peak_is_what_runs_at_the_same_time(second_starts_s: float, peak: float) -> None:
    world = make_world([{"cpu_cores": 4.0}, {"cpu_cores": 6.0}])
    ran = schedule([0.0, second_starts_s], [HOUR, second_starts_s + HOUR], [0, 0])
    found = outcome(world, ran, 2 * HOUR)
    assert (found.cpu_utilisation_mean, found.cpu_utilisation_peak) == pytest.approx((0.5, peak))


def test_utilisation_ends_with_the_window() -> None:
    world = make_world([{"cpu_cores": 10.0}, {"cpu_cores": 5.0}])
    found = outcome(world, schedule([0.0, HOUR], [HOUR, 2 * HOUR], [0, 0]), 1.5 * HOUR)
    assert found.cpu_utilisation_mean == pytest.approx((10 + 5 * 0.5) / 15)
    before = outcome(world, schedule([HOUR, 0.0], [2 * HOUR, HOUR], [0, 0]), HOUR)
    assert before.cpu_utilisation_peak == pytest.approx(0.5), "what begins at the end is not in it"


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    longest_s=st.floats(1.0, 2 * HOUR),
    is_on_the_clock=st.booleans(),
)
def test_the_peak_is_that_of_each_begin_counted_by_itself(
    seed: int, count: int, longest_s: float, is_on_the_clock: bool
) -> None:
    dice = np.random.default_rng(seed)
    arrival_s = np.sort(dice.uniform(0.0, 2 * HOUR, count))
    length_s = dice.uniform(0.1, longest_s, count)
    if is_on_the_clock:  # many begin as others end
        arrival_s, length_s = np.round(arrival_s, -2), np.maximum(np.round(length_s, -2), 100.0)
    cores = dice.integers(1, 5, count) / 2.0
    jobs = [{"arrival_s": float(at), "cpu_cores": float(each)}
            for at, each in zip(arrival_s, cores, strict=True)]  # fmt: skip
    world = make_world(jobs, [{"cpu_capacity": 1000.0}])
    ran = in_one_piece(arrival_s, arrival_s + length_s, np.zeros(count, np.int64))
    until_s = float(dice.uniform(HOUR, 4 * HOUR))
    inside = np.flatnonzero(arrival_s < until_s)
    running = (ran.start_s[:, None] <= arrival_s[inside]) & (ran.end_s[:, None] > arrival_s[inside])
    most = max((cores @ running).max(initial=0.0), 0.0)
    assert utilisation_of(world, ran, until_s).cpu_utilisation_peak == pytest.approx(most / 1000.0)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_utilisation_is_that_of_the_hours_and_no_more_than_all(seed: int) -> None:
    world = random_world(seed)
    ran = simulate(world, policy_named("run-now+spread"))
    until_s = billed_until_s(world, ran)
    found = utilisation_of(world, ran, until_s)
    parts = list(node_hours(world, ran, until_s))
    core_s = sum(float(each.cpu_core_s.sum()) for each in parts)
    whole_s = float(world.nodes.cpu_capacity.sum()) * until_s
    assert found.cpu_utilisation_mean == pytest.approx(core_s / whole_s)
    for mean, peak in zip(found[::2], found[1::2], strict=True):
        assert 0.0 <= mean <= peak + 1e-9
        assert peak <= 1.0 + 1e-6


@pytest.mark.parametrize(
    ("values", "index"),
    [
        pytest.param([3.0, 3.0, 3.0], 1.0, id="all-alike"),
        pytest.param([1.0, 3.0], 0.8, id="one-thrice"),
        pytest.param([1e9, 1e-9, 1e-9, 1e-9], 0.25, id="one-has-it-all"),
    ],
)
def test_jains_index_tells_how_alike_jobs_fare(values: list[float], index: float) -> None:
    assert jain_index(np.array(values)) == pytest.approx(index)
