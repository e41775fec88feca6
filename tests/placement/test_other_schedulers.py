"""Whoever did not opt in notices nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane


async def who_placed(scene: Scene, pod: str) -> str:
    """The scheduler that says it placed the pod; events come a little later than bindings."""

    async def tellers() -> list[str]:
        events = await scene.events(pod)
        return [each["reportingComponent"] for each in events if each["reason"] == "Scheduled"]

    return (await scene.until(tellers))[0]


async def test_pods_of_the_default_scheduler_are_placed_by_it_and_never_asked_about(
    scene: Scene,
) -> None:
    names = await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    asked = await scene.metric("requests_total")
    pods = [f"plain-{index}" for index in range(6)]
    assert set(await scene.place(*pods, scheduler="default-scheduler")) <= set(names)
    assert await scene.metric("requests_total") == asked
    assert await who_placed(scene, pods[0]) == "default-scheduler"


async def test_a_pod_that_opts_in_is_placed_by_the_second_scheduler_and_asked_about_once(
    scene: Scene,
) -> None:
    await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    asked = await scene.metric("requests_total", verb="prioritize", outcome="ok")
    await scene.place("green")
    assert await who_placed(scene, "green") == "greensched"
    assert await scene.metric("requests_total", verb="prioritize", outcome="ok") == asked + 1
    assert await scene.metric("requests_total", verb="filter") == 0, "no limits, no filter"


async def test_a_pod_of_another_profile_gets_no_preference_from_us(scene: Scene) -> None:
    names = await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    pod = {"metadata": {"name": "foreign"}, "spec": {"schedulerName": "another"}}
    reply = await scene.http.post(
        f"{scene.greensched.extender_url}/prioritize",
        json={"Pod": pod, "Nodes": None, "NodeNames": list(names)},
    )
    assert (reply.status_code, reply.content) == (200, b"[]")
