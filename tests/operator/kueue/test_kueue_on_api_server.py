"""Kueue's own controller, and ours behind an AdmissionCheck of its queue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.ledger_records import LedgerRecord, What
from greensched_operator.kueue.workloads import CONTROLLER, WAITED
from greensched_operator.ledger.store import LedgerStore
from greensched_operator.objects.queue_gate import KUEUE_QUEUE
from greensched_operator.release.emergency_release import EmergencyRelease
from greensched_testbed.kueue import VERSION
from greensched_testbed.replay import TESTBED_RUNTIME

if TYPE_CHECKING:
    from tests.operator.conftest import Place

pytestmark = pytest.mark.kueue

API = f"/apis/kueue.x-k8s.io/{VERSION}"
DIRTY_THEN_CLEAN = (500.0, 500.0, 500.0, 100.0, 100.0, 500.0)  # g/kWh, hour by hour


@pytest_asyncio.fixture
async def queue(place: Place, kueue: None) -> AsyncIterator[str]:
    """A LocalQueue whose ClusterQueue has our check, and room for one core."""
    name = place.own
    await place.create(f"{API}/resourceflavors", _object("ResourceFlavor", name, {}))
    check = {"controllerName": CONTROLLER}
    await place.create(f"{API}/admissionchecks", _object("AdmissionCheck", name, check))
    resources = [{"name": "cpu", "nominalQuota": "1"}, {"name": "memory", "nominalQuota": "1Gi"}]
    groups = [
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [{"name": name, "resources": resources}],
        }
    ]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": groups,
        "admissionChecksStrategy": {"admissionChecks": [{"name": name}]},
    }
    await place.create(f"{API}/clusterqueues", _object("ClusterQueue", name, spec))
    local = _object("LocalQueue", "team", {"clusterQueue": name})
    await place.create(f"{API}/namespaces/{place.namespace}/localqueues", local)
    yield "team"
    for plural in ("clusterqueues", "admissionchecks", "resourceflavors"):
        await place.api.delete(f"{API}/{plural}/{name}")


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    version = f"kueue.x-k8s.io/{VERSION}"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def submit(place: Place, queue: str, name: str, *, ends_after: str = "", **said: str) -> None:
    """Create a Job as Kueue's webhook would leave it: suspended; once started it runs for ever."""
    body = place.job(name, scheduler="default-scheduler", **said)
    body["metadata"]["labels"] = {KUEUE_QUEUE: queue}
    body["spec"]["suspend"] = True
    if ends_after:
        body["spec"]["template"]["metadata"]["annotations"] = {TESTBED_RUNTIME: ends_after}
    await place.create(place.jobs, body)


async def workload_of(place: Place, name: str) -> dict[str, Any] | None:
    """Return the Workload of a Job."""
    listed = await place.get(f"{API}/namespaces/{place.namespace}/workloads")
    for each in listed["items"]:
        if each["metadata"]["ownerReferences"][0]["name"] == name:
            found: dict[str, Any] = each
            return found
    return None


def check_of(workload: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(iter(workload.get("status", {}).get("admissionChecks", ())), {})
    return found


def is_true(workload: dict[str, Any], condition: str) -> bool:
    conditions = workload.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


async def waits(place: Place, name: str) -> dict[str, Any] | None:
    """Return a Workload that has room in its queue, is not admitted, and says until when."""
    found = await workload_of(place, name)
    if found is None or is_true(found, "Admitted") or not is_true(found, "QuotaReserved"):
        return None
    check = check_of(found)
    is_told = check.get("state") == "Pending" and "start planned for" in check["message"]
    return found if is_told else None


async def admitted(place: Place, name: str) -> dict[str, Any] | None:
    """Return a Workload that is admitted, once its Job is no longer suspended."""
    found = await workload_of(place, name)
    if found is None or not is_true(found, "Admitted"):
        return None
    job = await place.get(f"{place.jobs}/{name}")
    return None if job["spec"].get("suspend") else found


async def told(place: Place, job: str, reason: str) -> bool:
    """Tell whether an event on a Job, which `kubectl describe job` shows, gives a reason."""
    uid = (await place.get(f"{place.jobs}/{job}"))["metadata"]["uid"]
    events = await place.get(f"/api/v1/namespaces/{place.namespace}/events")
    return any(
        each["reason"] == reason and each["involvedObject"].get("uid") == uid
        for each in events["items"]
    )


async def in_a_dirty_hour(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-QUEUE")
    await place.publish("ZZ-QUEUE", DIRTY_THEN_CLEAN)


async def test_a_queued_job_waits_and_says_so_and_run_now_starts_it(
    place: Place, queue: str
) -> None:
    await in_a_dirty_hour(place)
    async with place.controller() as running:
        await submit(place, queue, "train", deadline="6h", runtime="1h")
        held = await place.until(lambda: waits(place, "train"), "it waits")
        said = held["metadata"]["annotations"]
        assert said[labels.PLANNED_START] in check_of(held)["message"]
        assert said[labels.LATEST_START] in check_of(held)["message"]
        assert "100 instead of 500 g/kWh" in check_of(held)["message"]
        check = await place.get(f"{API}/admissionchecks/{place.own}")
        assert is_true(check, "Active")
        seen = running.metrics.registry.get_sample_value
        for resource in ("workloads", "admissionchecks"):
            assert seen("greensched_operator_watch_age_seconds", {"resource": resource}) == 0.0
        now = {"metadata": {"annotations": {labels.RUN_NOW: "true"}}}
        await place.api.patch(f"{place.jobs}/train", json.dumps(now).encode())
        started = await place.until(lambda: admitted(place, "train"), "it is admitted")
        await place.until(lambda: told(place, "train", "Released"), "its Job tells of it")
    assert started["metadata"]["annotations"][labels.RELEASE_REASON] == "run-now"
    assert "run-now" in check_of(started)["message"]


async def test_a_queued_job_starts_when_the_plan_says(place: Place, queue: str) -> None:
    await in_a_dirty_hour(place)
    async with place.controller():
        await submit(place, queue, "train", deadline="6h", runtime="1h")
        await place.until(lambda: waits(place, "train"), "it waits")
        await place.publish("ZZ-QUEUE", (50.0, 50.0, *DIRTY_THEN_CLEAN))
        await place.until(lambda: admitted(place, "train"), "it is admitted in the clean hour")


async def test_the_ledger_tells_of_the_job_that_waited_also_of_its_end(
    place: Place, queue: str
) -> None:
    store = LedgerStore(place.settings.ledger)

    async def ended() -> list[LedgerRecord] | None:
        found = list(store.records(0.0, None, place.namespace))
        return found if any(each.what is What.ENDED for each in found) else None

    await in_a_dirty_hour(place)
    async with place.controller():
        await submit(place, queue, "train", ends_after="1s", deadline="6h", runtime="1h")
        await place.until(lambda: waits(place, "train"), "it waits")
        await place.publish("ZZ-QUEUE", (50.0, 50.0, *DIRTY_THEN_CLEAN))
        records = await place.until(ended, "its end is told")
    store.close()
    told = [each.what for each in records]
    assert set(told[:2]) == {What.HELD, What.PLANNED}, "at one moment"
    assert told[2:] == [What.RELEASED, What.ENDED]
    assert {(each.subject.kind, each.subject.name) for each in records} == {("Job", "train")}
    assert records[-1].planned.energy_j is not None


async def test_a_queued_job_that_asked_for_nothing_is_admitted_at_once(
    place: Place, queue: str
) -> None:
    await in_a_dirty_hour(place)
    async with place.controller():
        await submit(place, queue, "now")
        await place.until(lambda: admitted(place, "now"), "it is admitted")


async def test_with_the_operator_dead_the_releaser_starts_it_at_its_latest_start(
    place: Place, queue: str
) -> None:
    await in_a_dirty_hour(place)
    async with place.controller():
        await submit(place, queue, "train", deadline="6h", runtime="1h")
        held = await place.until(lambda: waits(place, "train"), "it waits")
    async with place.releaser() as releaser:
        await place.until(lambda: _sees(releaser.workloads), "the releaser sees it")
        seen = releaser.metrics.registry.get_sample_value
        for resource in ("workloads", "admissionchecks"):
            assert seen("greensched_operator_watch_age_seconds", {"resource": resource}) is not None
        assert await admitted(place, "train") is None
        path = f"{API}/namespaces/{place.namespace}/workloads/{held['metadata']['name']}"
        past = {"metadata": {"annotations": {labels.LATEST_START: "2020-01-01T00:00:00Z"}}}
        await place.api.patch(path, json.dumps(past).encode())
        started = await place.until(lambda: admitted(place, "train"), "it is admitted")
    assert started["metadata"]["annotations"][labels.RELEASE_REASON] == "releaser"


async def test_before_an_uninstall_it_is_admitted(place: Place, queue: str) -> None:
    await in_a_dirty_hour(place)
    async with place.controller():
        await submit(place, queue, "train", deadline="6h", runtime="1h")
        await place.until(lambda: waits(place, "train"), "it waits")
        settings = place.settings.model_copy(update={"emergency_release_timeout_s": 30.0})
        outcome = await EmergencyRelease(settings, place.api, WallClock()).run(asyncio.Event())
    assert outcome.is_done, outcome.text
    started = await place.until(lambda: admitted(place, "train"), "it is admitted")
    assert started["metadata"]["annotations"][labels.RELEASE_REASON] == "uninstall"


async def test_what_has_waited_by_its_gate_does_not_wait_again(place: Place, queue: str) -> None:
    await in_a_dirty_hour(place)
    async with place.controller():
        await submit(place, queue, "train", deadline="6h", runtime="1h", released_at="earlier")
        started = await place.until(lambda: admitted(place, "train"), "it is admitted")
    assert check_of(started)["message"] == WAITED


async def _sees(held: Any) -> bool:
    return any(True for _ in held)


async def test_what_kueue_took_over_from_our_first_hold_still_waits(
    place: Place, queue: str
) -> None:
    await in_a_dirty_hour(place)
    taken_over = {"released_at": "2026-01-01T00:00:00Z", "release_reason": "started-by-others"}
    async with place.controller():
        await submit(place, queue, "train", deadline="6h", runtime="1h", **taken_over)
        await place.until(lambda: waits(place, "train"), "it waits")
