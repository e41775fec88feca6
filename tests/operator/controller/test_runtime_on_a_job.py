"""How long a Job runs, said on the Job alone: what it means for others, and what it must not do."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.ledger_records import DELETED_WHILE_HELD
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.ledger.store import LedgerStore
from greensched_testbed.errors import CommandFailed
from tests.operator.controller.test_controller_on_api_server import planned, said

if TYPE_CHECKING:
    from greensched_testbed.controlplane import ControlPlane
    from tests.operator.conftest import Place

# g/kWh: clean once, in the fourth quarter of an hour. The first is this one: ten minutes from now
# end in the second at the latest, an hour in the fourth at the earliest.
QUARTERS = (500.0, 500.0, 500.0, 100.0, *[500.0] * 20)


def with_cores(job: dict[str, Any], cores: str) -> dict[str, Any]:
    [container] = job["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"]["cpu"] = cores
    return job


async def on_a_node(place: Place) -> bool:
    items = (await place.get(place.pods))["items"]
    return any(each["spec"].get("nodeName") for each in items)


async def test_held_work_is_planned_into_the_room_that_a_job_says_it_leaves(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-ROOM", cpu_cores=16.0)
    await place.publish("ZZ-ROOM", QUARTERS, slot_s=900.0)
    first = with_cores(place.job("first", runtime="10m"), "15")
    first["spec"]["template"]["spec"]["nodeName"] = place.nodes[0]

    async with place.webhook(), place.controller():
        await place.create(place.jobs, first)
        await place.until(lambda: on_a_node(place), "its pod is on the node")
        second = with_cores(place.job("second", deadline="5h", runtime="5m"), "4")
        await place.create(place.jobs, second)
        held = await place.until(lambda: planned(place, f"{place.jobs}/second"), "it is planned")
    wait_s = parse_timestamp(said(held)[labels.PLANNED_START]) - time.time()
    assert 1500.0 <= wait_s <= 2820.0, "in the clean quarter, which 15 cores for an hour would fill"


async def test_a_job_with_a_runtime_can_be_replaced_by_its_manifest(
    place: Place, control_plane: ControlPlane
) -> None:
    """Of a selector of its own; the API server refuses to have any other Job replaced."""
    job = place.job("train", runtime="10m")
    job |= {"apiVersion": "batch/v1", "kind": "Job"}
    job["metadata"]["namespace"] = place.namespace
    job["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"app": "train"}}}
    job["spec"]["template"]["metadata"] = {"labels": {"app": "train"}}
    async with place.webhook():
        made = await place.create(place.jobs, job)
        assert "annotations" not in made["spec"]["template"]["metadata"]
        replacing = partial(control_plane.kubectl, "replace", "-f", "-", stdin=json.dumps(job))

        async def replaced() -> bool:
            try:
                return "replaced" in await asyncio.to_thread(replacing)
            except CommandFailed as fault:  # the Job's controller wrote its status meanwhile
                assert "object has been modified" in str(fault)
                return False

        await place.until(replaced, "it is replaced")


@pytest.mark.parametrize("kind", ["jobs", "pods"])
async def test_what_is_deleted_while_it_is_held_has_ended_in_the_ledger(
    place: Place, kind: str
) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-GONE")
    await place.publish("ZZ-GONE", (500.0, 500.0, 500.0, 100.0, 100.0, 500.0))
    path = f"{getattr(place, kind)}/gone"
    create = place.create_job if kind == "jobs" else place.create_pod
    async with place.webhook(), place.controller():
        await create("gone", deadline="6h", runtime="1h")
        await place.until(partial(planned, place, path), "it is planned")
        await place.api.delete(path, {"propagationPolicy": "Background"})
        reasons = partial(end_reasons, place)
        assert await place.until(reasons, "its end is told") == [DELETED_WHILE_HELD]


async def end_reasons(place: Place) -> list[str | None]:
    """Return why work ended, by the ledger."""
    store = LedgerStore(place.settings.ledger)
    try:
        records = list(store.records(0.0, None, place.namespace))
    finally:
        store.close()
    return [each.reason for each in records if each.what == "ended"]
