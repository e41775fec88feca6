"""The API server goes away and comes back: the extender's picture of the cluster catches up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from greensched_testbed.components import API_SERVER
from greensched_testbed.demo.cluster import SECOND_SCHEDULER
from greensched_testbed.errors import ProcessDied

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane


async def revive_scheduler(scene: Scene) -> None:
    """Do what a kubelet would: a scheduler that lost its Lease ends, and is started again."""
    while True:
        try:
            scene.plane.processes[SECOND_SCHEDULER].check()
        except ProcessDied:
            await asyncio.to_thread(scene.greensched.start_scheduler)
        await asyncio.sleep(1.0)


async def watch_ages(scene: Scene) -> list[float]:
    """Seconds without a live watch, for each kind of object."""
    kinds = ("nodes", "pods")
    return [await scene.metric("watch_age_seconds", resource=kind) for kind in kinds]


async def test_the_snapshot_recovers_when_the_api_server_restarts_while_pods_flow(
    scene: Scene,
) -> None:
    middle, _ = await scene.offer(scene.machine(50, 250), scene.machine(50, 400))
    assert await scene.place("before") == [middle]
    assert await watch_ages(scene) == [0.0, 0.0]

    await asyncio.to_thread(scene.plane.stop, API_SERVER)

    async def noticed() -> bool:
        return min(await watch_ages(scene)) > 0.0

    await scene.until(noticed)
    assert set(await scene.believed()) >= {middle}, "the last good picture stays"
    await asyncio.to_thread(scene.plane.start, API_SERVER)
    await scene.create(*(f"during-{index}" for index in range(20)), cpu=0.1)

    async def watches_again() -> bool:
        return max(await watch_ages(scene)) == 0.0

    await scene.until(watches_again)
    kubelet = asyncio.create_task(revive_scheduler(scene))
    await scene.bound(*(f"during-{index}" for index in range(20)))
    frugal, _ = await scene.offer(scene.machine(50, 60), scene.machine(50, 900))
    assert await scene.place("after-a", "after-b") == [frugal] * 2
    kubelet.cancel()
    await asyncio.gather(kubelet, return_exceptions=True)
    ready = await scene.http.get(f"{scene.greensched.extender_url}/readyz")
    assert (ready.status_code, ready.text) == (200, "ok")
