import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_simulator.formats.workload import Task, Trace
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready
from greensched_testbed.replay import ReplayOptions, ReplayProgress, delete_pods, pod_object, replay

GIB = 2.0**30


def trace_of(*tasks: Task) -> Trace:
    return Trace(tasks, "test")


def test_a_task_becomes_a_pod_that_asks_for_what_it_needs() -> None:
    task = Task("t", 0, 90, 2.5, GIB, gpus=2, gpu_models=("T4", "P100"))
    options = ReplayOptions("ns", "greensched", wall_s_per_trace_s=0.01)
    pod = pod_object(task, options)
    assert pod["metadata"]["annotations"] == {
        "greensched.io/runtime": "90.000s",
        "greensched.io/testbed-runtime": "0.900s",
    }
    assert pod["spec"]["schedulerName"] == "greensched"
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "2500m", "memory": "1073741824", "nvidia.com/gpu": "2"},
        "limits": {"nvidia.com/gpu": "2"},
    }
    terms = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["T4", "P100"]


def test_on_nodes_that_kwok_does_not_play_the_containers_sleep() -> None:
    options = ReplayOptions("ns", wall_s_per_trace_s=0.5, sleeps=True)
    container = pod_object(Task("t", 0, 9, 1, GIB), options)["spec"]["containers"][0]
    assert container["command"] == ["sleep", "4.500"]


@pytest_asyncio.fixture
async def nodes(request: pytest.FixtureRequest, api: ApiClient) -> AsyncIterator[None]:
    """Two kwok nodes in our own control plane; in a foreign cluster, whatever nodes it has."""
    if "GREENSCHED_KUBECONFIG" in os.environ:
        yield
        return
    names = await create_nodes(api, [EqualNodes(2, f"replay-{uuid.uuid4().hex[:6]}", 8, 32 * GIB)])
    await wait_until_ready(api, names)
    yield
    await delete_nodes(api, names)


@pytest.mark.controlplane
@pytest.mark.usefixtures("control_plane", "nodes")
async def test_pods_arrive_run_and_end_on_the_compressed_clock(
    api_access: ApiAccess, namespace: str
) -> None:
    tasks = (Task("a", 0, 200, 1, GIB), Task("b", 100, 100, 1, GIB), Task("c", 200, 50, 99, GIB))
    seen: list[ReplayProgress] = []
    options = ReplayOptions(namespace, wall_s_per_trace_s=0.01, settle_timeout_s=6)
    record = await replay(trace_of(*tasks), api_access, options, on_progress=seen.append)
    a, b, c = record.runs
    assert record.timed_out and [run.task.name for run in record.unplaced] == ["c"]
    assert a.phase == b.phase == "Succeeded" and c.phase == "Pending"
    assert a.created_at and a.bound_at and a.finished_at and b.created_at and b.bound_at
    assert a.created_at <= a.bound_at <= a.finished_at
    assert b.created_at - a.created_at == pytest.approx(1.0, abs=0.5)
    assert a.finished_at - a.bound_at == pytest.approx(2.0, abs=1.0)
    assert seen[-1] == ReplayProgress(total=3, created=3, bound=2, finished=2)
    await delete_pods(api_access, namespace)


@pytest.mark.controlplane
@pytest.mark.usefixtures("nodes")
async def test_a_replay_goes_on_when_the_api_server_restarts(
    control_plane: ControlPlane, api_access: ApiAccess, namespace: str
) -> None:
    tasks = [Task(f"t{index}", index * 0.25, 1, 0.1, GIB) for index in range(40)]
    options = ReplayOptions(namespace, settle_timeout_s=60)
    running = asyncio.create_task(replay(trace_of(*tasks), api_access, options))
    await asyncio.sleep(2)
    await asyncio.to_thread(control_plane.restart, "kube-apiserver")
    record = await running
    assert not record.timed_out
    assert {run.phase for run in record.runs} == {"Succeeded"}


@pytest.mark.controlplane
@pytest.mark.usefixtures("nodes")
async def test_a_replay_returns_as_soon_as_all_are_bound_when_asked_to(
    api_access: ApiAccess, namespace: str
) -> None:
    began = time.monotonic()
    record = await replay(
        trace_of(Task("long", 0, 9_999, 0.1, GIB / 64)),
        api_access,
        ReplayOptions(namespace, until="bound"),
    )
    assert record.runs[0].node and time.monotonic() - began < 10
    await delete_pods(api_access, namespace)


@pytest.mark.controlplane
async def test_a_pod_that_is_refused_ends_the_replay_with_the_reason(
    api_access: ApiAccess,
) -> None:
    with pytest.raises(ApiUnavailable, match="no-such-namespace"):
        await replay(
            trace_of(Task("a", 0, 1, 1, GIB)), api_access, ReplayOptions("no-such-namespace")
        )
