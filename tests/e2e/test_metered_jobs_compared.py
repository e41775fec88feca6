"""`greensched benchmark` where containers really run: the same Jobs by two strategies.

It runs before `test_opened_windows.py`, whose window opens meanwhile, and before
`test_served_within_limits.py`, whose pods take a while to end.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.release import ChartRelease

CLEAN = "SE-SE3"
# Seed 2 asks for a quarter of a core each: both fit on the clean node beside our own pods.
SHORT = "--rounds 1 --jobs 2 --seed 2 --span-s 0 --runtime-s 2 --wait-s 0".split()


def open_nodes(cluster: ClusterAccess) -> list[str]:
    """Return the nodes that take pods of anybody: kind's control plane does not."""
    found = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    return [each["metadata"]["name"] for each in found if not each["spec"].get("taints")]


def ending(cluster: ClusterAccess) -> list[str]:
    """Return the namespaces that are being deleted, with pods that still take room."""
    found = json.loads(cluster.kubectl("get", "namespaces", "--output=json"))["items"]
    return [each["metadata"]["name"] for each in found if each["status"]["phase"] == "Terminating"]


def test_the_same_jobs_run_by_two_strategies_and_are_metered(
    cluster: ClusterAccess,
    release: ChartRelease,
    two_zones: dict[str, str],
    shell: str,
    greensched: Callable[..., str],
    tmp_path: Path,
) -> None:
    # A kubelet with as many pods as it may have takes no other.
    cluster.wait_until(lambda: not ending(cluster), "earlier tests' pods are gone", 120.0)
    before = release.scored()
    told = greensched(
        "benchmark", "--cluster", "--strategies", "default,greensched-at-once",
        *SHORT, "--image", shell, "--out", str(tmp_path),
    )  # fmt: skip
    assert f"{shell} was started on {len(open_nodes(cluster))} nodes" in told, told
    figures = json.loads((tmp_path / "summary.json").read_text())
    assert not figures["cluster"]["is_played"], "kubelets ran them"
    for strategy in figures["strategies"].values():
        assert strategy["completed"]["mean"] == 2.0, told
        assert strategy["energy_j"]["mean"] > 0.0 and strategy["carbon_g"]["mean"] > 0.0
    with (tmp_path / "jobs.csv").open() as file:
        jobs = list(csv.DictReader(file))
    assert all(float(job["finished_at"]) > float(job["started_at"]) for job in jobs)
    ours = [job for job in jobs if job["strategy"] == "greensched-at-once"]
    assert {two_zones[job["node"]] for job in ours} == {CLEAN}
    # A kubelet may turn a pod down; its Job then has another one, which is scored too.
    assert release.scored() >= before + len(ours)
    assert (tmp_path / "report.html").exists() and (tmp_path / "took.png").stat().st_size
    left = ("get", "namespaces", "--selector", "greensched.io/stress-job=suite", "--output", "name")
    assert cluster.kubectl(*left) == ""
