"""Nodes start for work without room: when, how many, and of which group."""

from collections.abc import Sequence

import numpy as np
import pytest

from greensched_operator.objects.green_policy import parse
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.run_inputs import estimates_in
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.runs.sleep_tables import sleep_table
from greensched_simulator.testing.small_worlds import (
    GIB,
    Fields,
    bytes_of,
    make_world,
    with_autoscaling,
    with_outages,
)
from greensched_simulator.world.world import World
from tests.simulator.engine.autoscaling.one_group import NODE, autoscaled

pytestmark = pytest.mark.engine

HOUR = 3600.0
FULL: Fields = {"arrival_s": 61.0, "runtime_s": 600.0, "cpu_cores": 10.0}


def ran(world: World, policy: str = "run-now+first-fit") -> Schedule:
    return simulate(world, policy_named(policy))


def started(schedule: Schedule) -> list[tuple[int, float, float]]:
    """Return node, start and time when it is ready of each start, in the order of time."""
    told = schedule.sleeps
    rows = zip(told.node.tolist(), told.woken_s.tolist(), told.awake_s.tolist(), strict=True)
    return sorted((each for each in rows if each[1] < np.inf), key=lambda each: each[1:] + each[:1])


@pytest.mark.parametrize(("arrival_s", "scan_s"), [
    pytest.param(0.0, 0.0, id="at-the-first-scan"),
    pytest.param(60.0, 60.0, id="at-a-scan"),
    pytest.param(60.001, 70.0, id="after-a-scan"),
    pytest.param(69.999, 70.0, id="before-the-next"),
])  # fmt: skip
def test_the_next_scan_starts_a_node_and_the_job_runs_when_it_is_ready(
    arrival_s: float, scan_s: float
) -> None:
    schedule = ran(autoscaled([{**FULL, "arrival_s": arrival_s}], 2))
    assert started(schedule) == [(0, scan_s, scan_s + 120.0)]
    assert schedule.start_s.tolist() == [scan_s + 120.0]


def test_a_node_that_is_off_or_starts_draws_its_own_watts() -> None:
    world = autoscaled([FULL], 1)
    schedule = ran(world)
    bill = bill_of(world, schedule, 7200.0)
    # Off until the scan at 70; ready at 190; the job ends at 790; removed at 1400.
    assert bill.energy_sleep_j.tolist() == [(70 + 7200 - 1400) * 5.0]
    assert bill.energy_wake_j.tolist() == [120 * 300.0]
    assert bill.energy_idle_j.tolist() == [(1400 - 190) * 100.0]
    assert bill.energy_active_j.tolist() == [600 * 100.0]


@pytest.mark.parametrize(("cores", "nodes"), [(4.0, 1), (4.001, 2)])
def test_as_many_nodes_start_as_the_pending_jobs_need_together(cores: float, nodes: int) -> None:
    jobs = [{**FULL, "cpu_cores": 6.0}, {**FULL, "cpu_cores": cores}]
    schedule = ran(autoscaled(jobs, 3))
    assert started(schedule) == [(node, 70.0, 190.0) for node in range(nodes)]
    assert schedule.start_s.tolist() == [190.0, 190.0]


@pytest.mark.parametrize(("cores", "starts"), [
    pytest.param(4.0, [(0, 70.0, 190.0)], id="fits-on-the-one-that-starts"),
    pytest.param(4.5, [(0, 70.0, 190.0), (1, 110.0, 230.0)], id="fits-not"),
])  # fmt: skip
def test_a_node_that_starts_counts_for_the_work_that_comes_meanwhile(
    cores: float, starts: list[tuple[int, float, float]]
) -> None:
    jobs = [{**FULL, "cpu_cores": 6.0}, {**FULL, "arrival_s": 101.0, "cpu_cores": cores}]
    assert started(ran(autoscaled(jobs, 3))) == starts


def test_one_job_starts_one_node_however_often_is_scanned() -> None:
    jobs = [FULL, *({**FULL, "arrival_s": 75.0 + at, "cpu_cores": 0.0} for at in range(0, 100, 9))]
    assert started(ran(autoscaled(jobs, 5))) == [(0, 70.0, 190.0)]


def test_no_more_nodes_start_than_the_group_has() -> None:
    schedule = ran(autoscaled([FULL] * 3, 2))
    assert started(schedule) == [(0, 70.0, 190.0), (1, 70.0, 190.0)]
    assert schedule.start_s.tolist() == [190.0, 190.0, 790.0]


def test_a_run_begins_with_the_least_number_of_nodes() -> None:
    schedule = ran(autoscaled([FULL, FULL], 3, min_nodes=1))
    assert started(schedule) == [(1, 70.0, 190.0)]
    assert schedule.start_s.tolist() == [61.0, 190.0]


QUEUES = ["oldest-fit", "fcfs", "easy", "sjf", "concurrent"]


@pytest.mark.parametrize("queue", QUEUES)
def test_all_waiting_jobs_get_nodes_whatever_the_queue(queue: str) -> None:
    schedule = ran(autoscaled([FULL] * 3, 3), f"run-now+{queue}")
    assert schedule.start_s.tolist() == [190.0] * 3


def test_a_quota_starts_nodes_only_for_the_jobs_that_it_lets_start() -> None:
    world = autoscaled([FULL] * 3, 3)
    grids = world.grids._replace(
        times_s=np.array([0.0, HOUR]), starts=np.array([0, 2]),
        **{
            name: np.array(values)
            for name, values in {
                "carbon_g_per_kwh": [900.0, 100.0], "forecast_carbon_g_per_kwh": [900.0, 100.0],
                "price_per_mwh": [50.0, 50.0], "forecast_price_per_mwh": [50.0, 50.0],
            }.items()
        },
    )  # fmt: skip
    schedule = ran(world._replace(grids=grids), "run-now+cap-fifo")
    assert started(schedule)[:1] == [(0, 70.0, 190.0)]
    assert schedule.start_s.tolist() == [190.0, 790.0, 1390.0]


def test_workers_of_a_gang_are_pending_each_for_itself() -> None:
    gang: Fields = {**FULL, "cpu_cores": 6.0, "workers": 3.0}
    for queue in QUEUES:
        schedule = ran(autoscaled([gang], 4), f"run-now+{queue}")
        assert started(schedule) == [(node, 70.0, 190.0) for node in range(3)]
        assert schedule.run_segments.start_s.tolist() == [190.0] * 3


def two_groups(jobs: Sequence[Fields], first: Fields, second: Fields) -> World:
    nodes = [{**NODE, **first}] * 2 + [{**NODE, **second}] * 2
    return with_autoscaling(make_world(jobs, nodes), [0, 0, 1, 1], [0, 0])


@pytest.mark.parametrize(("cores", "node"), [
    pytest.param(4.0, 2, id="fills-the-small-one"),
    pytest.param(5.0, 0, id="fits-only-the-large-one"),
])  # fmt: skip
def test_the_group_that_wastes_least_is_chosen(cores: float, node: int) -> None:
    """Both waste nearly all memory."""
    world = two_groups([{**FULL, "cpu_cores": cores}], {}, {"cpu_capacity": 4.0})
    assert started(ran(world)) == [(node, 70.0, 190.0)]


def test_memory_is_wasted_as_cores_are() -> None:
    job: Fields = {**FULL, "cpu_cores": 4.0, "memory_bytes": 60 * GIB}
    world = two_groups([job], {}, {"cpu_capacity": 4.0, "memory_capacity": 640 * GIB})
    assert started(ran(world)) == [(0, 70.0, 190.0)]


def test_a_draw_decides_between_alike_groups() -> None:
    """The draws of these worlds are 0.2 and 0.7."""
    schedule = ran(two_groups([FULL, {**FULL, "arrival_s": 300.0}], {}, {"zone": 0.0}))
    assert started(schedule) == [(0, 70.0, 190.0), (2, 300.0, 420.0)]


def test_nodes_of_one_group_start_at_a_scan() -> None:
    jobs = [{**FULL, "cpu_cores": 20.0}, {**FULL, "cpu_cores": 1.0, "gpus": 1.0}]
    world = two_groups(jobs, {"cpu_capacity": 20.0}, {"gpu_capacity": 2.0})
    assert started(ran(world)) == [(0, 70.0, 190.0), (2, 80.0, 200.0)]


def test_nodes_that_stay_on_are_used_first() -> None:
    world = with_autoscaling(make_world([FULL, FULL], [NODE] * 3), [0, -1, 0], [0])
    schedule = ran(world)
    assert schedule.node.tolist() == [1, 0]
    assert schedule.sleeps.node.tolist() == [0, 2, 0]


def test_nodes_that_sleep_by_a_rule_stand_beside_autoscaled_ones() -> None:
    world = with_autoscaling(make_world([FULL] * 3, [NODE] * 3), [0, -1, -1], [0])
    schedule = ran(world, "run-now+first-fit+sleep-at-once")
    assert schedule.start_s.tolist() == [181.0, 181.0, 190.0]
    assert schedule.node.tolist() == [1, 2, 0]
    (again,) = np.flatnonzero((schedule.sleeps.node == 0) & (schedule.sleeps.asleep_s > 0.0))
    assert schedule.sleeps.asleep_s[again] == 1400.0


def test_starts_in_time_leave_time_for_a_node_to_start() -> None:
    world = autoscaled([{**FULL, "deadline_s": 2 * HOUR}], 1)
    estimates = estimates_in(world, sleep_table(world, policy_named("run-now")))
    assert estimates.latest_start_s.tolist() == [2 * HOUR - 600.0 - 120.0 - 10.0]


@pytest.mark.parametrize("policy", ["lowest-window", "green-policy"])
def test_a_delayed_job_starts_a_node_when_its_time_has_come(policy: str) -> None:
    grid = [(0.0, 900.0, 50.0), (2 * HOUR, 10.0, 50.0), (4 * HOUR, 900.0, 50.0)]
    world = make_world([{**FULL, "deadline_s": 8 * HOUR}], [NODE], [grid], length_s=8 * HOUR)
    spec = {"mode": "enforce", "defaultDelay": "5h", "weights": {"performance": 0}}
    held = parse({"metadata": {"name": "p"}, "spec": spec})
    schedule = ran(with_autoscaling(world, [0], [0])._replace(green_policy=held), policy)
    ((node, begin_s, ready_s),) = started(schedule)
    assert schedule.planned_s[0] >= 2 * HOUR
    assert begin_s == np.ceil(schedule.planned_s[0] / 10.0) * 10.0
    assert (node, schedule.start_s[0]) == (0, ready_s)


def test_a_node_that_is_off_does_not_fail_and_another_starts_for_one_that_does() -> None:
    world = autoscaled([{**FULL, "runtime_s": 2 * HOUR}], 2)
    schedule = ran(with_outages(world, (0, 0.01, 0.02), (0, 1.0, 3.0), (1, 1.0, 3.0)))
    assert schedule.outages.node.tolist() == [0]
    assert started(schedule) == [(0, 70.0, 190.0), (1, HOUR, HOUR + 120.0)]
    assert schedule.run_segments.start_s.tolist() == [190.0, HOUR + 120.0]


def test_an_agent_that_answers_like_the_rule_brings_about_the_same() -> None:
    jobs = [{**FULL, "cpu_cores": cores, "arrival_s": 60.0 * at} for at, cores in enumerate(
        [6.0, 3.0, 6.0, 1.0, 2.0, 10.0, 4.0])]  # fmt: skip
    world, policy = autoscaled(jobs, 4, min_nodes=2), policy_named("run-now+spread")
    env = GreenSchedEnv([world], policy, head="where")
    env.reset(seed=1)
    is_over, rewards = False, []
    while not is_over:
        _, reward, is_over, _, _ = env.step(-1)
        rewards.append(float(reward))
    assert bytes_of(env.schedule()) == bytes_of(simulate(world, policy))
    assert np.isfinite(rewards).all()
