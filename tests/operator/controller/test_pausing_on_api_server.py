"""A checkpointable Job on a real API server: suspended in a dirty hour, and resumed in time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from greensched_core import labels
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.writing.writing import COMPONENT

if TYPE_CHECKING:
    from tests.operator.conftest import Place, Running

SLOT_S = 900.0
FLAT = [300.0] * 24
DIRTY_THEN_CLEAN = [600.0] * 4 + [50.0] * 20  # g/kWh, by quarter hours
SCHEDULER = "default-scheduler"  # the one that the tests' cluster has
JOB_CONTROLLER = "job-controller"  # of Kubernetes, in its events


def said(item: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = item["metadata"].get("annotations", {})
    return found


def with_default_scheduler(place: Place) -> Place:
    settings = place.settings.model_copy(update={"scheduler_names": [SCHEDULER]})
    return replace(place, settings=settings)


async def notes(place: Place, reason: str, component: str = COMPONENT) -> list[str]:
    """Return what the events of a reason say, ours unless another component is named."""
    events = (await place.get(f"/api/v1/namespaces/{place.namespace}/events"))["items"]
    ours = [each for each in events if each["source"].get("component") == component]
    return [each["message"] for each in ours if each["reason"] == reason]


async def running(
    place: Place, *, pods: int = 1, finalizer: str = "", **changes: str
) -> dict[str, Any]:
    """Have a checkpointable Job, all of whose pods run."""
    asked = {"deadline": "5h", "runtime": "1h", "checkpointable": "true"} | changes
    job = place.job("train", scheduler=SCHEDULER, **asked)
    job["spec"] |= {"parallelism": pods, "completions": pods}
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    job["spec"]["template"]["metadata"] |= {"finalizers": [finalizer]} if finalizer else {}
    await place.create(place.jobs, job)

    async def all_run() -> dict[str, Any] | None:
        found = await place.get(f"{place.jobs}/train")
        return found if found["status"].get("ready") == pods else None

    found: dict[str, Any] = await place.until(all_run, "all its pods run")
    return found


async def paused(place: Place) -> dict[str, Any] | None:
    found = await place.get(f"{place.jobs}/train")
    return found if found["spec"].get("suspend") and labels.PAUSED_AT in said(found) else None


async def planned(place: Place, status: str) -> dict[str, Any] | None:
    """Return the condition of a planned start once it has a status."""
    found = (await place.get(f"{place.jobs}/train"))["status"].get("conditions", ())
    ours = [each for each in found if each["type"] == labels.START_PLANNED]
    return ours[0] if ours and ours[0]["status"] == status else None


async def has_stopped(place: Place) -> bool:
    """Tell whether its pods are gone, and the Job controller counts its time no more."""
    job = await place.get(f"{place.jobs}/train")
    return not (await place.get(place.pods))["items"] and "startTime" not in job["status"]


async def prepared(place: Place, zone: str) -> None:
    """Have a node, a flat grid, and a policy that pauses at once."""
    await place.green_policy(mode="enforce", pause={"minimumRun": "1s", "minimumPause": "0s"})
    await place.offer_node(zone)
    await place.publish(zone, FLAT, slot_s=SLOT_S)


async def planned_anew(place: Place, operator: Running, zone: str, grams: Sequence[float]) -> None:
    """Publish a forecast, and wait until it has been planned by."""
    replans = partial(
        operator.metrics.registry.get_sample_value, "greensched_operator_replan_seconds_count"
    )
    before = replans() or 0.0
    await place.publish(zone, grams, slot_s=SLOT_S)

    async def is_begun() -> bool:
        return (replans() or 0.0) > before

    await place.until(is_begun, "all is planned anew")


def resumption_told(reason: str) -> tuple[str, str]:
    """Who tells of a resumption for `reason`, and how its event begins.

    The Job's pods may have gone when all was planned anew, or a moment later: then it is resumed
    as planned, of which the Job controller alone tells.
    """
    return {
        "now-is-best": (COMPONENT, "now-is-best: "),
        "resumed": (JOB_CONTROLLER, "Job resumed"),
    }[reason]


async def test_a_job_is_paused_in_dirty_hours_and_resumed_when_they_are_over(place: Place) -> None:
    place = with_default_scheduler(place)
    await prepared(place, "ZZ-PAUSE")
    async with place.controller() as operator:
        first = await running(place, pods=3)
        await place.publish("ZZ-PAUSE", DIRTY_THEN_CLEAN, slot_s=SLOT_S)
        stopped = await place.until(lambda: paused(place), "it is paused")
        told = await place.until(lambda: notes(place, "Paused"), "an event tells")

        await place.until(partial(has_stopped, place), "its pods end")
        await place.publish("ZZ-PAUSE", FLAT, slot_s=SLOT_S)
        again = await place.until(lambda: place.started(f"{place.jobs}/train"), "it is resumed")
        teller, note = resumption_told(said(again)[labels.RELEASE_REASON])
        resumed = await place.until(lambda: notes(place, "Resumed", teller), "an event tells")

        async def all_run() -> dict[str, Any] | None:
            found = await place.get(f"{place.jobs}/train")
            return found if found["status"].get("ready") == 3 else None

        last = await place.until(all_run, "all its pods run again")
        counted = operator.metrics.registry.get_sample_value(
            "greensched_operator_pauses_total", {"outcome": "paused"}
        )
    marks, spec = said(stopped), stopped["spec"]
    paused_at_s = parse_timestamp(marks[labels.PAUSED_AT])
    assert 2 * SLOT_S < parse_timestamp(marks[labels.PLANNED_START]) - paused_at_s < 5 * SLOT_S
    assert parse_timestamp(marks[labels.LATEST_START]) > parse_timestamp(
        marks[labels.PLANNED_START]
    )
    assert "50 instead of" in marks[labels.HOLD_REASON]
    assert marks[labels.PAUSES] == "1"
    assert marks[labels.HOLD_REASON] in told[0]
    assert resumed[0].startswith(note)
    assert last["status"]["startTime"] > first["status"]["startTime"]
    assert not last["status"].get("failed")
    assert last["spec"]["template"] == spec["template"] == first["spec"]["template"]
    assert counted == 1.0


async def test_the_condition_tells_until_when_a_job_is_paused_and_then_why_no_more(
    place: Place,
) -> None:
    place = with_default_scheduler(place)
    await prepared(place, "ZZ-TELL")
    async with place.controller():
        await running(place)
        await place.publish("ZZ-TELL", DIRTY_THEN_CLEAN, slot_s=SLOT_S)
        meanwhile = await place.until(partial(planned, place, "True"), "the condition tells")
        await place.publish("ZZ-TELL", FLAT, slot_s=SLOT_S)
        again = await place.until(lambda: place.started(f"{place.jobs}/train"), "it is resumed")
        after = await place.until(partial(planned, place, "False"), "the condition tells")
    assert "start planned for 2" in meanwhile["message"] and "paused: " in meanwhile["message"]
    assert after["message"].startswith(said(again)[labels.RELEASE_REASON])


async def test_without_the_controller_the_releaser_resumes_a_job_at_its_latest(
    place: Place,
) -> None:
    place = with_default_scheduler(place)
    await prepared(place, "ZZ-ALONE")
    async with place.controller():
        await running(place)
        await place.publish("ZZ-ALONE", DIRTY_THEN_CLEAN, slot_s=SLOT_S)
        held = await place.until(lambda: paused(place), "it is paused")
    soon = {"metadata": {"annotations": {labels.LATEST_START: said(held)[labels.PAUSED_AT]}}}
    async with place.releaser():
        assert await paused(place)
        await place.api.patch(f"{place.jobs}/train", json.dumps(soon).encode())
        job = await place.until(lambda: place.started(f"{place.jobs}/train"), "it is resumed")
    assert said(job)[labels.RELEASE_REASON] == "releaser"


async def test_who_no_longer_asks_for_pauses_is_resumed_and_not_paused_again(place: Place) -> None:
    place = with_default_scheduler(place)
    await prepared(place, "ZZ-LEAVE")
    async with place.controller() as operator:
        await running(place)
        await place.publish("ZZ-LEAVE", DIRTY_THEN_CLEAN, slot_s=SLOT_S)
        await place.until(lambda: paused(place), "it is paused")
        change = {"metadata": {"annotations": {labels.CHECKPOINTABLE: None}}}
        await place.api.patch(f"{place.jobs}/train", json.dumps(change).encode())
        job = await place.until(lambda: place.started(f"{place.jobs}/train"), "it is resumed")
        await planned_anew(place, operator, "ZZ-LEAVE", DIRTY_THEN_CLEAN)
        assert not await paused(place)
    assert said(job)[labels.RELEASE_REASON] == "opt-out"


async def test_who_resumes_a_paused_job_by_hand_is_not_fought(place: Place) -> None:
    place = with_default_scheduler(place)
    await prepared(place, "ZZ-HAND")
    async with place.controller() as operator:
        await running(place)
        await place.publish("ZZ-HAND", DIRTY_THEN_CLEAN, slot_s=SLOT_S)
        await place.until(lambda: paused(place), "it is paused")
        by_hand = json.dumps({"spec": {"suspend": False}}).encode()
        await place.api.patch(f"{place.jobs}/train", by_hand)

        async def unmarked() -> bool:
            now = said(await place.get(f"{place.jobs}/train"))
            return now.get(labels.RELEASE_REASON) == "started-by-others"

        await place.until(unmarked, "our mark goes")
        await planned_anew(place, operator, "ZZ-HAND", [700.0, *DIRTY_THEN_CLEAN[1:]])
        assert not await paused(place)


async def test_pods_that_are_slow_to_end_have_ended_before_a_job_is_resumed(place: Place) -> None:
    """A finalizer stands for a checkpoint that takes a while: else two would write it at once."""
    place = with_default_scheduler(place)
    await prepared(place, "ZZ-SLOW")
    async with place.controller() as operator:
        await running(place, pods=2, finalizer="example.org/saves")
        await place.publish("ZZ-SLOW", DIRTY_THEN_CLEAN, slot_s=SLOT_S)
        await place.until(lambda: paused(place), "it is paused")

        async def leaving() -> bool:
            found = await place.get(f"{place.jobs}/train")
            return bool(found["status"].get("terminating") == 2)

        await place.until(leaving, "its pods are asked to end")
        await planned_anew(place, operator, "ZZ-SLOW", FLAT)
        assert await paused(place)
        ended = json.dumps({"metadata": {"finalizers": None}}).encode()
        for pod in (await place.get(place.pods))["items"]:
            await place.api.patch(f"{place.pods}/{pod['metadata']['name']}", ended)
        await place.until(lambda: place.started(f"{place.jobs}/train"), "it is resumed")

        async def all_run() -> dict[str, Any] | None:
            found = await place.get(f"{place.jobs}/train")
            return found if found["status"].get("ready") == 2 else None

        job = await place.until(all_run, "all its pods run again")
        for pod in (await place.get(place.pods))["items"]:
            await place.api.patch(f"{place.pods}/{pod['metadata']['name']}", ended)
    assert not job["status"].get("failed")
