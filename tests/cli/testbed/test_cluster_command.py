"""A user's own cluster by the command line: up, nodes, workloads on it, down."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from greensched_testbed.binaries import control_plane_programs

Run = Callable[..., Any]
TRACE = (
    "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n"
    "one,0,30,1,128,0\ntwo,1,30,1,128,0\nthree,2,30,1,128,0\n"
)
TOO_LARGE = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\nfits,0,9,1,1,0\nhuge,1,9,999,1,0\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


@pytest.fixture
def folder(greensched: Run, tmp_path: Path) -> Iterator[str]:
    """The folder of a cluster that is up, without nodes."""
    control_plane_programs()  # so that the command's patience is not spent on building
    folder = str(tmp_path / "cluster")
    try:
        up = greensched("cluster", "up", "--folder", folder)
        assert up.returncode == 0, up.stderr
        yield folder
    finally:
        greensched("cluster", "down", "--folder", folder)


def exported(said: str, name: str) -> str:
    (value,) = re.findall(rf"^export {name}=(\S+)$", said, re.MULTILINE)
    return str(value)


def environment_of(said: str, home: Path) -> dict[str, str]:
    """Return the environment of a shell in which the printed lines were run."""
    path = exported(said, "PATH").replace("$PATH", os.environ["PATH"])
    return {"HOME": str(home), "KUBECONFIG": exported(said, "KUBECONFIG"), "PATH": path}


@pytest.mark.controlplane
def test_a_cluster_comes_up_takes_nodes_and_workloads_and_goes_down(
    greensched: Run, folder: str, trace: Path, tmp_path: Path
) -> None:
    status = greensched("cluster", "status", "--folder", folder)
    assert status.returncode == 0
    assert f"none yet; `greensched cluster up --folder {folder} --nodes 10` adds" in status.stdout
    up = greensched("cluster", "up", "--folder", folder, "--nodes", "2")
    assert up.returncode == 0, up.stderr
    assert "nodes: 2\n" in up.stdout and "no container runs in them" in up.stdout
    (logs,) = re.findall(r"^logs: (\S+)$", up.stdout, re.MULTILINE)
    assert (Path(logs) / "kwok.log").exists()

    environment = environment_of(up.stdout, tmp_path)
    for command in (["kubectl", "get", "nodes", "-o", "name"], ["helm", "list"]):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert command[0] == "helm" or len(done.stdout.splitlines()) == 2

    kubeconfig = environment["KUBECONFIG"]
    replay = ("replay", str(trace), "--scheduler", "default-scheduler", "--span-s", "2")
    played = greensched(*replay, GREENSCHED_KUBECONFIG=kubeconfig, KUBECONFIG="/not/this/one")
    assert played.returncode == 0, played.stderr
    assert (
        f"(kubeconfig {kubeconfig}, context " in played.stdout
        and "onto https://127" in played.stdout
    )
    assert "3 of 3 pods placed in default" in played.stdout
    assert "waited" in played.stdout

    again = greensched(*replay, KUBECONFIG=kubeconfig)
    assert again.returncode == 2
    assert "namespace default already holds 3 of these 3 pods" in again.stderr
    assert "delete the namespace, or name another with --namespace" in again.stderr

    down = greensched("cluster", "down", "--folder", folder)
    assert "stopped kwok" in down.stdout
    after = greensched("cluster", "status", "--folder", folder)
    assert (after.returncode, after.stdout) == (1, "no cluster is up\n")


@pytest.mark.controlplane
def test_a_replay_tells_how_far_it_is_and_why_pods_found_no_node(
    greensched: Run, folder: str, trace: Path
) -> None:
    up = greensched("cluster", "up", "--folder", folder, "--nodes", "1")
    kubeconfig = exported(up.stdout, "KUBECONFIG")
    replay = ("replay", str(trace), "-n", "default", "--span-s", "1", "--wait-s", "6")

    nobody = greensched(*replay, "--scheduler", "nobody", KUBECONFIG=kubeconfig)
    assert nobody.returncode == 1
    assert "3 of 3 pods created, 0 placed; gives up after 7 s" in nobody.stderr
    assert "one, two, three: no scheduler named nobody has answered" in nobody.stdout

    trace.write_text(TOO_LARGE)
    refused = greensched(*replay, "--scheduler", "default-scheduler", KUBECONFIG=kubeconfig)
    assert refused.returncode == 1
    assert "1 of 2 pods placed" in refused.stdout
    assert "huge: 0/1 nodes are available: 1 Insufficient cpu" in refused.stdout

    trace.write_text(TOO_LARGE.replace("fits", "also").replace("huge", "vast"))
    again = ("--scheduler", "default-scheduler", "-o", "json")
    refused = greensched(*replay, *again, KUBECONFIG=kubeconfig)
    assert refused.returncode == 1 and "onto https://127" in refused.stderr
    told = json.loads(refused.stdout)
    assert (told["pods"], told["podsPlaced"]) == (2, 1)
    assert 0 < told["waitMedianSeconds"] == told["waitMaxSeconds"]
    assert told["unplaced"][0]["pod"] == "vast"
    assert "1 Insufficient cpu" in told["unplaced"][0]["reason"]


def test_a_faulty_trace_is_refused_with_its_rows(greensched: Run, trace: Path) -> None:
    trace.write_text(TRACE + "four,3,-1,1,128,0\n")
    done = greensched("replay", str(trace), "-n", "default")
    assert done.returncode == 2
    assert "row 5" in done.stderr and "Traceback" not in done.stderr


AWAY = """
current-context: away
clusters: [{name: away, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: away, context: {cluster: away, namespace: team}}]
"""


def test_the_kubeconfig_is_read_as_kubectl_reads_it(greensched: Run, trace: Path) -> None:
    config = trace.with_name("config")
    config.write_text(AWAY)
    several = f"{trace.with_name('none')}:{config}"
    replayed = greensched("replay", str(trace), KUBECONFIG=several)
    assert (replayed.returncode, "GET /api" in replayed.stderr) == (1, True), replayed.stderr
    assert f"onto http://127.0.0.1:1 (kubeconfig {config}, context away)\n" in replayed.stdout
    assert "3 pods for greensched in namespace team\n" in replayed.stdout
    compared = greensched("benchmark", KUBECONFIG=several)
    assert (compared.returncode, "GET /" in compared.stderr) == (1, True), compared.stderr


def test_a_google_trace_needs_the_largest_machine(greensched: Run, trace: Path) -> None:
    events = ((kind, 600 + 300 * kind + task, task) for task in range(2) for kind in (0, 1, 4))
    trace.write_text(
        "".join(f"{at}000000,,7,{task},1,{kind},u,2,9,0.5,0.25,0,0\n" for kind, at, task in events)
    )
    replay = ("replay", str(trace), "-n", "default", "--kubeconfig", "/not/there")
    without = greensched(*replay)
    assert without.returncode == 2 and "--largest-machine 64,256Gi" in without.stderr
    wrong = greensched(*replay, "--largest-machine", "64")
    assert wrong.returncode == 2 and "'64' is not a machine" in wrong.stderr
    told = greensched(*replay, "--largest-machine", "64,256Gi")
    assert "assumed to have 64 cores and 256 GiB" in told.stdout
    assert "/not/there" in told.stderr  # so far it came


def test_no_cluster_is_reported_in_a_line(greensched: Run, tmp_path: Path) -> None:
    done = greensched("cluster", "down", "--folder", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "no cluster is up\n")


@pytest.mark.parametrize(
    ("content", "told"), [(None, "there is no file"), (b"no tar", "is not an archive")]
)
def test_what_is_no_archive_of_an_image_is_refused_before_anything_starts(
    greensched: Run, tmp_path: Path, content: bytes | None, told: str
) -> None:
    image = tmp_path / "image.tar"
    if content is not None:
        image.write_bytes(content)
    folder = tmp_path / "cluster"
    up = ("cluster", "up", "--folder", str(folder), "--image", str(image))
    refused = greensched(*up, "--real-nodes", "2")
    assert refused.returncode == 2 and told in refused.stderr
    assert not folder.exists()
    assert "--image is for real nodes" in greensched(*up, "--nodes", "2").stderr
