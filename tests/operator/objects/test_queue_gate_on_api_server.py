"""Our gate on queued Jobs of a real API server; the tests suspend them, as Kueue does."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.errors import ApiUnavailable
from greensched_operator.objects.queue_gate import GATED_BY, KUEUE_QUEUE
from greensched_operator.objects.release_patch import JSON_PATCH, ReleaseReason, release_patch
from greensched_operator.release.emergency_release import EmergencyRelease

if TYPE_CHECKING:
    from tests.operator.conftest import Place

OTHER = "example.com/wait"
PAST = "2020-01-01T00:00:00Z"


async def submit(place: Place, name: str, gates: str = OTHER, **said: str) -> dict[str, Any]:
    body = place.job(name, **said)
    body["metadata"]["labels"] = {KUEUE_QUEUE: "batch"}
    if gates:
        body["metadata"]["annotations"][GATED_BY] = gates
    body["spec"]["suspend"] = True
    return await place.create(place.jobs, body)


def said(job: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = job["metadata"]["annotations"]
    return found


async def released(place: Place, name: str) -> dict[str, Any] | None:
    """Return a Job that Kueue may consider as far as we go, and that only Kueue may resume."""
    job = await place.get(f"{place.jobs}/{name}")
    assert job["spec"]["suspend"] is True
    return None if labels.GATE in said(job).get(GATED_BY, "") else job


async def planned(place: Place, name: str) -> bool:
    return labels.PLANNED_START in said(await place.get(f"{place.jobs}/{name}"))


async def in_a_dirty_hour(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-GATE")
    await place.publish("ZZ-GATE", (500.0, 500.0, 500.0, 100.0, 100.0, 500.0))


async def test_a_queued_job_waits_by_its_gate_until_the_plan_says(place: Place) -> None:
    await in_a_dirty_hour(place)
    async with place.webhook(), place.controller():
        made = await submit(place, "train", deadline="6h", runtime="1h")
        assert said(made)[GATED_BY] == f"{OTHER},{labels.GATE}"
        await place.until(lambda: planned(place, "train"), "it has a plan")
        assert await released(place, "train") is None
        await place.publish("ZZ-GATE", (50.0, 50.0, 500.0, 500.0, 500.0))
        job = await place.until(lambda: released(place, "train"), "our gate goes")
    assert said(job)[GATED_BY] == OTHER
    assert labels.LATEST_START not in said(job)


async def test_run_now_takes_the_gate_off_and_it_does_not_come_back(place: Place) -> None:
    await in_a_dirty_hour(place)
    async with place.webhook(), place.controller():
        await submit(place, "train", gates="", deadline="6h", runtime="1h")
        await place.until(lambda: planned(place, "train"), "it has a plan")
        now = {"metadata": {"annotations": {labels.RUN_NOW: "true"}}}
        await place.api.patch(f"{place.jobs}/train", json.dumps(now).encode())
        job = await place.until(lambda: released(place, "train"), "our gate goes")
    assert GATED_BY not in said(job)
    assert said(job)[labels.RELEASE_REASON] == "run-now"


async def test_the_releaser_takes_off_what_is_past_its_latest_start(place: Place) -> None:
    gates = f"{OTHER},{labels.GATE}"
    await submit(place, "late", gates, deadline="6h", latest_start=PAST)
    async with place.releaser():
        job = await place.until(lambda: released(place, "late"), "our gate goes")
    assert said(job)[GATED_BY] == OTHER
    assert said(job)[labels.RELEASE_REASON] == "releaser"


async def test_before_an_uninstall_all_gates_go(place: Place) -> None:
    await submit(place, "held", labels.GATE, deadline="6h", latest_start="2099-01-01T00:00:00Z")
    settings = place.settings.model_copy(update={"emergency_release_timeout_s": 30.0})
    outcome = await EmergencyRelease(settings, place.api, WallClock()).run(asyncio.Event())
    assert outcome.is_done, outcome.text
    assert await released(place, "held") is not None


async def test_a_job_of_that_name_made_anew_keeps_its_gate(place: Place) -> None:
    await submit(place, "train", labels.GATE, latest_start=PAST)
    body = release_patch("Job", "of-the-old-one", ReleaseReason.RELEASER, 0.0, labels.GATE)
    with pytest.raises(ApiUnavailable) as refused:
        await place.api.patch(f"{place.jobs}/train", body, JSON_PATCH)
    assert refused.value.status == 422
    assert await released(place, "train") is None
