"""Completion times, utilisation and the time of decisions, as tables and folders tell them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from greensched_simulator.policy import policies_named, policy_named
from greensched_simulator.results.comparison import compare
from greensched_simulator.results.completion_tables import (
    completion_lines,
    completion_rows,
    decision_lines,
)
from greensched_simulator.results.run_folder import FinishedRun, RecordedRun, RunFolder, read_run
from greensched_simulator.world.scenario_loading import load_scenario

Finished = Callable[..., FinishedRun]
TWO = {"spread": (0.0, 600.0), "carbon-time": (3600.0, 7200.0)}


def test_a_comparison_tells_how_long_jobs_took_and_how_full_the_cluster_was(
    finished: Finished,
) -> None:
    """An hour of 4 cores and half an hour of 8, of 16 cores for 3 h; at the start all 12 run."""
    head, spread, late = completion_rows(finished(TWO, seeds=(1, 2)).results)
    assert head == (
        "policy", "planned\nlater, %", "completion\ntime, h", "median", "95 %", "99 %",
        "makespan,\nh", "jobs/h", "CPU,\n%", "peak", "memory,\n%", "peak",
    )  # fmt: skip
    assert spread == (
        "run-now+spread", "0.00", "0.75", "0.75", "0.97", "0.99", "1.00", "2.00", "16.7",
        "75.0", "1.56", "6.25",
    )  # fmt: skip
    # The second job waits from 600 s to 7200 s: completion times of 2 h and 2 h 20 min.
    assert late[:8] == ("carbon-time", "100", "2.17", "2.17", "2.32", "2.33", "2.50", "0.80")


def test_gpus_have_lines_if_any_was_used(finished: Finished) -> None:
    outcome = finished({"spread": (0.0, 600.0)}).results.outcomes[policy_named("spread")][0]
    names = [str(name) for name, _ in completion_lines(outcome)]
    assert names[:6] == [
        "completion time, h: mean", "  median", "  95th percentile", "  99th percentile",
        "makespan, h", "throughput, jobs/h",
    ]  # fmt: skip
    assert "GPUs requested, %: mean" not in names
    with_gpus: Any = vars(outcome) | {"gpu_utilisation_mean": 0.25, "gpu_utilisation_peak": 1.0}
    assert ("GPUs requested, %: mean", "25.00") in completion_lines(type(outcome)(**with_gpus))


def test_the_seconds_of_a_decision_are_in_the_summary_and_in_no_row(
    small_file: Path, tmp_path: Path
) -> None:
    scenario, policies = load_scenario(small_file), policies_named("run-now+spread, lowest-window")
    run = RecordedRun(
        scenario, small_file, policies, policies[0], (1, 2), (), "2026-01-01T00:00:00Z"
    )
    with RunFolder(tmp_path / "timed", run) as folder:
        for done in compare(scenario, policies, (1, 2), lambda policy, seed: None):
            assert all(0.0 < each < 60.0 for each in done.engine_s)
            folder.add(done)
        finished = folder.finish()
    told = json.loads((finished.folder / "run.json").read_text())["decisions"]
    # With each of two seeds, both jobs are placed; the grid is constant, so none is delayed.
    assert {name: each["count"] for name, each in told.items()} == {
        policy.name: 4 for policy in policies
    }
    results = read_run(finished.folder).results
    assert results.decision_s == {policy: told[policy.name]["seconds_each"] for policy in policies}
    assert completion_rows(results)[0][-1] == "a decision,\nµs"
    assert [name for name, _ in decision_lines(results, policies[0])] == ["a decision, µs"]
    header = (finished.folder / "outcomes.csv").read_text().splitlines()[0]
    assert "seconds" not in header and "decision" not in header


def test_what_was_not_measured_is_not_reported(finished: Finished) -> None:
    run = finished(TWO)
    assert {each["seconds_each"] for each in run.summary["decisions"].values()} == {None}
    assert "a decision,\nµs" not in completion_rows(run.results)[0]
    assert list(decision_lines(run.results, policy_named("spread"))) == []
