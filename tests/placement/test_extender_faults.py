"""The extender is killed, frozen, restarted in the middle of a workload: every pod is placed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

import pytest

from greensched_core import labels
from greensched_simulator.formats.synthetic import SyntheticShape, synthetic_trace
from greensched_testbed.demo.cluster import EXTENDER
from greensched_testbed.replay import Replay, ReplayOptions, ReplayProgress, replay

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane

PODS, SPAN_S = 500, 5.0  # a hundred pods a second
SMALL = SyntheticShape(gpu_share=0.0, cpu_cores=(0.1, 0.2, 0.5))
SETTLE_S = 180.0


class Milestones:
    """Lets others wait until so many pods are bound."""

    def __init__(self) -> None:
        self.bound = 0
        self._changed = asyncio.Event()

    def note(self, progress: ReplayProgress) -> None:
        """Take in how far the replay has come."""
        self.bound = progress.bound
        self._changed.set()

    async def reach(self, bound: int) -> None:
        """Wait until that many pods are bound, or all."""
        while self.bound < min(bound, PODS):
            self._changed.clear()
            await self._changed.wait()


Trouble = Callable[["Scene", Milestones], Coroutine[None, None, None]]


async def killed(scene: Scene, milestones: Milestones) -> None:
    await milestones.reach(100)
    scene.plane.processes[EXTENDER].kill()
    await milestones.reach(250)
    await asyncio.to_thread(scene.greensched.start_extender)


async def frozen(scene: Scene, milestones: Milestones) -> None:
    await milestones.reach(100)
    pid = scene.plane.processes[EXTENDER].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        await milestones.reach(milestones.bound + 10)  # each waits for the timeout, 200 ms
    finally:
        os.kill(pid, signal.SIGCONT)


async def restarted(scene: Scene, milestones: Milestones) -> None:
    await milestones.reach(100)
    await asyncio.to_thread(scene.plane.stop, EXTENDER)
    await asyncio.to_thread(scene.greensched.start_extender)


async def placed_all(scene: Scene, trouble: Trouble) -> Replay:
    """Replay the workload with the trouble in its middle."""
    milestones = Milestones()
    options = ReplayOptions(
        scene.namespace, labels.SCHEDULER_NAME, until="bound", settle_timeout_s=SETTLE_S
    )
    trace = synthetic_trace(PODS, SPAN_S, seed=7, shape=SMALL)
    async with asyncio.TaskGroup() as both:
        replaying = both.create_task(
            replay(trace, scene.api_access, options, on_progress=milestones.note)
        )
        both.create_task(trouble(scene, milestones))
    return replaying.result()


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(killed, id="killed-and-started-again"),
        pytest.param(frozen, id="frozen-for-ten-pods"),
        pytest.param(restarted, id="restarted-in-order"),
    ],
)
async def test_every_one_of_500_pods_is_placed_when_the_extender_is(
    scene: Scene, trouble: Trouble
) -> None:
    machines = [scene.machine(50, 200 + 50 * index, cpu_cores=64) for index in range(4)]
    names = await scene.offer(*machines)
    record = await placed_all(scene, trouble)
    assert record.unplaced == () and not record.timed_out
    assert {run.node for run in record.runs} <= set(names)
    frugal, _ = await scene.offer(scene.machine(50, 60), scene.machine(50, 900))
    assert await scene.place("afterwards") == [frugal], "and its word counts again"
