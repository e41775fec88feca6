"""Nodes that fail: what ran there is stopped, and goes on where it was saved."""

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_policies.kernel.plan import Plan
from greensched_simulator.arrays.nodes import Outages
from greensched_simulator.engine.engine import run
from greensched_simulator.engine.run import Given
from greensched_simulator.engine.state.choices import rules_of
from greensched_simulator.engine.state.cluster import idle_cluster, node_table
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.runs.job_times import waits_s
from greensched_simulator.runs.looking_ahead import empty_plan, forecast_of
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.run_inputs import estimates_in, planned_jobs, run_config_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.runs.sleep_tables import sleep_table
from greensched_simulator.scenario.cluster import NodeGroup
from greensched_simulator.testing.small_worlds import (
    GIB,
    Fields,
    make_world,
    with_outages,
)
from greensched_simulator.world.node_outages import NO_OUTAGES, outages_of
from greensched_simulator.world.world import World
from tests.simulator.energy_told import assert_all_energy_is_told

pytestmark = pytest.mark.engine

HOUR = 3600.0
BIG: Fields = {"cpu_cores": 8.0, "runtime_s": 2 * HOUR}


def ran(world: World, policy: str = "run-now") -> Schedule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return simulate(world, policy_named(policy))


def run_segments(schedule: Schedule) -> list[tuple[int, int, float, float]]:
    """Return job, node, begin and end in hours of each run segment, in the order of time."""
    told = schedule.run_segments
    return sorted(
        zip(
            told.job.tolist(), told.node.tolist(), (told.start_s / HOUR).round(6).tolist(),
            (told.end_s / HOUR).round(6).tolist(), strict=True,
        ),
        key=lambda each: each[2:],
    )  # fmt: skip


def test_a_job_begins_again_on_another_node_when_its_own_fails() -> None:
    world = with_outages(make_world([BIG], [{}, {}]), (0, 1.0, 5.0))
    schedule = ran(world, "first-fit")
    assert run_segments(schedule) == [(0, 0, 0.0, 1.0), (0, 1, 1.0, 3.0)]
    assert waits_s(world, schedule).tolist() == [0.0]


def test_it_waits_for_the_node_where_there_is_no_other() -> None:
    world = with_outages(make_world([BIG], [{}]), (0, 1.0, 5.0))
    schedule = ran(world)
    assert run_segments(schedule) == [(0, 0, 0.0, 1.0), (0, 0, 5.0, 7.0)]
    assert waits_s(world, schedule).tolist() == [4 * HOUR]


@pytest.mark.parametrize("queue", ["", "+easy", "+fcfs", "+concurrent", "+sjf", "+cap-fifo"])
def test_who_waits_gets_the_room_when_a_node_is_back(queue: str) -> None:
    jobs = [BIG, {**BIG, "arrival_s": 0.5 * HOUR}, {**BIG, "arrival_s": 1.5 * HOUR}]
    schedule = ran(with_outages(make_world(jobs, [{}]), (0, 1.0, 5.0)), f"run-now{queue}")
    assert [begin for _, _, begin, _ in run_segments(schedule)] == [0.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize(("saves", "left_h"), [
    pytest.param({}, 2.0, id="nothing-saved"),
    pytest.param({"save_every_s": 0.0}, 2.0, id="saved-only-when-suspended"),
    pytest.param({"save_every_s": 0.25 * HOUR}, 1.0, id="saved-at-the-very-moment"),
    pytest.param({"save_every_s": 0.4 * HOUR}, 1.2, id="saved-before"),
    pytest.param({"save_every_s": 0.4 * HOUR, "startup_s": 0.1 * HOUR}, 1.2, id="with-a-startup"),
])  # fmt: skip
def test_what_was_saved_is_not_done_again(saves: Fields, left_h: float) -> None:
    """After an hour, of two; with a startup 0.9 h of work are done, of which 0.8 are saved."""
    world = with_outages(make_world([{**BIG, **saves}], [{}, {}]), (0, 1.0, 5.0))
    for policy in ("first-fit", "first-fit+pause-freely"):
        *_, last = run_segments(ran(world, policy))
        assert last[3] - last[2] == pytest.approx(left_h)


def test_all_workers_stop_when_the_node_of_one_fails() -> None:
    gang: Fields = {**BIG, "workers": 2.0}
    small: Fields = {"cpu_cores": 5.0, "arrival_s": 0.5 * HOUR}
    world = with_outages(make_world([gang, small], [{}, {}]), (1, 1.0, 4.0))
    schedule = ran(world, "first-fit")
    assert run_segments(schedule) == [
        (0, 0, 0.0, 1.0), (0, 1, 0.0, 1.0), (1, 0, 1.0, 2.0), (0, 0, 4.0, 6.0), (0, 1, 4.0, 6.0)
    ]  # fmt: skip
    outcome = outcome_of(world, schedule, bill_of(world, schedule, 6 * HOUR), 6 * HOUR)
    assert (outcome.failures, outcome.jobs_stopped) == (1, 1)


def test_a_node_that_is_away_draws_nothing_and_one_that_sleeps_does_not_fail() -> None:
    nodes = [{"sleep_w": 10.0, "wake_s": 60.0}] * 2
    world = with_outages(make_world([BIG], nodes, length_s=4 * HOUR), (0, 1.0, 2.0), (1, 1.0, 2.0))
    schedule = ran(world, "first-fit+sleep-at-once")
    assert schedule.outages.node.tolist() == [0]
    bill = bill_of(world, schedule, 4 * HOUR)
    total = bill.energy_active_j + bill.energy_idle_j + bill.energy_sleep_j + bill.energy_wake_j
    alive = ran(world._replace(outages=NO_OUTAGES), "first-fit+sleep-at-once")
    assert alive.outages.node.size == 0
    # Node 0 works for an hour, is away for one and sleeps; node 1 sleeps for an hour and wakes.
    assert total[0] == pytest.approx(3600 * (100 + 0.4 * 200) + 2 * 3600 * 10)
    assert total[1] > 3600 * 10


def test_all_policies_meet_the_same_failures_also_once_their_work_is_done() -> None:
    grid = [(0.0, 500.0, 50.0), (20 * HOUR, 100.0, 50.0), (24 * HOUR, 500.0, 50.0)]
    world = make_world([{"deadline_s": 30 * HOUR}], [{}, {}], [grid], length_s=48 * HOUR)
    world = with_outages(world, (0, 5.0, 15.0), (1, 5.0, 15.0))
    for policy in ("run-now", "lowest-window"):
        schedule = ran(world, policy)
        bill = bill_of(world, schedule, 48 * HOUR)
        assert bill.energy_idle_j.sum() == pytest.approx(2 * 38 * HOUR * 100.0)
        assert outcome_of(world, schedule, bill, 48 * HOUR).failures == 2
    sleepers = make_world([{**BIG, "runtime_s": HOUR}], [{"sleep_w": 10.0}] * 2, length_s=48 * HOUR)
    schedule = ran(with_outages(sleepers, (0, 0.5, 2.0)), "first-fit+sleep-at-once")
    idle_j = bill_of(sleepers, schedule, 48 * HOUR).energy_idle_j
    assert idle_j[0] == pytest.approx(0.5 * HOUR * 100.0)


def test_a_node_that_wakes_for_a_gang_that_fails_sleeps_once_it_is_awake() -> None:
    gang: Fields = {
        "cpu_cores": 8.0,
        "workers": 2.0,
        "runtime_s": 2 * HOUR,
        "arrival_s": 600.0,
    }
    nodes = [{"sleep_w": 10.0, "wake_s": 2 * HOUR, "wake_w": 150.0}] * 2
    world = make_world([{"runtime_s": 900.0}, gang], nodes, length_s=12 * HOUR)
    schedule = ran(with_outages(world, (0, 0.5, 1.0)), "first-fit+sleep-at-once")
    bill = bill_of(world, schedule, 12 * HOUR)
    off_s = bill.energy_sleep_j[1] / 10 + bill.energy_wake_j[1] / 150
    assert off_s == pytest.approx(10 * HOUR)
    assert bill.energy_idle_j[1] == pytest.approx(2 * HOUR * 100.0)


def test_nobody_gets_a_node_that_was_never_to_be_used() -> None:
    job: Fields = {"cpu_cores": 8.0, "runtime_s": 4 * HOUR}
    world = with_outages(make_world([job, job], [{}, {}], length_s=20 * HOUR), (1, 1.0, 1.5))
    assert run_segments(ran(world, "node-0")) == [(0, 0, 0.0, 4.0), (1, 0, 4.0, 8.0)]


SAVING: Fields = {"cpu_cores": 8.0, "runtime_s": 1.75 * HOUR, "deadline_s": 12 * HOUR,
               "save_every_s": 0.0, "save_s": 600.0, "startup_s": 60.0}  # fmt: skip
WAVES = [(0.0, 50.0, 50.0), (1800.0, 900.0, 50.0), (6 * HOUR, 60.0, 50.0),
         (7.25 * HOUR, 900.0, 50.0)]  # fmt: skip


@pytest.mark.parametrize(("jobs", "grids", "policy", "outage"), [
    pytest.param([SAVING], [WAVES], "planned-window+first-fit+pause-freely",
                 (0, 2900 / HOUR, 1.5), id="while-it-saves"),
    pytest.param([{"memory_bytes": 64 * GIB, "runtime_s": 9 * HOUR},
                  {"cpu_cores": 4.0, "runtime_s": 2 * HOUR}],
                 [[(0.0, 10.0, 50.0)], [(0.0, 900.0, 50.0)]], "run-now+first-fit",
                 (1, 1.1, 1.5), id="in-another-zone-than-planned"),
])  # fmt: skip
def test_the_plan_forgets_what_a_job_that_was_stopped_had_planned(
    jobs: list[Fields],
    grids: list[list[tuple[float, float, float]]],
    policy: str,
    outage: tuple[int, float, float],
) -> None:
    nodes: list[Fields] = [{"zone": 0}, {"zone": len(grids) - 1}]
    world = with_outages(make_world(jobs, nodes, grids, length_s=20 * HOUR), outage)
    cores = plan_left_by(world, policy_named(policy)).cores
    assert (cores >= -1e-6).all()
    assert (cores[:, 48:] <= 1e-6).all()


def plan_left_by(world: World, policy: Policy) -> Plan:
    """Return the plan as a run leaves it."""
    sleep = sleep_table(world, policy)
    estimates, plan = estimates_in(world, sleep), empty_plan(world)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        begins = Given(
            planned_jobs(world, estimates),
            world.precedence,
            estimates,
            idle_cluster(
                world.nodes, node_table(world.nodes), world.jobs.gpus, sleep, world.curve_watts
            ),
            forecast_of(world, in_slots=True),
            plan,
            run_config_of(world, policy),
            np.zeros(0),
            world.outages,
        )
        run(begins, rules_of(policy.when, policy.placing.rule, pause=policy.pause))
    return plan


def test_it_ends_where_a_node_never_comes_back_to_anybody() -> None:
    world = with_outages(make_world([{"runtime_s": HOUR}], [{}]), (0, 2.0, 9.0), (0, 20.0, 21.0))
    assert run_segments(ran(world)) == [(0, 0, 0.0, 1.0)]


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([
    "run-now", "carbon-time+sleep-at-once", "wait-awhile", "planned-window+cap-frugal+easy",
    "lowest-window+scale-freely+sjf",
]))  # fmt: skip
def test_whatever_fails_all_work_is_done_and_all_energy_is_reported(seed: int, policy: str) -> None:
    world = random_world(np.random.default_rng(seed))
    schedule = ran(world, policy)
    told = schedule.run_segments
    assert np.isfinite(schedule.end_s).all()
    away = schedule.outages
    for node, begin_s, end_s in zip(away.node, away.asleep_s, away.awake_s, strict=True):
        here = told.node == node
        assert not ((told.start_s < end_s) & (told.end_s > begin_s) & here).any()
    for job in range(world.jobs.arrival_s.size):
        mine = (told.job == job) & (told.worker == 0)
        assert (told.start_s[mine][1:] >= told.end_s[mine][:-1]).all()
    assert_all_energy_is_told(world, schedule, billed_until_s(world, schedule))


def random_world(dice: np.random.Generator) -> World:
    jobs = []
    for arrival_s in np.sort(dice.integers(0, 4, 7)) * 600.0:
        runtime_s = float(dice.integers(1, 9)) * 600.0
        jobs.append({
            "arrival_s": float(arrival_s), "runtime_s": runtime_s,
            "deadline_s": float(arrival_s) + runtime_s + float(dice.choice([0.0, 7200.0, np.inf])),
            "cpu_cores": float(dice.integers(1, 7)), "workers": float(dice.choice([1, 1, 2])),
            "save_every_s": float(dice.choice([0.0, 900.0, np.inf])),
            "startup_s": float(dice.choice([0.0, 60.0])), "save_s": float(dice.choice([0.0, 20.0])),
        })  # fmt: skip
        if jobs[-1]["workers"] == 1.0 and np.isfinite(jobs[-1]["save_every_s"]):
            jobs[-1]["scaling"] = float(dice.integers(0, 2))
    nodes = [{"cpu_capacity": 8.0, "sleep_w": 20.0, "wake_s": 60.0}] * 3
    world = make_world(jobs, nodes, scaling=np.array([[1.0, 1.0], [1.0, 1.8]]))
    spans = []
    for node in range(3):
        ends = np.sort(dice.uniform(0.0, 6.0, 2 * int(dice.integers(1, 4)))).tolist()
        spans += [(node, *each) for each in zip(ends[::2], ends[1::2], strict=True)]
    return with_outages(world, *spans)


def groups(*counts: int) -> list[NodeGroup]:
    told = {"cpu_cores": 8, "memory": "8Gi", "zone": "A", "hardware": "epyc-7763-1s",
            "failures": {"every": "10d", "repair": "1d"}}  # fmt: skip
    return [
        NodeGroup.model_validate({**told, "name": f"node-{number}", "count": count})
        for number, count in enumerate(counts)
    ]


def spans_of(outages: Outages, node: int) -> Sequence[tuple[float, float]]:
    mine = outages.at_s[outages.node == node]
    return list(zip(mine[::2].tolist(), mine[1::2].tolist(), strict=True))


def test_failures_are_as_frequent_and_as_long_as_was_said() -> None:
    day = 86_400.0
    drawn = outages_of(groups(20), seed=1, horizon_s=3000 * day)
    assert (np.diff(drawn.at_s) >= 0).all()
    spans = [span for node in range(20) for span in spans_of(drawn, node)]
    assert all(begin < end for begin, end in spans)
    assert len(spans) == pytest.approx(20 * 3000 / 11, rel=0.05)
    assert np.mean([end - begin for begin, end in spans]) == pytest.approx(day, rel=0.05)


def test_another_group_does_not_change_when_nodes_fail() -> None:
    one, two = (outages_of(groups(*each), 1, 1e7) for each in ((3,), (3, 2)))
    assert all(spans_of(one, node) == spans_of(two, node) for node in range(3))
    plain = [group.model_copy(update={"failures": None}) for group in groups(2)]
    assert outages_of(plain, 1, 1e7) is NO_OUTAGES
