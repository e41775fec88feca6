"""Nodes come, are cordoned and go while pods flow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from greensched_testbed.nodes import delete_nodes

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane

_PACE_S = 0.05


class Flow:
    """Creates pods one after the other, until it is told to stop."""

    def __init__(self, scene: Scene) -> None:
        self.pods: list[str] = []
        self._scene = scene
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Create pods."""
        while not self._stop.is_set():
            pod = f"flow-{len(self.pods)}"
            await self._scene.create(pod, cpu=0.01)
            self.pods.append(pod)
            await asyncio.sleep(_PACE_S)

    def stop(self) -> None:
        """Create no more."""
        self._stop.set()

    async def reaches(self, node: str) -> int:
        """Wait until a pod that does not exist yet lands on the node; return how many there are.

        From then on the scheduler is known to have seen whatever was changed before the call.
        """
        placements, known = self._scene.placements, set(self.pods)
        async with asyncio.timeout(90):
            await placements.until(
                lambda: any(
                    on == node and pod not in known for pod, on in placements.node_of.items()
                )
            )
        return len(self.pods)


async def test_a_new_node_is_used_and_a_cordoned_or_deleted_one_no_more(scene: Scene) -> None:
    middle, dear, dearest = await scene.offer(
        scene.machine(50, 250), scene.machine(50, 400), scene.machine(50, 600)
    )
    flow = Flow(scene)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(flow.run())
        await flow.reaches(middle)
        (frugal,) = await scene.offer(scene.machine(50, 150))
        await flow.reaches(frugal)
        await scene.api.patch(f"/api/v1/nodes/{frugal}", b'{"spec":{"unschedulable":true}}')
        cordoned = await flow.reaches(middle)
        await delete_nodes(scene.api, [middle])
        deleted = await flow.reaches(dear)
        async with asyncio.timeout(90):
            await scene.placements.until(lambda: len(scene.placements.node_of) > deleted + 20)
        flow.stop()
    nodes = await scene.bound(*flow.pods)
    assert frugal not in nodes[cordoned:]
    assert set(nodes[deleted:]) == {dear}
    believed = await scene.believed()
    assert middle not in believed and not believed[frugal]["schedulable"]
    assert await scene.metric("requests_total", verb="prioritize", outcome="failed") == 0
