"""What a watch shows of a day's work is recorded once, at its first sight."""

from __future__ import annotations

import msgspec

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.testing.small_worlds import make_world
from greensched_testbed.held_day.day import Day
from greensched_testbed.held_day.objects import ITEM
from greensched_testbed.held_day.watched_runs import Watched, WatchedRuns, late, placements_of
from greensched_testbed.operator_processes import FastClock

START_S = 1_700_000_000.0
TWO_SPEEDS = [{"speed": 2.0}, {"speed": 0.5}]


class SteppedDay(Day):
    """A day whose time is set by the test."""

    def now_s(self) -> float:
        return NOW_S[0]


NOW_S = [0.0]


def day_of(*jobs: dict[str, float]) -> Day:
    world = make_world(list(jobs), TWO_SPEEDS)
    return SteppedDay(world, FastClock(60.0, 0.0, START_S), "day")


def seen(
    log: WatchedRuns, at_s: float, name: str, node: str = "", phase: str = "", **marks: str
) -> None:
    """Show an object of job 0 to the log at a time of the day."""
    NOW_S[0] = at_s
    annotations = {f"{labels.GROUP}/{key.replace('_', '-')}": text for key, text in marks.items()}
    meta = {"name": name, "labels": {ITEM: "0"}, "annotations": annotations}
    body = {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase}}
    log.upsert(msgspec.convert(body, Watched))


def test_a_gang_has_started_with_its_last_pod_and_ended_with_its_last() -> None:
    log = WatchedRuns(day_of({"workers": 2.0}))
    seen(log, 10.0, "gang-0-0", "node-0-0")
    assert log.runs[0].started_s is None
    seen(log, 30.0, "gang-0-1", "node-1-0")
    seen(log, 50.0, "gang-0-0", "node-0-0", "Succeeded")
    assert log.open == {0}
    seen(log, 60.0, "gang-0-1", "node-1-0", "Succeeded")
    assert [log.runs[0].started_s, log.runs[0].ended_s] == [30.0, 60.0]
    assert log.open == set()


def test_each_pod_is_billed_on_its_own_node() -> None:
    day = day_of({"workers": 2.0, "cpu_cores": 3.0})
    log = WatchedRuns(day)
    for worker, (node, end_s) in enumerate((("node-1-0", 40.0), ("node-0-0", 80.0))):
        seen(log, 10.0, f"gang-0-{worker}", node)
        seen(log, end_s, f"gang-0-{worker}", node, "Succeeded")
    placed = placements_of(day, log.runs)
    assert placed.node.tolist() == [1, 0]
    assert placed.end_s.tolist() == [40.0, 80.0]
    assert placed.cpu_cores.tolist() == [3.0, 3.0]


def test_a_pod_that_got_a_node_waits_for_its_runtime_once() -> None:
    log = WatchedRuns(day_of({}))
    seen(log, 10.0, "job-0-x")
    seen(log, 20.0, "job-0-x", "node-1-0")
    seen(log, 21.0, "job-0-x", "node-1-0", "Running")
    bound = log.bound.get_nowait()
    assert (bound.name, bound.slowest, bound.started_s) == ("job-0-x", 1, 20.0)
    assert log.bound.empty()


def test_a_gang_runs_from_its_last_start_on_at_the_pace_of_its_slowest_node() -> None:
    log = WatchedRuns(day_of({"workers": 2.0}))
    seen(log, 10.0, "gang-0-0", "node-1-0")
    assert log.bound.empty()
    seen(log, 30.0, "gang-0-1", "node-0-0")
    bound = [log.bound.get_nowait() for _ in range(2)]
    assert [(pod.name, pod.slowest, pod.started_s) for pod in bound] == [
        ("gang-0-0", 1, 30.0), ("gang-0-1", 1, 30.0)
    ]  # fmt: skip


def test_the_latest_start_is_remembered_although_a_release_removes_it() -> None:
    log = WatchedRuns(day_of({}))
    later = format_timestamp(START_S + 500.0)
    seen(log, 1.0, "job-0", latest_start=later)
    seen(log, 2.0, "job-0", release_reason="planned-start", planned_start=later)
    run = log.runs[0]
    assert (run.latest_s, run.released_s, run.planned_s) == (500.0, 2.0, 500.0)


def test_a_job_is_late_a_wall_second_after_its_deadline() -> None:
    day = day_of({"deadline_s": 100.0})
    log = WatchedRuns(day)
    seen(log, 10.0, "job-0-x", "node-0-0")
    seen(log, 100.0 + 60.0, "job-0-x", "node-0-0", "Succeeded")
    assert list(late(day, log.runs)) == []
    log.runs[0].pods["job-0-x"].ended_s = 100.0 + 61.0
    assert list(late(day, log.runs)) == [log.runs[0]]


def test_what_the_first_plan_told_of_a_run_on_arrival_is_kept() -> None:
    log = WatchedRuns(day_of({}))
    seen(log, 1.0, "job-0", decision='{"carbonGramsPerKwh":[90.0,120.0]}')
    seen(log, 2.0, "job-0", decision='{"carbonGramsPerKwh":[80.0,110.0]}')
    assert log.runs[0].arrival_g_per_kwh == 120.0
