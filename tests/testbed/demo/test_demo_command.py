"""The demo as a user runs it: the command itself, in a process of its own, on real servers."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from greensched_testbed.binaries import control_plane_programs

pytestmark = pytest.mark.controlplane
GREENSCHED = Path(sys.executable).parent / "greensched"
# The default scheduler draws lots among equal nodes: for twenty pods these once all fell on clean
# ones, and its carbon was less than ours. Where bills are compared there are more pods.
MANY = "60"
PATIENCE_S = 300.0


class Demo:
    """A running `greensched demo` and what it has said so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        control_plane_programs()  # so that patience is not spent on building
        self.folder = folder
        self.log = folder / "said.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [GREENSCHED, "demo", "--pods", "20", "--seconds", "8", *arguments],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.said():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.2)

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        (kubeconfig,) = re.findall(r"export KUBECONFIG=(\S+)", self.said())
        found = subprocess.run(
            [control_plane_programs() / "kubectl", "get", "pods", "-n", namespace, "-o", "json"],
            env={"KUBECONFIG": kubeconfig, "HOME": str(self.folder)},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        items: list[dict[str, Any]] = json.loads(found.stdout)["items"]
        return items

    def wait_until_all_run(self, namespace: str) -> None:
        deadline = time.monotonic() + 30.0  # kwok may lag, but it must not leave pods alone
        while {pod["status"]["phase"] for pod in self.pods(namespace)} - {"Running", "Succeeded"}:
            assert time.monotonic() < deadline, self.pods(namespace)
            time.sleep(0.5)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path, "--keep", "--sleep", "--pods", MANY)
    try:
        demo.wait_for("get pods -n demo-greensched")  # the last words, so that all is said
        yield demo
    finally:
        demo.process.kill()
        demo.process.wait()


def run(demo: Demo, *arguments: str) -> subprocess.CompletedProcess[str]:
    (kubeconfig,) = re.findall(r"export KUBECONFIG=(\S+)", demo.said())
    return subprocess.run(
        [GREENSCHED, *arguments], env={"KUBECONFIG": kubeconfig, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def extender_setting(demo: Demo, name: str) -> str:
    (extender,) = (each for each in demo.children() if "greensched_extender" in each.cmdline())
    return extender.environ()[f"GREENSCHED_EXTENDER_{name}"]


def assert_it_told_of_holding_and_can_be_asked(kept: Demo, summary: dict[str, Any]) -> None:
    assert 0 < summary["held"] <= summary["may_wait"]
    assert summary["deadlines_missed"] == 0
    assert 0 < summary["wait_mean_s"] <= summary["wait_longest_s"] <= 6 * 3600
    assert summary["carbon_active_vs_at_once_pct"] is not None  # of so few pods its sign is chance
    assert re.search(r"^\d\d:\d\d  held task-\d+ until \d\d:\d\d", kept.said(), re.MULTILINE)
    assert re.search(r"^\d\d:\d\d  held \d+.*, released \d+$", kept.said(), re.MULTILINE)

    waits = run(kept, "status", "-n", "demo")
    assert waits.returncode == 0 and "job/waits" in waits.stdout, waits.stdout + waits.stderr
    assert run(kept, "release", "-n", "demo", "waits").returncode == 0
    assert "run-now" in run(kept, "status", "-n", "demo", "--released").stdout
    told = run(kept, "report", "-n", "demo", "--since", "1h", "--out", str(kept.folder / "told"))
    assert told.returncode == 0 and "demo" in told.stdout, told.stdout + told.stderr


def test_the_demo_bills_all_runs_and_can_be_looked_into_until_ctrl_c(kept: Demo) -> None:
    summary = json.loads((kept.folder / "build/demo/summary.json").read_text())
    assert summary["pods_unplaced"] == 0
    assert summary["carbon_vs_default_pct"] < 0
    assert summary["carbon_kg"] < summary["default_carbon_kg"]
    assert summary["energy_vs_default_pct"] < 0
    told = {"simulated": True, "seed": 1, "policy": "onnx", "policy_bundle": "prior"}
    assert told.items() <= summary.items()
    report = (kept.folder / "build/demo/report.html").read_text()
    assert "Plotly.newPlot" in report and "empty nodes sleep" in report
    assert_it_told_of_holding_and_can_be_asked(kept, summary)

    nodes = run(kept, "nodes")
    assert nodes.returncode == 0, nodes.stderr
    assert len([line for line in nodes.stdout.splitlines() if line.startswith("demo-")]) == 60

    (shown,) = re.findall(r"greensched (explain -n demo placed)", kept.said())
    why = run(kept, *shown.split())
    assert why.returncode == 0, why.stdout + why.stderr
    assert f"demo/{shown.split()[-1]}: " in why.stdout
    assert "DEMO-HYDRO" in why.stdout
    assert "than the average node" in why.stdout and "(bundle prior), weights" in why.stdout

    kept.wait_until_all_run("demo-greensched")

    unknown = run(kept, "explain", "nobody")
    assert unknown.returncode == 1
    assert "No replica remembers" in unknown.stderr
    policy = httpx.get(
        f"http://127.0.0.1:{extender_setting(kept, 'EXPLAIN_PORT')}/v1/policy", trust_env=False
    )
    assert policy.json()["assumptions"]["emptyNodesSleep"] is summary["empty_nodes_sleep"] is True

    started = kept.children()
    next(each for each in started if "greensched_extender" in each.cmdline()).kill()
    kept.wait_for("extender exited with -9")
    kept.process.send_signal(signal.SIGINT)
    assert kept.process.wait(60) == 0
    assert [process for process in started if process.is_running()] == []
    assert re.search(r"\nended; stopped etcd, kube-api.*; removed /tmp/", kept.said())


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])  # SIGINT ends the kept one
def test_nothing_survives_a_demo_that_is_ended_in_the_middle(tmp_path: Path, how: int) -> None:
    demo = Demo(tmp_path)
    demo.wait_for("placing 20 pods")
    started = demo.children()
    parts = {each.cmdline()[-1] for each in started if "greensched_operator" in each.cmdline()}
    assert parts == {"controller", "webhook", "releaser"}
    demo.process.send_signal(how)
    demo.process.wait(60)
    gone, alive = psutil.wait_procs(started, timeout=20)
    assert alive == []
    assert len(gone) >= 6
    if how == signal.SIGTERM:
        assert demo.process.returncode == 143
        assert "interrupted before it was done; stopped etcd, " in demo.said()
        (removed,) = re.findall(r"; removed (/tmp/\S+)", demo.said())
        assert not Path(removed).exists()


def test_a_bad_trace_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\na,0,-5,1,1024,0\nb,1,x,1,1024,0\n"
    )
    demo = Demo(tmp_path, "--trace", "trace.csv")
    assert demo.process.wait(60) == 2
    assert "row 2" in demo.said() and "row 3" in demo.said()
    assert "Traceback" not in demo.said()
