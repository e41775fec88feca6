"""Deadlines and estimates from the rows of a trace, and the runs that follow them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.formats.workload import as_pods, compressed
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
HEADER = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus,deadline_s,estimate_s\n"
NODE = {"name": "node", "count": 1, "curve_watts": [100.0 + 10.0 * step for step in range(11)],
        "cpu_cores": 4, "memory": "64Gi", "zone": "A", "pue": 1.0}  # fmt: skip
GRID = {"carbon": {"constant": 300}, "price": {"constant": 50, "unit": "EUR/MWh"}}


def written(folder: Path, rows: str, header: str = HEADER) -> Path:
    path = folder / "jobs.csv"
    path.write_text(header + rows)
    return path


def world(folder: Path, rows: str, header: str = HEADER, **changes: Any) -> World:
    """Return a day of a node of four cores with the jobs of a trace."""
    written(folder, rows, header)
    options = {name: changes.pop(name) for name in ("repeat", "sample") if name in changes}
    grid = changes.pop("grid", GRID)
    scenario = {
        "name": "told", "start": "2023-06-01T00:00:00Z", "length": "1d", "grids": {"A": grid},
        "cluster": {"nodes": [NODE]},
        "workload": {"trace": {"file": "jobs.csv"} | options} | changes,
    }  # fmt: skip
    return build_world(parse_scenario(scenario, folder))


def ran(built: World, policy: str) -> Schedule:
    return simulate(built, policy_named(policy))


def test_a_deadline_and_an_estimate_are_read_where_a_row_has_them(tmp_path: Path) -> None:
    rows = "a,10,60,1,1,0,100.5,30\nb,10,60,1,1,0,,\nc,10,60,1,1,0, 10 ,315360000\n"
    tasks = load_trace(written(tmp_path, rows)).tasks
    assert [task.deadline_s for task in tasks] == [100.5, None, 10.0]
    assert [task.estimate_s for task in tasks] == [30.0, None, 315_360_000.0]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        pytest.param("9.5,", "deadline_s is 9.5, before its arrival_s, 10", id="before-arrival"),
        pytest.param("-1,", "deadline_s is -1, before its arrival_s, 10", id="negative"),
        pytest.param("never,", "deadline_s 'never' is not a number", id="word"),
        pytest.param("inf,", "deadline_s 'inf' is not a number", id="infinite"),
        pytest.param("315360011,", "deadline_s is 315360011, more than ten years after its arrival",
                     id="of-another-clock"),
        pytest.param(",315360001", "estimate_s is 315360001, more than ten years", id="too-long"),
        pytest.param(",0", "estimate_s is 0, not above 0", id="no-estimate"),
        pytest.param(",-60", "estimate_s is -60, not above 0", id="negative-estimate"),
        pytest.param(",long", "estimate_s 'long' is not a number", id="estimate-word"),
    ],
)  # fmt: skip
def test_a_row_at_fault_is_reported_with_its_number(
    tmp_path: Path, cells: str, reason: str
) -> None:
    path = written(tmp_path, f"a,10,60,1,1,0,70,60\nb,10,60,1,1,0,{cells}\n")
    with pytest.raises(BadInput, match="1 fault;") as told:
        load_trace(path)
    assert f"row 3: {reason}" in str(told.value)
    assert [task.name for task in load_trace(path, skip_faulty=True).tasks] == ["a"]


def test_they_go_before_slack_and_error_and_all_other_rows_are_as_without_them(
    tmp_path: Path,
) -> None:
    rows = "a,100,60,1,1,0,{0}\nb,160,60,1,1,0,,\nc,200,60,1,1,0,{1}\n"
    rules: dict[str, Any] = {"slack": "1h", "estimate_error": 0.5}
    own = world(tmp_path, rows.format("400,30", "210,"), **rules)
    none = world(tmp_path, rows.format(",", ","), **rules)
    assert own.jobs.deadline_s.tolist() == [300.0, 60 + 60 + HOUR, 110.0]
    assert none.jobs.deadline_s.tolist() == [60 + HOUR, 60 + 60 + HOUR, 100 + 60 + HOUR]
    assert own.jobs.estimate_s.tolist() == [30.0, *none.jobs.estimate_s[1:].tolist()]
    assert "2 of 3 jobs have their deadline from the trace" in own.notes
    assert not any("deadline" in note for note in none.notes)


def test_the_requested_time_of_swf_is_an_estimate_without_an_error(tmp_path: Path) -> None:
    (tmp_path / "jobs.swf").write_text("1 0 0 60 1 -1 -1 1 90 -1 1 1 1 -1 0 -1 -1 -1\n")
    built = world(tmp_path, "x,0,1,1,1,0,,\n")
    scenario = {"trace": {"file": "jobs.swf"}, "estimate_error": 0.5}
    content = {
        "name": "swf", "start": "2023-06-01T00:00:00Z", "length": "1d", "grids": {"A": GRID},
        "cluster": {"nodes": [NODE]}, "workload": scenario,
    }  # fmt: skip
    assert built.jobs.estimate_s.tolist() == [1.0]
    assert build_world(parse_scenario(content, tmp_path)).jobs.estimate_s.tolist() == [90.0]


ROWS = "a,100,60,1,1,0,400,30\nb,160,60,1,1,0,260,\n"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"load": 0.01}, id="pressed-to-a-load"),
        pytest.param({"load": 0.9}, id="or-together"),
        pytest.param({"repeat": 3}, id="repeated"),
    ],
)
def test_a_deadline_keeps_its_distance_from_the_arrival(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    jobs = world(tmp_path, ROWS, **changes).jobs
    rounds = changes.get("repeat", 1)
    assert (jobs.deadline_s - jobs.arrival_s).tolist() == pytest.approx([300.0, 100.0] * rounds)
    assert jobs.runtime_s.tolist() == [60.0, 60.0] * rounds


def test_a_deadline_is_that_of_its_row_alone(tmp_path: Path) -> None:
    header = HEADER.replace("estimate_s", "after")
    rows = "a,0,60,1,1,0,500,\nb,0,60,1,1,0,,a\nc,0,60,1,1,0,1000,b\n"
    jobs = world(tmp_path, rows, header, slack="1h").jobs
    assert jobs.deadline_s.tolist() == [500.0, 3 * 60 + HOUR, 1000.0]


def test_who_scales_all_times_scales_deadlines_and_who_plays_pods_drops_them(
    tmp_path: Path,
) -> None:
    trace = load_trace(written(tmp_path, ROWS))
    assert [task.deadline_s for task in compressed(trace, 30.0).trace.tasks] == [150.0, 80.0]
    pods = as_pods(trace)
    assert {task.deadline_s for task in pods.tasks} == {None}
    assert "2 tasks have a deadline, which is ignored here" in pods.notes


def test_the_deadline_of_the_file_is_the_one_that_is_met_or_missed(tmp_path: Path) -> None:
    """Each takes the whole node for an hour, so that they end after 1, 2 and 3 hours."""
    due = {"a": 3600, "b": 7199, "c": 10_800}
    rows = "".join(f"{name},0,3600,4,1,0,{by},\n" for name, by in due.items())
    built = world(tmp_path, rows, slack="none")
    schedule = ran(built, "run-now+spread")
    assert schedule.end_s.tolist() == [HOUR, 2 * HOUR, 3 * HOUR]
    until_s = 24 * HOUR
    outcome = outcome_of(built, schedule, bill_of(built, schedule, until_s), until_s)
    assert (outcome.deadlines, outcome.deadlines_met) == (3, 2)


def test_a_deadline_that_no_runtime_meets_is_none_and_the_job_is_late(tmp_path: Path) -> None:
    built = world(tmp_path, "a,0,3600,4,1,0,0,\n")
    schedule = ran(built, "lowest-window+spread")
    assert schedule.end_s.tolist() == [HOUR]
    outcome = outcome_of(built, schedule, bill_of(built, schedule, 2 * HOUR), 2 * HOUR)
    assert (outcome.deadlines, outcome.deadlines_met) == (1, 0)


@pytest.mark.parametrize(
    ("estimate", "start_h"),
    [
        pytest.param("", 4, id="all-five-clean-hours"),
        pytest.param("7200", 4, id="the-first-clean-hours-of-two"),
        pytest.param("28800", 2, id="by-the-deadline-less-the-estimate"),
    ],
)
def test_a_plan_reckons_with_the_estimate_of_the_file(
    tmp_path: Path, estimate: str, start_h: int
) -> None:
    """Clean are the hours from 4 on, and all must have ended by 10; it runs for five hours."""
    hours = [f"2023-06-01T{hour:02}:00:00Z,{500 if hour < 4 else 100}" for hour in range(24)]
    text = "\n".join(["time,value", *hours, "2023-06-02T00:00:00Z,100"])
    (tmp_path / "grid.csv").write_text(text)
    carbon = {"file": "grid.csv", "time_column": "time", "column": "value"}
    rows = f"a,0,18000,4,1,0,36000,{estimate}\n"
    built = world(tmp_path, rows, grid=GRID | {"carbon": carbon})
    schedule = ran(built, "lowest-window+spread")
    assert (schedule.planned_s / HOUR).tolist() == [start_h]
    assert (schedule.end_s - schedule.start_s).tolist() == [5 * HOUR]


def test_synthetic_jobs_have_neither(tmp_path: Path) -> None:
    written(tmp_path, "")
    content = {
        "name": "made-up", "start": "2023-06-01T00:00:00Z", "length": "1d", "grids": {"A": GRID},
        "cluster": {"nodes": [NODE]}, "workload": {"generator": {"jobs": 9, "cpu_cores": [1]}},
    }  # fmt: skip
    jobs = build_world(parse_scenario(content)).jobs
    assert jobs.estimate_s.tolist() == jobs.runtime_s.tolist()
    assert np.unique(jobs.deadline_s).tolist() == [math.inf]
