"""A process that ended by itself says so by its exit status; one that cannot start says so soon."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from greensched_core.errors import TaskEnded
from greensched_core.lateness import say_when_late
from greensched_core.watching import WatchHealth
from greensched_operator.__main__ import PROCESSES, main
from greensched_operator.controller.controller_process import ControllerProcess
from greensched_operator.release.releaser import Releaser
from greensched_operator.runtime.processes import Tasks
from greensched_operator.webhook.webhook import WebhookProcess

if TYPE_CHECKING:
    from greensched_testbed.controlplane import ControlPlane
    from tests.operator.conftest import Place


@dataclass
class OneWatch:
    """A watch that a process follows."""

    path: str
    health: WatchHealth


async def broken() -> None:
    raise RuntimeError("a bug")


async def forever() -> None:
    await asyncio.Event().wait()


async def stubborn() -> None:
    try:
        await forever()
    finally:
        raise RuntimeError("it cannot even be ended")


@pytest.mark.parametrize(
    ("work", "told"),
    [
        pytest.param({"releases": broken()}, "releases", id="failed"),
        pytest.param({"watch": asyncio.sleep(0)}, "watch", id="ended-by-itself"),
        pytest.param({"watch": forever(), "releases": stubborn()}, "", id="told-to-end"),
    ],
)
async def test_who_ends_by_himself_is_named(
    work: dict[str, Coroutine[Any, Any, None]], told: str
) -> None:
    tasks = Tasks()
    tasks.start(work)
    await asyncio.sleep(0.01)
    await tasks.stop()
    if told:
        with pytest.raises(TaskEnded, match=f"ended: {told}"):
            tasks.raise_failed()
    else:
        tasks.raise_failed()


@pytest.mark.parametrize("process", [WebhookProcess, Releaser])
async def test_a_process_ends_when_one_of_its_tasks_has(place: Place, process: Any) -> None:
    made = process(place.settings, place.api, place.settings.clock)
    running = asyncio.create_task(made.run(asyncio.Event()))
    await asyncio.sleep(0.2)
    made.tasks.start({"bug": broken()})
    async with asyncio.timeout(30):
        with pytest.raises(TaskEnded, match="bug"):
            await running


@pytest.mark.parametrize("process", [WebhookProcess, Releaser])
async def test_a_process_with_a_stuck_watch_is_not_alive(place: Place, process: Any) -> None:
    made = process(place.settings, place.api, place.settings.clock)
    watch = OneWatch("/api/v1/nodes", WatchHealth())
    made.followed.begin(made.metrics.watch_age)
    made.followed.follow(watch)
    assert made.alive() == ""
    watch.health.moved_at -= 601.0
    assert made.alive() == "stuck watches: /api/v1/nodes"


@pytest.mark.parametrize(("ends", "other"), [("health", "serving"), ("serving", "health")])
async def test_a_webhook_ends_when_one_of_its_servers_has(
    place: Place, ends: str, other: str
) -> None:
    with pytest.raises(TaskEnded, match="ended: the server on port"):
        async with asyncio.timeout(30), place.webhook() as webhook:
            getattr(webhook, ends).should_exit = True

            async def is_ending() -> bool:
                return bool(getattr(webhook, other).should_exit)

            await place.until(is_ending, "the webhook ends")


async def test_a_controller_that_loses_its_lease_has_not_ended_as_asked(place: Place) -> None:
    settings = place.settings.model_copy(update={"lease_duration_s": 1.5})
    process = ControllerProcess(settings, place.access, place.api, settings.clock)
    running = asyncio.create_task(process.run(asyncio.Event()))

    async def leads() -> bool:
        return process.lease.holds()

    await place.until(leads, "it leads")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.own}/leases/{settings.lease}"
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": "another", "renewTime": now, "leaseDurationSeconds": 60}
    await place.api.patch(path, json.dumps({"spec": spec}).encode())
    async with asyncio.timeout(30):
        with pytest.raises(TaskEnded, match="holds the Lease"):
            await running


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Undo what a process does to all logs: the tests after this one read them too."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("logs_as_before")
def test_that_is_exit_status_1(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(*_: object) -> None:
        raise TaskEnded("ended: releases")

    monkeypatch.setitem(PROCESSES, "ends", ends)
    assert main(["ends", f"--kubeconfig={control_plane.kubeconfig}"]) == 1


async def test_a_webhook_without_a_certificate_says_so_in_an_event_of_its_pod(
    place: Place,
) -> None:
    meta = {"metadata": {"name": "greensched-webhook-1"}}
    path = f"/api/v1/namespaces/{place.own}/pods"
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    spec = {"containers": [container], "nodeSelector": {"nowhere": ""}}
    pod = await place.create(path, {**meta, "spec": spec})
    named = {"pod_name": pod["metadata"]["name"], "pod_uid": pod["metadata"]["uid"]}
    settings = place.settings.model_copy(update={**named, "pod_namespace": place.own})
    process = WebhookProcess(settings, place.api, settings.clock)
    saying = say_when_late(process.ready, place.api, settings, after_s=0.1)
    async with asyncio.timeout(30):
        await saying
    told = json.loads(await place.api.get(f"/api/v1/namespaces/{place.own}/events"))["items"]
    (event,) = (each for each in told if each["reason"] == "NotReady")
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert event["type"] == "Warning"
    assert f"Secret {place.own}/greensched-webhook, which the controller makes" in event["message"]
