"""`greensched cluster up --real-nodes` killed at any moment: taking it down leaves nothing."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from greensched_testbed.real_nodes.cluster import sweep
from greensched_testbed.real_nodes.machine_state import MachineState, machine_state
from greensched_testbed.requirements import NODES, missing

PATIENCE_S = 60.0


@pytest.fixture
def before() -> Iterator[MachineState]:
    """How the machine was, and must be afterwards."""
    if missing(NODES):
        pytest.skip(f"real nodes need {'; '.join(missing(NODES))}")
    yield machine_state()
    sweep()


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("logs/network.log", id="while-its-first-namespaces-are-made"),
        pytest.param("logs/node-1.log", id="while-a-nodes-namespaces-are-made"),
        pytest.param("logs/node-1-kubelet.log", id="while-a-kubelet-starts"),
    ],
)
def test_what_a_killed_start_leaves_is_taken_down(
    before: MachineState, tmp_path: Path, log: str
) -> None:
    folder = tmp_path / "cluster"
    command = [sys.executable, "-m", "greensched_cli", "cluster"]
    where = ["--folder", str(folder)]
    starting = subprocess.Popen([*command, "up", *where, "--real-nodes", "1"])
    deadline = time.monotonic() + PATIENCE_S
    while not (folder / log).exists():
        assert starting.poll() is None and time.monotonic() < deadline
        time.sleep(0.001)
    starting.send_signal(signal.SIGKILL)
    starting.wait()
    subprocess.run([*command, "down", *where], check=True)
    assert not folder.exists()
    assert before.differences(machine_state()) == ()
