import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from greensched_testbed.real_nodes.cgroups import cgroups_of
from greensched_testbed.real_nodes.machine_state import MachineState, machine_state
from greensched_testbed.requirements import NODES, missing

NOTHING: frozenset[str] = frozenset()
EMPTY = MachineState(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
needs_root = pytest.mark.skipif(bool(missing(NODES)), reason="; ".join(missing(NODES)))


@pytest.mark.parametrize(("kind", "counts_when_gone"), [
    pytest.param("processes", False, id="others-processes-may-end"),
    pytest.param("cgroups", False, id="and-their-cgroups"),
    pytest.param("mounts", False, id="and-their-mounts"),
    pytest.param("sysctls", True, id="a-setting-that-changed-is-told-twice"),
    pytest.param("network", True, id="a-route-that-went-is-missed"),
    pytest.param("folders", True, id="and-so-is-a-folder"),
])  # fmt: skip
def test_what_came_is_reported_and_what_went_where_it_should_have_stayed(
    kind: str, counts_when_gone: bool
) -> None:
    one = msgspec.structs.replace(EMPTY, **{kind: frozenset({"a thing"})})
    assert EMPTY.differences(one) == (f"{kind}, new: a thing",)
    assert one.differences(EMPTY) == ((f"{kind}, gone: a thing",) if counts_when_gone else ())


@needs_root
def test_a_container_that_nobody_is_left_for_is_reported() -> None:
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); "
    before = machine_state()
    command = ["unshare", "--net", "sleep", "47.11"]
    subprocess.run([sys.executable, "-c", script, *command], check=True)
    try:
        wait_until(lambda: any("47.11" in each for each in before.differences(machine_state())))
    finally:
        end_orphan()


@needs_root
def test_a_container_whose_starter_runs_is_not_left_behind() -> None:
    before = machine_state()
    child = subprocess.Popen(["unshare", "--net", "sleep", "48.12"])
    try:
        ours = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{child.pid}/ns/net") != ours)
        assert not any("48.12" in each for each in before.differences(machine_state()))
    finally:
        child.kill()
        child.wait()


@needs_root
def test_an_interface_of_a_run_is_reported_once_nobody_is_left_for_the_run() -> None:
    before, ours = machine_state(), cgroups_of(psutil.Process()).name
    ip = ["ip", "link"]
    subprocess.run([*ip, *"add greensched253 type veth peer name other253".split()], check=True)
    try:
        told = []
        for run in (ours, "greensched-nodes-4194304-1"):
            subprocess.run([*ip, "set", "greensched253", "alias", run], check=True)
            told.append(
                any("greensched253" in each for each in before.differences(machine_state()))
            )
        assert told == [False, True]
    finally:
        subprocess.run([*ip, "delete", "greensched253"], check=True)


@needs_root
def test_a_folder_that_any_first_mount_makes_is_not_left_behind_others_are() -> None:
    before, libmount, left = machine_state(), Path("/run/mount"), Path("/run/greensched-left")
    was_there = libmount.exists()
    libmount.mkdir(exist_ok=True)
    left.mkdir()
    try:
        found = before.differences(machine_state())
        # Of folders only: other tests make and remove networks meanwhile.
        folders = [each for each in found if each.startswith("folders,")]
        assert folders == [f"folders, new: {left}"]
    finally:
        left.rmdir()
        if not was_there:
            libmount.rmdir()


def wait_until(claim: Callable[[], bool]) -> None:
    """Wait a few seconds at most for what another process does."""
    deadline = time.monotonic() + 10.0
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def end_orphan() -> None:
    """End the process that the test left behind."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # another has ended meanwhile
            if (folder / "cmdline").read_bytes() == b"sleep\x0047.11\x00":
                os.kill(int(folder.name), 9)
