import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.components import KWOK, SCHEDULER, ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.errors import CommandFailed, ProcessDied
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready
from greensched_testbed.scratch import remove_abandoned

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("control_plane")]
GIB = 2.0**30


def pod(name: str, runtime: str | None = None, **spec: object) -> bytes:
    annotations = {"greensched.io/testbed-runtime": runtime} if runtime else {}
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [container], **spec},
        }
    ).encode()


async def phase(api: ApiClient, namespace: str, name: str) -> str:
    found = json.loads(await api.get(f"/api/v1/namespaces/{namespace}/pods/{name}"))
    return str(found["status"].get("phase"))


async def wait_for_phase(api: ApiClient, namespace: str, name: str, wanted: str) -> float:
    began = time.monotonic()
    while await phase(api, namespace, name) != wanted:
        assert time.monotonic() - began < 30, f"{name} never came to {wanted}"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


def test_the_server_tells_its_true_version(control_plane: ControlPlane) -> None:
    assert control_plane.version() == "v1.36.3"
    assert "v4." in control_plane.helm("version", "--short")


async def test_a_pod_runs_on_a_kwok_node_for_its_annotated_time(
    api: ApiClient, namespace: str
) -> None:
    names = await create_nodes(api, [EqualNodes(2, "timed", 4, 16 * GIB)])
    await wait_until_ready(api, names)
    where = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(where, pod("brief", "2s"))
    await api.create(where, pod("endless"))
    await wait_for_phase(api, namespace, "brief", "Running")
    assert await wait_for_phase(api, namespace, "brief", "Succeeded") == pytest.approx(2, abs=1.5)
    assert await phase(api, namespace, "endless") == "Running"
    await delete_nodes(api, names)


async def test_a_gpu_node_carries_its_labels_and_gpus(api: ApiClient) -> None:
    group = EqualNodes(
        1, "gpus", 32, 256 * GIB, gpus=4, gpu_model="Tesla-T4", grid_zone="DE", power_model="old"
    )
    names = await create_nodes(api, [group])
    await wait_until_ready(api, names)
    node = json.loads(await api.get(f"/api/v1/nodes/{names[0]}"))
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "Tesla-T4"
    assert node["metadata"]["labels"]["greensched.io/grid-zone"] == "DE"
    await delete_nodes(api, names)


async def test_the_cluster_recovers_from_a_restart_of_the_api_server(
    control_plane: ControlPlane, api: ApiClient, namespace: str
) -> None:
    names = await create_nodes(api, [EqualNodes(1, "restart", 4, 16 * GIB)])
    await wait_until_ready(api, names)
    await asyncio.to_thread(control_plane.restart, "kube-apiserver")
    await api.create(f"/api/v1/namespaces/{namespace}/pods", pod("after", "1s"))
    await wait_for_phase(api, namespace, "after", "Succeeded")
    await delete_nodes(api, names)


async def test_a_service_account_may_do_only_what_it_was_given(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = control_plane.service_account_dir(namespace, "default")
    for key, value in control_plane.in_cluster_environment().items():
        monkeypatch.setenv(key, value)
    assert (folder / "namespace").read_text() == namespace
    async with ApiClient(ApiAccess.in_cluster(folder)) as client:
        assert b"v1.36.3" in await client.get("/version")
        with pytest.raises(ApiUnavailable, match="403"):
            await client.get("/api/v1/nodes")


async def test_a_second_scheduler_places_the_pods_that_ask_for_it(
    control_plane: ControlPlane, api: ApiClient, namespace: str
) -> None:
    config = json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": "second"}],
        }
    )
    names = await create_nodes(api, [EqualNodes(1, "second", 4, 16 * GIB)])
    await wait_until_ready(api, names)
    where = f"/api/v1/namespaces/{namespace}/pods"
    await api.create(where, pod("waits", schedulerName="second"))
    await asyncio.sleep(0.5)
    assert await phase(api, namespace, "waits") == "Pending"
    await asyncio.to_thread(control_plane.start_scheduler, "second-scheduler", config)
    await wait_for_phase(api, namespace, "waits", "Running")
    control_plane.stop("second-scheduler")
    await delete_nodes(api, names)


def test_a_scheduler_with_a_wrong_configuration_is_reported_with_its_reason(
    control_plane: ControlPlane,
) -> None:
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nx: 1\n"
    with pytest.raises(ProcessDied, match="unknown field"):
        control_plane.start_scheduler("wrong", config)


def test_nothing_of_a_control_plane_survives_the_sigkill_of_its_parent(tmp_path: Path) -> None:
    script = (
        "import time; from greensched_testbed.controlplane import ControlPlane\n"
        "with ControlPlane() as plane:\n"
        "    print(*(each.pid for each in plane.processes.all()), flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        processes = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(processes) == 5
        parent.kill()
    assert psutil.wait_procs(processes, timeout=10)[1] == []
    remove_abandoned(tmp_path)
    # One small file for all runs stays: the locks on it, by which ports are shared out, are gone.
    assert [each for each in tmp_path.iterdir() if each.suffix != ".lock"] == []


def test_the_folder_of_volume_plugins_is_made_below_the_control_planes_own(
    control_plane: ControlPlane,
) -> None:
    deadline = time.monotonic() + 60.0
    while not (control_plane.folder / "volume-plugins").exists():
        assert time.monotonic() < deadline, "the controller manager made it elsewhere"
        time.sleep(0.2)


def test_a_failing_command_tells_why(control_plane: ControlPlane) -> None:
    with pytest.raises(CommandFailed, match="NotFound"):
        control_plane.kubectl("get", "node", "no-such-node")


async def test_plain_nodes_take_pods_without_kwok_and_nothing_is_left() -> None:
    options = ControlPlaneOptions(kwok=False, controllers="*,-node-lifecycle-controller")
    with ControlPlane(options) as running:
        assert KWOK not in running.processes and SCHEDULER in running.processes
        running.create_namespace("plain")
        async with ApiClient(running.access) as client:
            await create_nodes(client, [EqualNodes(3, "plain", 4, 16 * GIB)], plain=True)
            await client.create("/api/v1/namespaces/plain/pods", pod("bound"))
            began = time.monotonic()
            while b'"nodeName":"plain-' not in await client.get(
                "/api/v1/namespaces/plain/pods/bound"
            ):
                assert time.monotonic() - began < 20
                await asyncio.sleep(0.05)
        pids = [process.pid for process in running.processes.all()]
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert not running.folder.exists()
