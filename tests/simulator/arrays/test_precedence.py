"""Jobs that wait for others: tasks of a directed acyclic graph run in its order, and in time."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.arrays.precedence import latest_ends_s, precedence_of, whole_jobs
from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.limits import limits_of
from greensched_simulator.policy import QUEUES, policy_named
from greensched_simulator.results.recorded_rows import decision_rows
from greensched_simulator.runs.job_times import ready_from_s, waits_s
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
# First 0, then 1 and 2 beside each other, then 3.
DIAMOND = {1: [0], 2: [0], 3: [1, 2]}
RUNTIMES = [{"runtime_s": hours * HOUR} for hours in (1.0, 2.0, 3.0, 1.0)]


def ran(world: World, policy: str = "run-now") -> Schedule:
    return simulate(world, policy_named(policy))


@pytest.mark.parametrize("queue", QUEUES)
def test_a_job_starts_when_all_that_it_waits_for_have_ended(queue: str) -> None:
    world = make_world(RUNTIMES, after=DIAMOND)
    schedule = ran(world, f"run-now+{queue}")
    assert (schedule.start_s / HOUR).tolist() == [0.0, 1.0, 1.0, 4.0]
    assert (ready_from_s(world, schedule) / HOUR).tolist() == [0.0, 1.0, 1.0, 4.0]


def test_waiting_for_others_is_no_wait_for_the_cluster() -> None:
    """There is room for one at a time: the third waits for the second's two hours."""
    world = make_world([job | {"cpu_cores": 10.0} for job in RUNTIMES], after=DIAMOND)
    schedule = ran(world)
    assert (schedule.start_s / HOUR).tolist() == [0.0, 1.0, 3.0, 6.0]
    assert (waits_s(world, schedule) / HOUR).tolist() == [0.0, 0.0, 2.0, 0.0]
    outcome = outcome_of(world, schedule, bill_of(world, schedule, 7 * HOUR), 7 * HOUR)
    assert outcome.slowdown_mean == pytest.approx((1 + 1 + 5 / 3 + 1) / 4)


def test_who_arrives_after_all_before_it_have_ended_starts_on_arrival() -> None:
    jobs = [{"runtime_s": HOUR}, {"arrival_s": 2 * HOUR}, {"arrival_s": 2 * HOUR + 1.0}]
    assert ran(make_world(jobs, after={1: [0], 2: [0]})).start_s.tolist() == [
        0.0, 2 * HOUR, 2 * HOUR + 1.0,
    ]  # fmt: skip


def test_the_first_stage_waits_no_longer_than_leaves_time_for_the_others() -> None:
    """Dirty for eight hours, clean after; four hours of work are due after seven."""
    grid = [(0.0, 500.0, 50.0), (2 * HOUR, 400.0, 50.0), (8 * HOUR, 100.0, 50.0)]
    chain = [{"runtime_s": HOUR, "deadline_s": 7 * HOUR} for _ in range(4)]
    world = make_world(chain, grids=[grid], after={job: [job - 1] for job in (1, 2, 3)})
    schedule = ran(world, "lowest-window")
    assert (schedule.start_s / HOUR).tolist() == [2.0, 3.0, 4.0, 5.0]
    alone = ran(make_world(chain[:1], grids=[grid]), "lowest-window")
    assert alone.start_s.tolist() == [2 * HOUR]


def test_each_stage_may_be_put_off_by_what_is_left_of_the_slack() -> None:
    """Two hours of work due after six: clean are the third hour and the sixth."""
    grid = [(hour * HOUR, 100.0 if hour in (2, 5) else 500.0, 50.0) for hour in range(8)]
    chain = [{"runtime_s": HOUR, "deadline_s": 6 * HOUR}] * 2
    world = make_world(chain, grids=[grid], after={1: [0]})
    assert (ran(world, "lowest-window").start_s / HOUR).tolist() == [2.0, 5.0]


def test_who_waits_for_a_rejected_job_never_runs_and_is_charged() -> None:
    jobs = [{"runtime_s": 9 * HOUR}, {}, {}, {"arrival_s": 60.0}]
    world = make_world(jobs, after={1: [0], 2: [1]})
    schedule = ran(world, "reject-long")
    assert schedule.node.tolist() == [-1, -1, -1, 0]
    assert np.isnan(schedule.planned_s).tolist() == [True, True, True, False]
    until_s = billed_until_s(world, schedule)
    outcome = outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
    assert outcome.jobs_never_ran == 3
    rows = [row for table in decision_rows(world, policy_named("reject-long"), schedule, until_s)
            for row in table.to_pylist()]  # fmt: skip
    assert [row["job"] for row in rows if row["decision"] == "reject"] == ["job-0"]


def test_whom_nobody_let_begin_is_served_no_better_than_who_ran() -> None:
    jobs = [{"runtime_s": 60.0}, *[{"runtime_s": 60.0, "cpu_cores": 10.0}] * 50]
    world = make_world(jobs, after={job: [0] for job in range(1, 51)})
    until_s = 2 * HOUR

    def told(policy: str) -> Outcome:
        schedule = ran(world, policy)
        return outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)

    ran_all, ran_none = told("run-now"), told("reject-all")
    assert ran_none.wait_mean_s > ran_all.wait_mean_s
    assert ran_none.slowdown_p95 > ran_all.slowdown_p95


def test_a_bound_knows_that_nothing_starts_before_what_it_waits_for_could_end() -> None:
    """Clean is the first hour only, in which the second job cannot run."""
    grid = [(0.0, 100.0, 50.0), (HOUR, 500.0, 50.0)]
    jobs = [{"deadline_s": 4 * HOUR}] * 2
    tied = make_world(jobs, grids=[grid], after={1: [0]})
    schedule = ran(tied)
    bill, limits = bill_of(tied, schedule, 4 * HOUR), limits_of(tied, schedule)
    bound = least_bill(tied, "carbon", 4 * HOUR, limits)
    total_g = bill.carbon_active_g.sum() + bill.carbon_idle_g.sum()
    assert bound.total == pytest.approx(total_g)
    free = make_world(jobs, grids=[grid])
    assert least_bill(free, "carbon", 4 * HOUR, limits).total < bound.total


@given(
    after=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=8),
    hours=st.lists(st.integers(1, 5), min_size=8, max_size=8),
)
def test_who_ends_by_the_latest_times_leaves_time_for_all_behind(
    after: list[set[int]], hours: list[int]
) -> None:
    tied = precedence_of([sorted(each & set(range(job))) for job, each in enumerate(after)])
    count = len(after)
    runtime_s, deadline_s = np.array(hours[:count], float), np.full(count, 100.0)
    whole = whole_jobs(tied, np.zeros(count), runtime_s)
    assert (whole.runtime_s >= runtime_s).all()
    if tied.child.size == 0:
        return
    latest_s = latest_ends_s(tied, deadline_s, runtime_s)
    for job in range(count):
        for child in tied.child[tied.first_child[job] : tied.first_child[job + 1]]:
            assert latest_s[job] <= latest_s[child] - runtime_s[child]
            assert whole.runtime_s[job] == whole.runtime_s[child] >= runtime_s[job]
    assert (latest_s >= deadline_s - whole.runtime_s + runtime_s).all()


SCENARIO = {
    "name": "graphs", "start": "2023-06-01T00:00:00Z", "length": "1d",
    "cluster": {"nodes": [{"name": "node", "count": 3, "hardware": "epyc-7763-1s", "cpu_cores": 8,
                           "memory": "64Gi", "zone": "A"}]},
    "grids": {"A": {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
}  # fmt: skip
PLAIN = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus,after\n"


def drawn(workload: object, folder: Path = Path()) -> World:
    return build_world(parse_scenario(SCENARIO | {"workload": workload}, folder))


def test_the_last_graph_ends_where_no_job_is_left_for_its_stages() -> None:
    world = drawn({"generator": {"jobs": 4, "cpu_cores": [1], "stages": [3]}})
    assert np.unique(world.jobs.arrival_s).size == 2, "three in a graph, and one that is cut off"


def test_made_up_stages_wait_for_all_tasks_of_the_one_before_and_are_due_together() -> None:
    generator = {"jobs": 9, "cpu_cores": [1], "stages": [3], "stage_tasks": [2]}
    world = drawn({"generator": generator, "slack": "2h"})
    jobs, tied = world.jobs, world.precedence
    assert tied.parents.tolist() == [0, 0, 2, 2, 2, 2, 0, 0, 2]
    assert np.unique(jobs.arrival_s[:6]).size == 1
    assert np.unique(jobs.deadline_s[:6]).size == 1
    longest_s = jobs.runtime_s[:6].reshape(3, 2).max(axis=1).sum()
    assert jobs.deadline_s[0] == pytest.approx(jobs.arrival_s[0] + longest_s + 2 * HOUR)
    assert "5 of 9 jobs wait for others to end" in world.notes


def test_the_tasks_of_a_single_stage_arrive_together_and_wait_for_nobody() -> None:
    world = drawn({"generator": {"jobs": 8, "cpu_cores": [1], "stage_tasks": [4]}})
    assert np.unique(world.jobs.arrival_s).size == 2
    assert world.precedence.child.size == 0


def test_made_up_grids_last_until_the_longest_graph_can_have_ended() -> None:
    generator = {"jobs": 60, "cpu_cores": [1], "stages": [60], "runtime_median": "23h"}
    grids = {"A": {"carbon": {"shape": "solar"}, "price": {"constant": 1, "unit": "EUR/MWh"}}}
    told = SCENARIO | {"workload": {"generator": generator}, "grids": grids}
    world = build_world(parse_scenario(told))
    schedule = ran(world)
    assert np.isfinite(
        bill_of(world, schedule, billed_until_s(world, schedule)).carbon_active_g
    ).all()


def test_a_trace_tells_who_waits_for_whom(tmp_path: Path) -> None:
    rows = ["last,0,60,1,10,0,left|right", "left,0,60,1,10,0,first", "right,0,60,1,10,0,first",
            "first,0,60,1,10,0,", "alone,5,60,1,10,0,"]  # fmt: skip
    (tmp_path / "trace.csv").write_text(PLAIN + "\n".join(rows))
    world = drawn({"trace": {"file": "trace.csv"}}, tmp_path)
    assert world.job_names == ("first", "left", "right", "last", "alone")
    assert ran(world).start_s.tolist() == [0.0, 60.0, 60.0, 120.0, 5.0]


@pytest.mark.parametrize(("rows", "told"), [
    pytest.param(["a,0,60,1,10,0,b"], "row 2: waits for 'b', which is not in",
                 id="unknown"),
    pytest.param(["a,0,60,1,10,0,b", "b,9,60,1,10,0,"], "row 2: arrives before 'b'", id="early"),
    pytest.param(["a,0,60,1,10,0,b", "b,0,60,1,10,0,a"], "row 2: waits for itself", id="circle"),
    pytest.param(["a,0,60,1,10,0,a"], "waits for itself: 'a' after 'a'", id="itself"),
    pytest.param(["a,0,-1,1,10,0,", "b,0,60,1,10,0,a"], "row 3: waits for 'a'", id="faulty"),
])  # fmt: skip
def test_whom_nobody_can_wait_for_is_reported_by_row(
    rows: list[str], told: str, tmp_path: Path
) -> None:
    (tmp_path / "trace.csv").write_text(PLAIN + "\n".join(rows))
    with pytest.raises(BadInput, match=told):
        drawn({"trace": {"file": "trace.csv"}}, tmp_path)


def test_who_waits_for_a_faulty_task_goes_with_it_and_all_others_stay(tmp_path: Path) -> None:
    rows = ["a,0,-1,1,10,0,", "b,0,60,1,10,0,a", "c,0,60,1,10,0,b", "d,0,60,1,10,0,"]
    (tmp_path / "trace.csv").write_text(PLAIN + "\n".join(rows))
    world = drawn({"trace": {"file": "trace.csv", "skip_faulty": True}}, tmp_path)
    assert world.job_names == ("d",)


def test_a_sample_draws_whole_graphs_and_what_finds_no_node_takes_its_children_along(
    tmp_path: Path,
) -> None:
    rows = [
        row
        for job in range(20)
        for row in (f"a{job},{job},60,1,10,0,", f"b{job},{job},60,{8 + job % 2},10,0,a{job}",
                    f"c{job},{job},60,1,10,0,b{job}")
    ]  # fmt: skip
    (tmp_path / "trace.csv").write_text(PLAIN + "\n".join(rows))
    trace = {"file": "trace.csv", "sample": 4, "repeat": 2}
    world = drawn({"trace": trace, "skip_unplaceable": True}, tmp_path)
    jobs = {name[1:].split("-")[0] for name in world.job_names}
    assert len(jobs) == 4
    whole = {name for name in world.job_names if name.startswith("c")}
    assert len(whole) == 2 * sum(int(job) % 2 == 0 for job in jobs)
    assert int((world.precedence.parents > 0).sum()) == 2 * len(whole)
