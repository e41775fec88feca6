"""Docker's engine of our own, and what stays of it: nothing, however it ends."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from greensched_testbed.errors import CannotBuildHere
from greensched_testbed.kind.docker_packages import docker_folders
from greensched_testbed.real_nodes.cgroups import RunCgroups
from greensched_testbed.real_nodes.cluster import sweep
from greensched_testbed.real_nodes.machine_state import MachineState, machine_state
from greensched_testbed.requirements import ENGINE, missing
from greensched_testbed.scratch import remove_abandoned

RUNS = """
import os, sys, time
from pathlib import Path
from greensched_testbed.kind.engine import engine
from greensched_testbed.real_nodes.cluster import image_folder
from greensched_testbed.real_nodes.program_images import SHELL_IMAGE, archive, shell_image
with engine() as running:
    running.load(archive(shell_image(), image_folder()))
    command = ["docker", "run", "--detach", "--privileged", SHELL_IMAGE]
    assert running.run(command, Path("/"), running.environment) == 0
    print(running.run_name, running.folder, flush=True)
    if sys.argv[1] == "stay":
        time.sleep(600)
"""


@pytest.fixture
def before() -> Iterator[MachineState]:
    """How the machine was, and must be afterwards."""
    if missing(ENGINE):
        pytest.skip(f"an engine needs {'; '.join(missing(ENGINE))}")
    try:
        docker_folders()
    except CannotBuildHere as fault:
        pytest.skip(f"there is no engine to be had: {fault}")
    yield machine_state()
    sweep()


def test_an_engine_that_ends_leaves_nothing(before: MachineState) -> None:
    command = [sys.executable, "-c", RUNS, "end"]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert not Path(told.split()[-1]).exists()
    assert before.differences(machine_state()) == ()


def test_what_a_killed_engine_leaves_is_swept_up(before: MachineState) -> None:
    command = [sys.executable, "-c", RUNS, "stay"]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    parent.stdout.readline()  # the container's
    name, folder = parent.stdout.readline().split()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    time.sleep(1.0)  # the kernel kills what was tied to it
    assert RunCgroups(name).processes(), "containers outlive it"
    assert sweep() == (name,)
    remove_abandoned(Path(folder).parent)
    assert not Path(folder).exists()
    assert before.differences(machine_state()) == ()
