"""Work that was created before other tests: what its time brought."""

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from greensched_testbed.end_to_end.clusters import ClusterAccess

if TYPE_CHECKING:
    from tests.e2e.conftest import EarlyBenchmark, EarlyWork

ON_TIME_S = 10.0
PATIENCE_S = 240.0  # until its time comes, where this test runs alone
LONG_ENOUGH_S = 40.0  # kubelets sample every ten to twenty seconds, and must see half of a run


def test_a_job_is_released_at_its_planned_start_which_is_when_its_window_opens(
    cluster: ClusterAccess, early_work: "EarlyWork"
) -> None:
    space = early_work.namespace
    cluster.wait_until(lambda: cluster.is_complete("windowed", space), "it has run", PATIENCE_S)
    said = cluster.said("job", "windowed", space)
    released = datetime.fromisoformat(said["released-at"])
    assert 0.0 <= (released - early_work.opens).total_seconds() <= ON_TIME_S
    # A planning that begins when the window opens finds that now is best.
    assert said["release-reason"] in {"planned-start", "now-is-best"}


def test_a_cronjob_that_runs_by_the_clock_has_its_run_held(
    cluster: ClusterAccess, early_work: "EarlyWork"
) -> None:
    space = early_work.namespace
    cluster.wait_until(lambda: bool(runs(cluster, space)), "it is due", PATIENCE_S)
    (run,) = runs(cluster, space)
    cluster.wait_until(lambda: "planned-start" in cluster.said("job", run, space), "it is planned")
    assert cluster.is_held(run, space)
    created = cluster.get("job", run, space)["metadata"]["creationTimestamp"]
    assert datetime.fromisoformat(created) >= early_work.runs.astimezone(UTC)


def test_jobs_without_a_better_meter_are_billed_by_the_kubelets_cpu_time_as_an_estimate(
    cluster: ClusterAccess, early_benchmark: "EarlyBenchmark", greensched: Callable[..., str]
) -> None:
    told = early_benchmark.wait(PATIENCE_S)
    with (early_benchmark.folder / "jobs.csv").open() as file:
        jobs = list(csv.DictReader(file))
    ran_s = [float(job["finished_at"]) - float(job["started_at"]) for job in jobs]
    if min(ran_s) < LONG_ENOUGH_S:
        pytest.skip(f"{cluster.can.kind}: its cores did the Jobs in {min(ran_s):.0f} s, too soon")
    assert "energy: kubelet-api: the kubelet's CPU time" in told, told
    figures = json.loads((early_benchmark.folder / "summary.json").read_text())
    assert (figures["meter"], figures["is_estimated"]) == ("kubelet-api", True), told
    (run,) = figures["runs"]
    assert run["scheduler"] == "greensched"
    nodes = json.loads(greensched("nodes", "-o", "json"))["nodes"]
    full_w = {each["name"]: each["peakWatts"] - each["idleWatts"] for each in nodes}
    most_j = sum(full_w[job["node"]] * each for job, each in zip(jobs, ran_s, strict=True))
    assert 0.0 < run["meters"]["kubelet-api"]["energy_j"] < most_j


def runs(cluster: ClusterAccess, namespace: str) -> list[str]:
    """Return the names of the CronJob's Jobs."""
    names = [each["metadata"]["name"] for each in cluster.list("jobs", namespace)]
    return [name for name in names if name.startswith("nightly-")]
