"""Webhook, controller, releaser and API server are away, one by one and all at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from greensched_testbed.components import API_SERVER

if TYPE_CHECKING:
    from tests.operator.faults.conftest import Stage

pytestmark = [pytest.mark.controlplane, pytest.mark.day]
OURS = ("controller", "webhook", "releaser")


def test_whatever_is_away_work_runs_soon_after_the_api_server_is_back(stage: Stage) -> None:
    unheld: list[float] = []

    async def take_away(stage: Stage) -> None:
        await stage.at(1.0)
        stage.processes.kill("webhook")
        unheld.append(stage.day.now_s())
        await stage.at(3.0)
        unheld.append(stage.day.now_s())
        await stage.start("webhook")
        await stage.at(5.0)
        stage.processes.kill("controller")
        stage.processes.kill("releaser")
        await stage.at(15.0)  # long past the latest start of much
        await stage.start("releaser")
        await stage.at(16.0)
        await asyncio.to_thread(stage.plane.restart, API_SERVER)
        await stage.start("controller")
        for name in OURS:
            stage.processes.kill(name)
        await asyncio.to_thread(stage.plane.restart, API_SERVER)
        for name in OURS:
            await stage.start(name)

    runs = stage.live(take_away)
    stage.assert_promise_kept(runs, grace_s=60.0)
    began_s, ended_s = unheld
    without = {
        f"{run.kind}-{run.place}"
        for run in runs
        if run.created_s and began_s < run.created_s < ended_s
    }
    assert without
    assert without.isdisjoint(stage.ever_held())
    assert stage.reasons()["releaser"] > 0
