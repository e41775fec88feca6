"""Which of the demo's work may wait, and what is counted and told of what was held."""

import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.formats.synthetic import synthetic_trace
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_simulator.formats.workload import Task, Trace
from greensched_testbed.demo.holding import (
    HoldingLog,
    Pod,
    PodMetadata,
    deadlines_missed,
    holding_of,
    mean_carbon_g_per_kwh,
    time_of_day,
)
from greensched_testbed.demo.waiting import WAIT_S, with_deadlines, zones_of_data
from greensched_testbed.replay import Replay, ReplayedPod

HOUR_S = 3600.0
RATE = 720.0
GRID = {"A": [SyntheticSlot(0.0, 400.0, 50.0), SyntheticSlot(2 * HOUR_S, 100.0, 50.0)]}
STARTS_S = 1_000_000.0  # on the operator's clock


def watched(name: str, **said: str) -> Pod:
    written = {f"{labels.GROUP}/{key.replace('_', '-')}": text for key, text in said.items()}
    return Pod(PodMetadata(name, written))


def at(hours: float) -> str:
    return format_timestamp(STARTS_S + hours * HOUR_S)


def test_every_second_task_with_gpus_and_every_third_without_may_wait_where_its_data_is() -> None:
    trace = with_deadlines(synthetic_trace(30, 6 * HOUR_S, seed=1), RATE)
    with_gpus = [task.name for task in trace.tasks if task.gpus]
    others = [task.name for task in trace.tasks if not task.gpus]
    waiting = [task.name for task in trace.tasks if task.deadline_s is not None]
    assert sorted(waiting) == sorted(with_gpus[::2] + others[::3])
    assert zones_of_data(trace) == dict.fromkeys(waiting, "DEMO-SOLAR")


def test_a_deadline_leaves_six_hours_beside_the_runtime_and_three_real_seconds() -> None:
    trace = with_deadlines(Trace((Task("t", 10.0, HOUR_S, 1, 1),), "test"), RATE)
    assert trace.tasks[0].deadline_s == pytest.approx(10.0 + HOUR_S + 3 * RATE + WAIT_S)


@pytest.mark.parametrize(("at_s", "text"), [
    pytest.param(0.0, "06:00", id="it-begins-at-six"),
    pytest.param(5.5 * HOUR_S, "11:30", id="half-past"),
    pytest.param(18 * HOUR_S, "00:00 +1 d", id="the-next-day"),
])  # fmt: skip
def test_times_are_reported_as_those_of_the_workloads_day(at_s: float, text: str) -> None:
    assert time_of_day(at_s) == text


def test_what_is_held_and_released_is_reported_as_it_happens_and_counted_by_the_hour() -> None:
    told: list[str] = []
    workload, wall = ManualClock(60.0), ManualClock(5.0)
    log = HoldingLog(wall, STARTS_S, workload.now, told.append)
    log.upsert(watched("plain"))
    log.upsert(watched("a", held_at=at(0)))
    log.upsert(watched("a", held_at=at(0), planned_start=at(5)))
    assert told == ["06:01  held a until 11:00"]
    workload.advance(HOUR_S)
    log.upsert(watched("b", held_at=at(1), planned_start=at(4)))
    assert told[1:] == [
        "07:01  held b until 10:00",
        "07:01  held 2 (until 10:00 to 11:00), released 0",
    ]
    released = watched("a", held_at=at(0), released_at=at(5), release_reason="planned-start")
    log.upsert(released)
    log.upsert(released)
    assert told[3:] == ["07:01  released a, by planned-start"]
    assert set(log.marks) == {"a", "b"}
    workload.advance(HOUR_S)
    log.upsert(watched("b", held_at=at(1), planned_start=at(4), released_at=at(4)))
    assert told[-1] == "08:01  held 0, released 2"
    assert log.marks["a"].released_wall_s == 5.0


def test_what_found_no_better_hour_is_not_called_held() -> None:
    told: list[str] = []
    log = HoldingLog(ManualClock(2.0), STARTS_S, lambda: 2 * HOUR_S, told.append)
    task = Task("a", 0.0, 60.0, 1, 1, deadline_s=HOUR_S)
    log.upsert(watched("a", held_at=at(0), released_at=at(0), release_reason="now-is-best"))
    record = Replay((run_of(task, bound=2.0),), 0.0, 9.0, 0.01, False)
    holding = holding_of(record, log.marks, {"n": "A"}, GRID, 0.01)
    assert (told, holding.may_wait, holding.pods, holding.started_for) == ([], 1, (), {})


def run_of(task: Task, *, created: float = 0.0, bound: float | None) -> ReplayedPod:
    return ReplayedPod(task, created, bound, "n" if bound is not None else "")


@pytest.mark.parametrize(("bound", "missed"), [
    pytest.param(4.0, 0, id="just-in-time"),
    pytest.param(4.1, 1, id="a-little-late"),
    pytest.param(None, 1, id="never-started"),
])  # fmt: skip
def test_a_deadline_counts_from_the_creation(bound: float | None, missed: int) -> None:
    task = Task("t", 100.0, 200.0, 1, 1, deadline_s=600.0)  # 500 s after its arrival
    runs = [run_of(task, created=1.0, bound=bound), run_of(Task("u", 0, 1, 1, 1), bound=None)]
    assert deadlines_missed(runs, factor=0.01) == missed


def test_work_that_its_releaser_freed_started_at_its_latest_start_too() -> None:
    tasks = [Task(name, 0.0, 60.0, 1, 1, deadline_s=HOUR_S) for name in "abc"]
    record = Replay(tuple(run_of(task, bound=2.0) for task in tasks), 0.0, 9.0, 0.01, False)
    log = HoldingLog(ManualClock(2.0), STARTS_S, lambda: 0.0, lambda _: None)
    for task, reason in zip(tasks, ("planned-start", "latest-start", "releaser"), strict=True):
        log.upsert(watched(task.name, held_at=at(0), planned_start=at(1), released_at=at(1),
                           release_reason=reason))  # fmt: skip
    holding = holding_of(record, log.marks, {"n": "A"}, GRID, 0.01)
    assert (holding.may_wait, len(holding.pods), holding.at_latest_start) == (3, 3, 2)
    assert holding.wait_mean_s == holding.wait_longest_s == 200.0
    assert holding.deadlines_missed == 0


@pytest.mark.parametrize(("begin_h", "hours", "mean"), [
    pytest.param(0.0, 1.0, 400.0, id="within-a-slot"),
    pytest.param(1.0, 4.0, 175.0, id="a-quarter-in-the-first"),
    pytest.param(90.0, 1.0, 100.0, id="the-last-slot-holds-on"),
    pytest.param(2.0, 0.0, 100.0, id="no-length-at-a-boundary"),
])  # fmt: skip
def test_the_grid_behind_a_run_is_its_mean_over_time(
    begin_h: float, hours: float, mean: float
) -> None:
    assert mean_carbon_g_per_kwh(GRID["A"], begin_h * HOUR_S, hours * HOUR_S) == mean


def test_the_grid_behind_a_held_pod_is_reported_beside_that_of_its_arrival() -> None:
    task = Task("a", 0.0, HOUR_S, 1, 1, deadline_s=9 * HOUR_S)
    log = HoldingLog(ManualClock(2.0), STARTS_S, lambda: 0.0, lambda _: None)
    log.upsert(watched("a", held_at=at(0), planned_start=at(2), released_at=at(2)))
    record = Replay((run_of(task, bound=72.0),), 0.0, 99.0, 0.01, False)
    holding = holding_of(record, log.marks, {"n": "A"}, GRID, 0.01)
    assert (holding.carbon_g_per_kwh, holding.at_once_carbon_g_per_kwh) == (100.0, 400.0)
