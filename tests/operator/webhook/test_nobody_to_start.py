"""The webhook holds only while somebody lives who can start what is held."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from greensched_core import labels
from greensched_operator.webhook.webhook_app import MUTATE

if TYPE_CHECKING:
    from greensched_operator.webhook.webhook import WebhookProcess
    from tests.operator.conftest import Place

UNRELEASABLE = {"outcome": "unreleasable"}


def counted(webhook: WebhookProcess) -> float:
    registry = webhook.metrics.registry
    return registry.get_sample_value("greensched_webhook_reviews_total", UNRELEASABLE) or 0.0


async def leave_lease(place: Place, name: str, *, ahead_s: float) -> None:
    """Have a Lease of a process that is dead, whose clock went ahead."""
    renewed = (datetime.now(UTC) + timedelta(seconds=ahead_s)).isoformat(timespec="microseconds")
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 15,
            "renewTime": renewed.replace("+00:00", "Z")}  # fmt: skip
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.own}/leases"
    await place.create(path, {"metadata": {"name": name}, "spec": spec})


async def warnings_of(place: Place, item: dict[str, Any]) -> list[str]:
    """Return what the webhook tells whoever creates a Job."""
    request = {"uid": "1", "kind": {"kind": "Job"}, "operation": "CREATE",
               "namespace": place.namespace, "object": item}  # fmt: skip
    async with httpx.AsyncClient(verify=False, trust_env=False) as http:
        url = f"https://127.0.0.1:{place.settings.webhook_port}{MUTATE}"
        reply = await http.post(url, content=json.dumps({"request": request}))
    told: list[str] = reply.json()["response"].get("warnings", [])
    return told


@pytest.mark.finding(2)
async def test_what_nobody_could_start_is_not_held_and_says_so(place: Place) -> None:
    await place.green_policy(mode="enforce")
    for lease in (place.settings.lease, place.settings.heartbeat_lease):
        await leave_lease(place, lease, ahead_s=3600.0)
    async with place.webhook(has_heartbeat=False) as webhook:
        job = await place.create_job("train", deadline="6h")
        pod = await place.create_pod("one", max_delay="2h")
        told = await warnings_of(place, place.job("more", deadline="6h"))
        assert counted(webhook) == 3
    assert not job["spec"].get("suspend")
    assert not pod["spec"].get("schedulingGates")
    for made in (job, pod):
        said = made["metadata"]["annotations"]
        assert said[labels.HOLD_REASON].startswith("not held: nothing could start it again")
        assert labels.LATEST_START not in said
    assert told[0].startswith("greensched: not held: nothing could start it again")


@pytest.mark.finding(2)
@pytest.mark.parametrize("alive", ["releaser", "controller"])
async def test_one_who_can_start_it_is_enough(place: Place, alive: str) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook(has_heartbeat=False) as webhook:
        assert not (await place.create_job("before", deadline="6h"))["spec"].get("suspend")
        async with getattr(place, alive)():
            async with asyncio.timeout(15):  # by its second word at the latest
                while not webhook.surroundings().is_releasable:
                    await asyncio.sleep(0.05)
            made = await place.create_job("after", deadline="6h")
    assert made["metadata"]["annotations"][labels.LATEST_START]
