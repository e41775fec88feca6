import math

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_policies.encoding.weights import Weights
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.runs.looking_ahead import forecast_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

HOUR = 3600.0
QUARTER = 900.0
NOW = policy_named("run-now+spread")
TIME_IS_FREE = Weights(1.0, 1.0, 0.0)
LOWEST = policy_named("lowest-window+spread")
# The first hour is dirty, the second clean, the third in between, the fourth the cleanest.
HOURS = [(0.0, 400.0, 50.0), (HOUR, 100.0, 50.0), (2 * HOUR, 300.0, 50.0), (3 * HOUR, 90.0, 50.0),
         (4 * HOUR, 500.0, 50.0)]  # fmt: skip


def starts_s(world: World, policy: Policy = NOW) -> list[float]:
    started: list[float] = simulate(world, policy).start_s.tolist()
    return started


def test_a_job_runs_from_its_arrival_for_as_long_as_the_nodes_speed_says() -> None:
    ran = simulate(make_world([{"arrival_s": 60.0}], [{"speed": 2.0}]), NOW)
    assert (ran.planned_s[0], ran.start_s[0], ran.end_s[0], ran.node[0]) == (60, 60, 1860, 0)


def test_a_wrong_estimate_changes_no_runtime() -> None:
    ran = simulate(make_world([{"estimate_s": 9 * HOUR}]), NOW)
    assert ran.end_s.tolist() == [HOUR]


@pytest.mark.parametrize(
    ("others", "starts"),
    [
        pytest.param([{"arrival_s": 10.0, "cpu_cores": 2.0}], [10.0], id="room-beside-it"),
        pytest.param([{"arrival_s": 10.0, "cpu_cores": 3.0}], [HOUR], id="no-core-left"),
        pytest.param([{"arrival_s": 10.0, "memory_bytes": 2.0**36}], [HOUR], id="no-byte-left"),
        pytest.param([{"arrival_s": 10.0, "gpus": 2.0}], [HOUR], id="no-gpu-left"),
        pytest.param([{"arrival_s": HOUR, "cpu_cores": 8.0}], [HOUR], id="ends-before-arrivals"),
        pytest.param(
            [{"arrival_s": 10.0, "cpu_cores": 8.0}, {"arrival_s": 20.0, "cpu_cores": 2.0}],
            [HOUR, 20.0],
            id="small-ones-go-past",
        ),
        pytest.param(
            [{"arrival_s": 10.0, "cpu_cores": 6.0}, {"arrival_s": 20.0, "cpu_cores": 6.0}],
            [HOUR, 2 * HOUR],
            id="oldest-first",
        ),
        pytest.param([{"arrival_s": 10.0, "cpu_cores": 5.0}] * 2, [HOUR] * 2, id="all-that-fit"),
    ],
)
def test_jobs_wait_for_room(others: list[dict[str, float]], starts: list[float]) -> None:
    first = {"cpu_cores": 8.0, "gpus": 1.0}
    node = {"gpu_capacity": 2.0, "gpu_peak_w": 300.0}
    assert starts_s(make_world([first, *others], [node])) == [0.0, *starts]


@pytest.mark.parametrize(
    ("when", "arrival_s", "start_s"),
    [
        pytest.param("run-now", 0.0, 0.0),
        pytest.param("lowest-slot", 0.0, 3 * HOUR),
        pytest.param("lowest-slot", 600.0, 3 * HOUR + 600.0, id="lowest-slot-on-its-own-grid"),
        pytest.param("lowest-window", 0.0, 3 * HOUR),
        # 300 s at 300 g and the rest at 90 g: 107.5 g; from 11,400 s it would be 158 g.
        pytest.param("lowest-window", 600.0, 10_500.0, id="lowest-window-begins-before-it"),
        # 300 g saved two hours after arrival are more per hour than 310 g after four.
        pytest.param("carbon-time", 0.0, HOUR),
        pytest.param("cheapest-window", 0.0, 3 * HOUR),
        pytest.param("planned-window", 0.0, 3 * HOUR),
    ],
)
def test_a_job_with_slack_starts_when_the_rule_likes_best(
    when: str, arrival_s: float, start_s: float
) -> None:
    job = {"arrival_s": arrival_s, "deadline_s": arrival_s + 4 * HOUR}
    world = make_world([job], grids=[HOURS], weights=TIME_IS_FREE)
    ran = simulate(world, policy_named(when))
    assert (ran.planned_s[0], ran.start_s[0]) == (start_s, start_s)


@pytest.mark.parametrize(
    ("performance", "start_s"),
    [
        pytest.param(0.0, 3 * HOUR, id="the-cleanest-hour"),
        pytest.param(1.0, HOUR, id="one-sooner-that-is-cleaner-than-now"),
        pytest.param(9.0, 0.0, id="now"),
    ],
)
def test_the_more_time_counts_the_sooner_work_starts(performance: float, start_s: float) -> None:
    world = make_world([{"deadline_s": 4 * HOUR}], grids=[HOURS])
    world = world._replace(weights=Weights(0.0, 1.0, performance))
    assert starts_s(world, policy_named("planned-window")) == [start_s]


@pytest.mark.parametrize(
    ("deadline_s", "start_s"),
    [
        pytest.param(2 * HOUR, HOUR, id="the-last-start-counts"),
        pytest.param(2 * HOUR - 1.0, 3 * QUARTER, id="a-second-less-does-not"),
        pytest.param(HOUR, 0.0, id="no-slack"),
        pytest.param(HOUR / 2, 0.0, id="too-late-already"),
        pytest.param(math.inf, 0.0, id="nobody-said-how-long-it-may-wait"),
    ],
)
def test_no_start_is_planned_beyond_the_deadline(deadline_s: float, start_s: float) -> None:
    world = make_world([{"deadline_s": deadline_s}], grids=[HOURS])
    assert starts_s(world, policy_named("lowest-window")) == [start_s]


def test_an_estimate_decides_when_and_the_runtime_how_long() -> None:
    # Taken for three hours long, it may start within the first hour only.
    job = {"estimate_s": 3 * HOUR, "deadline_s": 4 * HOUR}
    ran = simulate(make_world([job], grids=[HOURS]), policy_named("lowest-window"))
    assert (ran.start_s[0], ran.end_s[0]) == (HOUR, 2 * HOUR)


def test_what_was_put_off_waits_where_there_is_no_room_then() -> None:
    job = {"cpu_cores": 6.0, "deadline_s": 4 * HOUR}
    ran = simulate(make_world([job, job], grids=[HOURS]), policy_named("lowest-window"))
    assert ran.planned_s.tolist() == [3 * HOUR, 3 * HOUR]
    assert ran.start_s.tolist() == [3 * HOUR, 4 * HOUR]


def test_a_plan_keeps_jobs_off_an_hour_that_is_full() -> None:
    job = {"cpu_cores": 6.0, "deadline_s": 4 * HOUR}
    world = make_world([job, job], grids=[HOURS], weights=TIME_IS_FREE)
    assert starts_s(world, policy_named("planned-window")) == [3 * HOUR, HOUR]


@pytest.mark.parametrize(
    ("where", "nodes"),
    [
        pytest.param("spread", [0, 1]),
        pytest.param("bin-pack", [0, 0]),
        pytest.param("least-carbon", [1, 1]),
        pytest.param("least-cost", [0, 0]),
        pytest.param("carbon-threshold", [1, 1]),
    ],
)
def test_a_job_runs_where_the_rule_likes_best(where: str, nodes: list[int]) -> None:
    # The second zone is clean and dear.
    grids = [[(0.0, 400.0, 20.0)], [(0.0, 50.0, 90.0)]]
    world = make_world([{}, {"arrival_s": 60.0}], [{"zone": 0}, {"zone": 1}], grids)
    assert simulate(world, policy_named(where)).node.tolist() == nodes


def test_forecasts_decide_and_what_came_is_billed() -> None:
    came, said = [(0.0, 100.0, 50.0), (HOUR, 300.0, 70.0)], [(0.0, 200.0, 50.0), (HOUR, 50.0, 50.0)]
    world = make_world([{"cpu_cores": 8.0, "deadline_s": 2 * HOUR}], grids=[came], forecasts=[said])
    ran = simulate(world, policy_named("lowest-window"))
    bill = bill_of(world, ran, 2 * HOUR)
    assert ran.start_s.tolist() == [HOUR]
    assert bill.carbon_active_g.tolist() == pytest.approx([0.08 * 300])
    assert bill.cost_active.tolist() == pytest.approx([80e-6 * 70])


@pytest.mark.parametrize(
    ("sleeps", "idle_j"), [(False, [200 * HOUR, 200 * HOUR]), (True, [100 * HOUR, 0.0])]
)
def test_idle_watts_are_billed_to_the_windows_end_unless_empty_nodes_sleep(
    sleeps: bool, idle_j: list[float]
) -> None:
    world = make_world([{}], [{}, {}], empty_nodes_sleep=sleeps)
    bill = bill_of(world, simulate(world, NOW), 2 * HOUR)
    assert bill.energy_idle_j.tolist() == pytest.approx(idle_j)


@pytest.mark.parametrize(
    ("step", "signal"),
    [
        pytest.param((HOUR, math.nan, 50.0), "carbon", id="carbon"),
        pytest.param((HOUR, 100.0, math.nan), "price", id="price"),
    ],
)
def test_a_bill_without_data_for_all_of_its_time_is_refused(
    step: tuple[float, float, float], signal: str
) -> None:
    world = make_world([{}], grids=[[(0.0, 100.0, 50.0), step]])
    ran = simulate(world, NOW)
    assert bill_of(world, ran, HOUR).is_used.all()
    with pytest.raises(BadInput, match=f"A lacks {signal} for a part of the 2 h"):
        bill_of(world, ran, 2 * HOUR)


def test_schedules_are_billed_until_the_last_job_of_any_ends() -> None:
    world = make_world([{"deadline_s": 5 * HOUR}], grids=[HOURS], length_s=2 * HOUR)
    now, later = simulate(world, NOW), simulate(world, policy_named("lowest-window"))
    assert billed_until_s(world, now) == 2 * HOUR
    assert billed_until_s(world, now, later) == billed_until_s(world, later) == 4 * HOUR


def test_a_run_leaves_the_world_as_it_was() -> None:
    world = make_world([{}, {"arrival_s": 5.0}], [{}, {}])
    before = [column.tobytes() for column in (*world.nodes, *world.jobs, *world.grids)]
    first, second = simulate(world, NOW), simulate(world, NOW)
    assert [column.tobytes() for column in (*world.nodes, *world.jobs, *world.grids)] == before
    assert as_bytes(first) == as_bytes(second)


def as_bytes(schedule: Schedule) -> list[bytes]:
    return [np.asarray(column).tobytes() for column in schedule]


def test_a_slow_node_that_cannot_take_a_job_does_not_hurry_it() -> None:
    day = [(hour * HOUR, value, 50.0) for hour, value in enumerate([500.0, 500.0, 50.0, 500.0])]
    jobs = [{"cpu_cores": 4.0, "deadline_s": 4 * HOUR}]
    snail = {"cpu_capacity": 1.0, "speed": 0.05}
    assert starts_s(make_world(jobs, [{}], [day]), LOWEST) == [2 * HOUR]
    assert starts_s(make_world(jobs, [{}, snail], [day]), LOWEST) == [2 * HOUR]


def test_a_window_is_as_long_as_the_run_on_nodes_of_that_speed() -> None:
    hours = [500.0, 100.0, 900.0, 150.0, 150.0, 500.0, 500.0, 500.0]
    grid = [(hour * HOUR, value, 50.0) for hour, value in enumerate(hours)]
    jobs = [{"deadline_s": 8 * HOUR}]
    assert starts_s(make_world(jobs, [{}], [grid]), LOWEST) == [HOUR]
    assert starts_s(make_world(jobs, [{"speed": 0.5}], [grid]), LOWEST) == [3 * HOUR]


@pytest.mark.parametrize("where", ["least-carbon", "least-cost"])
def test_a_forecast_knows_what_came_by_then(where: str) -> None:
    """At 0 the first zone's third hour is forecast dearer and dirtier than the other; it is not."""
    came = [(0.0, 90.0, 45.0), (2 * HOUR, 80.0, 40.0)]
    said = [(0.0, 90.0, 45.0), (2 * HOUR, 160.0, 80.0)]
    other = [(0.0, 100.0, 50.0), (2 * HOUR, 100.0, 50.0)]
    jobs = [{"arrival_s": HOUR, "runtime_s": 5 * HOUR}, {"arrival_s": 2 * HOUR}]
    world = make_world(
        jobs, [{}, {"zone": 1}], [came, other], forecasts=[said, other], length_s=6 * HOUR
    )
    assert simulate(world, policy_named(where)).node.tolist() == [1, 0]


def test_where_only_the_truth_is_missing_the_forecast_stands_as_it_was_made() -> None:
    world = random_world(3)
    carbon = world.grids.carbon_g_per_kwh.copy()
    carbon[0] = np.nan
    lacking = world._replace(grids=world.grids._replace(carbon_g_per_kwh=carbon))
    forecast = forecast_of(lacking, in_slots=True)
    assert np.isfinite(forecast.factors).all() and np.isfinite(forecast.values).all()
