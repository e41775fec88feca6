"""5,000 held objects, all at their latest start at once, while everything that could start them
fails in turn."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.timestamps import format_timestamp
from greensched_testbed.components import API_SERVER, ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.operator_processes import FastClock, OperatorProcesses
from tests.operator.faults.conftest import LATE_AFTER_LOSS_S

pytestmark = [pytest.mark.controlplane, pytest.mark.day]
HELD = 5_000
WORK = "thousands"
JOBS, PODS = f"/apis/batch/v1/namespaces/{WORK}/jobs", f"/api/v1/namespaces/{WORK}/pods"
AT_ONCE = 8
READY_S = 12.0  # until the moment at which all are due: two processes start, one is killed


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """An API server that keeps objects, and nothing that makes pods of them."""
    if "GREENSCHED_KUBECONFIG" in os.environ:
        pytest.skip("needs a control plane of our own, and GREENSCHED_KUBECONFIG names another")
    options = ControlPlaneOptions(
        kwok=False, scheduler=False, controllers="serviceaccount-token-controller,"
        "serviceaccount-controller,root-ca-certificate-publisher-controller",
    )  # fmt: skip
    with ControlPlane(options) as running:
        yield running


def held(place: int, until_s: float) -> tuple[str, dict[str, Any]]:
    """Return where a held Job or pod is created, and what as; every fifth is a pod."""
    said = {
        labels.DEADLINE: "10h",
        labels.HELD_AT: format_timestamp(round(time.time(), 3)),
        labels.LATEST_START: format_timestamp(round(until_s)),
    }
    spec: dict[str, Any] = {
        "schedulerName": labels.SCHEDULER_NAME, "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
    }  # fmt: skip
    meta = {"name": f"held-{place}", "annotations": said}
    if place % 5 == 0:
        return PODS, {"metadata": meta, "spec": spec | {"schedulingGates": [{"name": labels.GATE}]}}
    return JOBS, {"metadata": meta, "spec": {"suspend": True, "template": {"spec": spec}}}


async def create(client: ApiClient, until_s: float) -> None:
    """Create all of them."""
    places = iter(range(HELD))

    async def work() -> None:
        for place in places:
            path, body = held(place, until_s)
            await client.create(path, msgspec.json.encode(body))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def still_held(client: ApiClient) -> int:
    """Return how many are stopped."""
    count = 0
    for path in (JOBS, PODS):
        async for page in client.pages(path):
            for raw in page.items:
                spec = msgspec.json.decode(raw)["spec"]
                count += bool(spec.get("suspend") or spec.get("schedulingGates"))
    return count


async def hold_and_fail(plane: ControlPlane, processes: OperatorProcesses) -> None:
    """Have all of them held and due, and fail unless they are free in time."""
    async with ApiClient(plane.access) as client:
        due_s = time.time() + 2 * READY_S  # creating takes what it takes
        await create(client, due_s)
        await asyncio.to_thread(processes.start, "controller")
        await asyncio.to_thread(processes.start, "releaser")
        processes.kill("controller")
        await asyncio.sleep(max(0.0, due_s - time.time()))
        await asyncio.to_thread(plane.restart, API_SERVER)
        await asyncio.to_thread(processes.start, "controller")
        async with asyncio.timeout(LATE_AFTER_LOSS_S):
            while processes.metrics("releaser")["greensched_releaser_held_workloads"]:
                await asyncio.sleep(0.5)
        assert await still_held(client) == 0


def test_thousands_that_are_due_at_once_start_within_a_minute_of_the_api_servers_return(
    plane: ControlPlane,
) -> None:
    processes = OperatorProcesses(plane, FastClock())
    processes.install()
    plane.create_namespace(WORK)
    asyncio.run(hold_and_fail(plane, processes))
