"""The controller is killed twenty times in a day, at random, and started again at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from greensched_core import labels
from tests.operator.faults.conftest import annotations_of

if TYPE_CHECKING:
    from tests.operator.faults.conftest import Stage

# The one day of faults that `make test` lives through; the others are those of `make fault-days`.
pytestmark = pytest.mark.controlplane
SPELLS, KILLS_A_SPELL = 2, 10


async def kill_twenty_times(stage: Stage) -> None:
    dice = np.random.default_rng(3)
    for spell in range(SPELLS):
        await stage.at(1.5 + 9.0 * spell)  # between them it has time to start, and to lead
        for lives_s in dice.uniform(0.05, 1.5, KILLS_A_SPELL):
            stage.processes.kill("controller")
            stage.processes.start("controller", is_waited_for=False)
            await asyncio.sleep(float(lives_s))  # real seconds


def test_a_controller_killed_twenty_times_loses_nothing_and_is_never_late(stage: Stage) -> None:
    runs = stage.live(kill_twenty_times)
    stage.assert_promise_kept(runs)
    reasons = stage.reasons()
    assert reasons.get("planned-start", 0) > 0, reasons  # it also did its work
    as_planned = {
        each["metadata"]["name"]
        for each in stage.items("jobs")
        if annotations_of(each).get(labels.RELEASE_REASON) == "planned-start"
    }
    told = {
        reason: {each["involvedObject"]["name"] for each in stage.items("events")
                 if each["reason"] == reason}
        for reason in ("Held", "Resumed", "Released")
    }  # fmt: skip
    without = as_planned & told["Held"] - told["Released"]
    assert without and without <= told["Resumed"], "Kubernetes tells that planned Jobs have started"
