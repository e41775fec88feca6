"""Two controllers: the leader is frozen, thaws, and the next is killed; one leads at any time."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from greensched_testbed.operator_processes import OPERATOR_NAMESPACE

if TYPE_CHECKING:
    from tests.operator.faults.conftest import Stage

pytestmark = [pytest.mark.controlplane, pytest.mark.day]
FIRST, SECOND = "controller", "second"
FROZEN_S = 8.0  # real seconds, beyond the Lease's three


async def leader(stage: Stage) -> str:
    """Return who holds the Lease."""
    path = "jsonpath={.spec.holderIdentity}"
    told = await stage.kubectl(
        "get", "lease", "-n", OPERATOR_NAMESPACE, "greensched-operator", "-o", path
    )
    return told.strip()


async def until_led_by(stage: Stage, name: str) -> None:
    """Wait until one leads."""
    async with asyncio.timeout(30):
        while await leader(stage) != name:
            await asyncio.sleep(0.2)  # it lies in another process


async def until_ended(stage: Stage, name: str) -> None:
    """Wait until one has ended by itself."""
    async with asyncio.timeout(30):
        while stage.plane.processes[f"operator-{name}"].is_running():
            await asyncio.sleep(0.1)


def test_a_leader_that_was_frozen_leads_no_more_and_the_next_may_be_killed(stage: Stage) -> None:
    seen: list[str] = []

    async def freeze_and_kill(stage: Stage) -> None:
        await stage.start("controller", SECOND)
        seen.append(await leader(stage))
        await stage.at(3.0)
        frozen = stage.processes.pid(FIRST)
        os.kill(frozen, signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        await until_led_by(stage, SECOND)
        os.kill(frozen, signal.SIGCONT)
        await until_ended(stage, FIRST)  # a kubelet starts it again
        seen.append(await leader(stage))
        await stage.start("controller", FIRST)
        stage.processes.kill(SECOND)
        await until_led_by(stage, FIRST)
        seen.append(await leader(stage))

    runs = stage.live(freeze_and_kill)
    stage.assert_promise_kept(runs)
    assert seen == [FIRST, SECOND, FIRST]
    assert stage.reasons().get("planned-start", 0) > 0, stage.reasons()
