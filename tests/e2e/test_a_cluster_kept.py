"""Real nodes by the command line, and what stays of them: nothing, however they end."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from greensched_testbed.cluster import status
from greensched_testbed.real_nodes.cgroups import RunCgroups
from greensched_testbed.real_nodes.cluster import sweep
from greensched_testbed.real_nodes.machine_state import MachineState, machine_state
from greensched_testbed.real_nodes.program_images import archive, shell_image
from greensched_testbed.requirements import NODES, missing

KILLED = """
import sys, time
from pathlib import Path
from greensched_testbed.real_nodes.cluster import RealCluster
from greensched_testbed.real_nodes.node_kinds import in_two_zones
with RealCluster(in_two_zones(1), folder=Path(sys.argv[1])) as cluster:
    cluster.plane.kubectl(
        "run", "one", "--image=localhost/greensched-e2e-shell:1", "--image-pull-policy=Never"
    )
    cluster.plane.kubectl("wait", "pod/one", "--for=condition=Ready", "--timeout=60s")
    print(cluster.run, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def before() -> Iterator[MachineState]:
    """How the machine was, and must be afterwards."""
    if missing(NODES):
        pytest.skip(f"real nodes need {'; '.join(missing(NODES))}")
    yield machine_state()
    sweep()


def greensched(*arguments: str, cwd: Path | None = None, refused: bool = False) -> str:
    """Run the command line; return what it prints, or what it says where it is to be refused."""
    command = [sys.executable, "-m", "greensched_cli", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert bool(done.returncode) == refused, done.stderr
    return done.stderr if refused else done.stdout


def test_a_cluster_stays_until_it_is_taken_down_and_then_nothing_of_it(
    before: MachineState, tmp_path: Path
) -> None:
    folder = tmp_path / "cluster"
    try:
        up = ("cluster", "up", "--folder", str(folder), "--real-nodes", "1")
        image = archive(shell_image(), tmp_path)
        told = greensched(*up, "--image", image.name, cwd=tmp_path)
        assert "node-1-kubelet" in told and "Nodes run containers" in told
        assert greensched(*up).startswith("http"), "it is up already"
        assert "of 1 real nodes is up" in greensched(*up, "--image", str(image), refused=True)
        assert status(folder) is not None
        assert "nodes: 1" in greensched("cluster", "status", "--folder", str(folder))
    finally:
        told = greensched("cluster", "down", "--folder", str(folder))
    assert "node-1-kubelet" in told
    assert not folder.exists()
    assert before.differences(machine_state()) == ()


def test_what_a_killed_parent_leaves_is_swept_up(before: MachineState, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    run = RunCgroups(parent.stdout.readline().strip())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    time.sleep(1.0)  # the kernel kills what was tied to it
    left = run.processes()
    assert any("containerd-shim" in command_line(pid) for pid in left), "containers outlive it"
    assert not any("kubelet" in command_line(pid) for pid in left)
    assert sweep() == (run.name,)
    assert before.differences(machine_state()) == ()


def command_line(pid: int) -> str:
    """Return what a process was started as."""
    return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" "))
