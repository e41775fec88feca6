"""A user's own cluster by the command line: up, a workload on it, down."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.nodes import NodeGroup, create_nodes, wait_until_ready

Run = Callable[..., Any]
TRACE = (
    "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n"
    "one,0,30,1,128,0\ntwo,1,30,1,128,0\nthree,2,30,1,128,0\n"
)


@pytest.mark.controlplane
async def test_a_cluster_comes_up_takes_a_workload_and_goes_down(
    greensched: Run, tmp_path: Path
) -> None:
    control_plane_programs()  # so that the command's patience is not spent on building
    folder, trace = str(tmp_path / "cluster"), tmp_path / "trace.csv"
    trace.write_text(TRACE)
    try:
        up = greensched("cluster", "up", "--folder", folder)
        assert up.returncode == 0, up.stderr
        (kubeconfig,) = re.findall(r"export KUBECONFIG=(\S+)", up.stdout)
        status = greensched("cluster", "status", "--folder", folder)
        assert (status.returncode, kubeconfig in status.stdout) == (0, True)
        async with ApiClient(ApiAccess.from_kubeconfig(Path(kubeconfig))) as client:
            names = await create_nodes(client, [NodeGroup(1, "n", 4.0, 2.0**33)])
            await wait_until_ready(client, names)
        played = greensched(
            "replay", str(trace), "-n", "default", "--scheduler", "default-scheduler",
            "--span-s", "2", GREENSCHED_KUBECONFIG=kubeconfig,
        )  # fmt: skip
        assert played.returncode == 0, played.stderr
        assert "3 of 3 pods placed in default" in played.stdout
        assert "waited" in played.stdout
    finally:
        down = greensched("cluster", "down", "--folder", folder)
    assert "stopped kwok" in down.stdout
    after = greensched("cluster", "status", "--folder", folder)
    assert (after.returncode, after.stdout) == (1, "no cluster is up\n")


def test_a_faulty_trace_is_refused_with_its_rows(greensched: Run, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE + "four,3,-1,1,128,0\n")
    done = greensched("replay", str(trace), "-n", "default")
    assert done.returncode == 2
    assert "row 5" in done.stderr and "Traceback" not in done.stderr


def test_no_cluster_is_told_in_a_line(greensched: Run, tmp_path: Path) -> None:
    done = greensched("cluster", "down", "--folder", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "no cluster is up\n")
