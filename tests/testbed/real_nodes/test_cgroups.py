import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from greensched_testbed.real_nodes.cgroups import (
    RunCgroups,
    all_runs,
    cgroups_of,
    hierarchies,
    is_abandoned,
)
from greensched_testbed.requirements import missing

SYSTEM = Path("/sys/fs/cgroup")
UNIFIED = SYSTEM / "unified"  # version 2, beside version 1 on machines that have both

pytestmark = pytest.mark.skipif(bool(missing()), reason="; ".join(missing()))
ROOTS = [
    pytest.param(root, id=root.name)
    for root in (SYSTEM, UNIFIED)
    if root.is_dir() and hierarchies(root)
]


@pytest.fixture(params=ROOTS)
def run(request: pytest.FixtureRequest) -> Iterator[RunCgroups]:
    """The cgroups of a run whose holder is this process."""
    ours = RunCgroups(cgroups_of(psutil.Process()).name, request.param)
    yield ours
    ours.remove()


def test_all_that_a_run_started_ends_with_it_and_no_folder_stays(run: RunCgroups) -> None:
    before = {each: (each / "cgroup.procs").exists() for each in hierarchies(run.root)}
    run.make(("node-1", "node-2"))
    script = "sleep 60 & echo started; wait"
    started = subprocess.Popen([*run.join(), "sh", "-c", script], stdout=subprocess.PIPE)
    assert started.stdout is not None and started.stdout.readline() == b"started\n"
    started.stdout.close()
    begun = [psutil.Process(pid) for pid in run.processes()]
    assert len(begun) == 2
    run.remove()
    started.wait(5)  # with its child's end where the shell sees that before its own comes
    gone, alive = psutil.wait_procs(begun, 5)
    assert len(gone) == 2 and not alive
    assert not any((each / run.name).exists() for each in before)


def test_a_node_that_is_cleared_ends_alone_and_takes_new_processes(run: RunCgroups) -> None:
    run.make(("node-1", "node-2"))
    first, other = (
        subprocess.Popen([*run.join(name), "sleep", "60"]) for name in ("node-1", "node-2")
    )
    while len(run.processes()) < 2:
        pass
    run.clear("node-1")
    assert first.wait(5) == -9
    assert other.poll() is None
    again = subprocess.Popen([*run.join("node-1"), "sleep", "60"])
    while len(run.processes()) < 2:
        pass
    run.remove()
    assert (again.wait(5), other.wait(5)) == (-9, -9)


def test_a_folder_that_a_container_left_in_it_goes_too(run: RunCgroups) -> None:
    run.make(("node-1",))
    (hierarchies(run.root)[0] / run.name / "node-1/kubepods/pod-1/container").mkdir(parents=True)
    run.remove()
    assert run.name not in {each.name for each in all_runs(run.root)}


def test_controllers_that_were_not_passed_on_before_are_not_afterwards(run: RunCgroups) -> None:
    passed_on = run.root / "cgroup.subtree_control"
    if not passed_on.exists():
        pytest.skip("cgroups of version 1 pass nothing on")
    before = passed_on.read_text()
    run.make(("node-1",))
    available = (run.root / "cgroup.controllers").read_text()
    assert (run.root / run.name / "node-1/cgroup.controllers").read_text() == available
    run.remove()
    assert passed_on.read_text() == before


def test_a_run_is_abandoned_when_its_holder_has_ended_or_its_number_is_another_s() -> None:
    holder = subprocess.Popen(["sleep", "60"])
    name = cgroups_of(psutil.Process(holder.pid)).name
    assert not is_abandoned(name)
    holder.kill()
    while psutil.Process(holder.pid).status() != psutil.STATUS_ZOMBIE:
        pass
    assert is_abandoned(name), "nobody has waited for it yet"
    holder.wait()
    assert is_abandoned(name)
    assert is_abandoned(f"greensched-nodes-{os.getpid()}-1")
