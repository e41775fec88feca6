import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.cluster import down, status, up


@pytest.mark.controlplane
async def test_a_cluster_stays_up_until_it_is_taken_down(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    record = up(folder)
    try:
        assert up(folder) == record == status(folder)
        async with ApiClient(ApiAccess.from_kubeconfig(Path(record.kubeconfig))) as client:
            assert b"v1.36.3" in await client.get("/version")
        kwok = psutil.Process(record.processes[-1].pid)
        kwok.kill()
        kwok.wait(10)
        assert status(folder) is None
    finally:
        stopped = down(folder)
    assert stopped == (
        "kube-scheduler",
        "kube-controller-manager",
        "kube-apiserver",
        "etcd",
    )
    assert not any(psutil.pid_exists(process.pid) for process in record.processes[:-1])
    assert not folder.exists()
    assert down(folder) == ()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(BadInput, match="not empty"):
        up(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
    assert down(tmp_path) == ()
    assert (tmp_path / "thesis.txt").exists()


def test_a_state_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(BadInput, match=r"cluster\.json cannot be read"):
        status(tmp_path)


def test_a_later_process_with_the_same_id_is_not_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    ours = psutil.Process().pid
    (folder / "cluster.json").write_text(
        f'{{"folder": "{folder}", "url": "", "kubeconfig": "", "programs": "", '
        f'"processes": [{{"name": "etcd", "pid": {ours}, "started_at": 1.0}}]}}'
    )
    assert down(folder) == ()
    assert not folder.exists()


def test_a_cluster_that_is_being_started_is_left_alone(tmp_path: Path) -> None:
    us = psutil.Process()
    (tmp_path / "cluster.json").write_text(
        f'{{"folder": "{tmp_path}", "url": "", "kubeconfig": "", "programs": "", "processes": [], '
        f'"starter": {{"name": "python", "pid": {us.pid}, "started_at": {us.create_time()}}}}}'
    )
    assert status(tmp_path) is None
    for attempt in (up, down):
        with pytest.raises(BadInput, match=f"process {us.pid} is starting"):
            attempt(tmp_path)
    assert (tmp_path / "cluster.json").exists()


@pytest.mark.controlplane
def test_what_a_killed_start_leaves_is_taken_down(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    starting = subprocess.Popen(
        [sys.executable, "-m", "greensched_cli", "cluster", "up", "--folder", str(folder)]
    )
    deadline = time.monotonic() + 60
    while "kube-apiserver" not in at_work_in(folder):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    starting.kill()
    starting.wait()
    assert {"etcd", "kube-apiserver"} <= at_work_in(folder), "they outlive who started them"
    assert {"etcd", "kube-apiserver"} <= set(down(folder))
    assert at_work_in(folder) == set()
    assert not folder.exists()


def at_work_in(folder: Path) -> set[str]:
    """Return the programs that have a file of a folder among their arguments."""
    return {
        process.info["name"]
        for process in psutil.process_iter(["name", "cmdline"])
        if any(f"{folder}/" in word for word in process.info["cmdline"] or ())
    }
