"""The controller beside a real API server: it plans, writes, and starts work in time."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.kubernetes_api import STRATEGIC_MERGE_PATCH
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.ledger.store import LedgerStore
from greensched_operator.objects.green_policy import BudgetPeriod
from greensched_operator.objects.release_patch import ReleaseReason, release_patch
from greensched_operator.objects.workloads import WorkKind

if TYPE_CHECKING:
    from tests.operator.conftest import Place

DIRTY_THEN_CLEAN = (500.0, 500.0, 500.0, 100.0, 100.0, 500.0)  # g/kWh, hour by hour


def said(item: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = item["metadata"].get("annotations", {})
    return found


async def notes(place: Place, reason: str) -> list[str]:
    events = (await place.get(f"/api/v1/namespaces/{place.namespace}/events"))["items"]
    return [each["message"] for each in events if each["reason"] == reason]


async def planned(place: Place, path: str) -> dict[str, Any] | None:
    found = await place.get(path)
    return found if labels.PLANNED_START in said(found) else None


async def test_a_job_waits_for_the_clean_hours_and_says_so(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-WAIT")
    await place.publish("ZZ-WAIT", DIRTY_THEN_CLEAN)
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="6h", runtime="1h")
        held = await place.until(lambda: planned(place, f"{place.jobs}/train"), "it is planned")
        told = await place.until(lambda: notes(place, "Held"), "an event tells")
    start_s = parse_timestamp(said(held)[labels.PLANNED_START])
    assert held["spec"]["suspend"] is True
    assert 3 * 3600 - 900 <= start_s - time.time() <= 4 * 3600
    assert "100 instead of 500 g/kWh" in said(held)[labels.HOLD_REASON]
    conditions = {each["type"]: each["message"] for each in held["status"]["conditions"]}
    assert format_timestamp(start_s) in conditions[labels.START_PLANNED]
    assert len(told) == 1


async def test_on_a_flat_grid_nothing_waits(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-FLAT")
    await place.publish("ZZ-FLAT", [400.0] * 24)
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="6h", runtime="1h")
        await place.create_pod("one", deadline="6h", runtime="1h")
        job = await place.until(lambda: place.started(f"{place.jobs}/train"), "the Job runs")
        pod = await place.until(lambda: place.started(f"{place.pods}/one"), "the pod is free")
        await place.until(lambda: notes(place, "Released"), "an event tells")
    for each in (job, pod):
        assert said(each)[labels.RELEASE_REASON] == "now-is-best"
        assert labels.LATEST_START not in said(each)


async def test_events_warn_of_a_job_that_fits_no_node_and_of_its_missing_profile(
    place: Place,
) -> None:
    await place.green_policy(mode="enforce")
    for _ in range(2):  # of 16 cores each
        await place.offer_node("ZZ-WARN")
    await place.publish("ZZ-WARN", DIRTY_THEN_CLEAN)
    job = place.job("large", deadline="6h", runtime="1h", power_profile="absent")
    limits = {"limits": {"cpu": "17"}}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    async with place.webhook(), place.controller():
        await place.create(place.jobs, job)
        (of_nodes,) = await place.until(lambda: notes(place, "NoNodeFits"), "an event tells")
        (of_profile,) = await place.until(lambda: notes(place, "ProfileFault"), "and another")
    assert "no node can take a pod of 17 cores" in of_nodes
    assert "'absent' is missing in namespace" in of_profile


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        pytest.param(labels.RUN_NOW, "true", "run-now", id="run-now"),
        pytest.param(labels.DEADLINE, None, "opt-out", id="deadline-taken-away"),
        pytest.param(labels.DEADLINE, "soon", "opt-out", id="deadline-spoilt"),
        pytest.param(labels.LATEST_START, None, "opt-out", id="mark-taken-away"),
        pytest.param(labels.DEADLINE, "1h6m30s", "latest-start", id="deadline-drawn-in"),
    ],
)
async def test_a_user_starts_held_work_by_an_annotation(
    place: Place, annotation: str, value: str | None, reason: str
) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-EDIT")
    await place.publish("ZZ-EDIT", DIRTY_THEN_CLEAN)
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="6h", runtime="1h")
        await place.until(lambda: planned(place, f"{place.jobs}/train"), "it is planned")
        change = {"metadata": {"annotations": {annotation: value}}}
        await place.api.patch(f"{place.jobs}/train", json.dumps(change).encode())
        job = await place.until(lambda: place.started(f"{place.jobs}/train"), "the Job runs")
    assert said(job)[labels.RELEASE_REASON] == reason


async def settled(place: Place, path: str) -> dict[str, Any] | None:
    """Return the condition of a planned start once it says that the wait is over."""
    found = (await place.get(path))["status"].get("conditions", ())
    conditions = [each for each in found if each["type"] == labels.START_PLANNED]
    return conditions[0] if conditions and conditions[0]["status"] == "False" else None


@pytest.mark.parametrize("is_alive", [True, False], ids=["by-the-controller", "by-others"])
async def test_the_condition_tells_why_a_planned_wait_ended(place: Place, is_alive: bool) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-OVER")
    await place.publish("ZZ-OVER", DIRTY_THEN_CLEAN)
    paths = (f"{place.jobs}/train", f"{place.pods}/one")
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="6h", runtime="1h")
        await place.create_pod("one", deadline="6h", runtime="1h")
        for path in paths:
            await place.until(partial(planned, place, path), "it is planned")
            change = {"metadata": {"annotations": {labels.RUN_NOW: "true"}}}
            body = json.dumps(change).encode()
            if not is_alive:
                body = release_patch(
                    WorkKind.JOB if path == paths[0] else WorkKind.POD,
                    "",
                    ReleaseReason.RELEASER,
                    time.time(),
                )
            await place.api.patch(path, body, STRATEGIC_MERGE_PATCH)
        told = [
            await place.until(partial(settled, place, path), "the condition tells")
            for path in paths
        ]
    expected = "RunNow" if is_alive else "Releaser"
    assert [each["reason"] for each in told] == [expected] * 2
    text = "run-now: " if is_alive else "releaser: started by the releaser"
    assert all(each["message"].startswith(text) for each in told)


async def test_a_new_forecast_moves_the_plan_and_a_new_policy_ends_it(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-MOVE")
    await place.publish("ZZ-MOVE", DIRTY_THEN_CLEAN)
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="6h", runtime="1h")
        held = await place.until(lambda: planned(place, f"{place.jobs}/train"), "it is planned")
        before_s = parse_timestamp(said(held)[labels.PLANNED_START])
        await place.publish("ZZ-MOVE", (500.0, 50.0, 50.0, 400.0, 400.0, 500.0))

        async def moved() -> bool:
            now = said(await place.get(f"{place.jobs}/train"))[labels.PLANNED_START]
            return parse_timestamp(now) < before_s - 3600

        await place.until(moved, "the plan moves to the earlier hours")
        policies = f"/apis/greensched.io/v1alpha1/namespaces/{place.namespace}/greenpolicies"
        await place.api.patch(
            f"{policies}/default", json.dumps({"spec": {"mode": "shadow"}}).encode()
        )
        job = await place.until(lambda: place.started(f"{place.jobs}/train"), "the Job runs")
    assert said(job)[labels.RELEASE_REASON] == "policy"


async def test_shadow_tells_what_it_would_do_and_touches_nothing(place: Place) -> None:
    await place.offer_node("ZZ-SHADE")
    await place.publish("ZZ-SHADE", DIRTY_THEN_CLEAN)
    async with place.webhook(), place.controller():
        made = await place.create_job("train", deadline="6h", runtime="1h")
        told = await place.until(lambda: notes(place, "WouldHold"), "an event tells")
        now = await place.get(f"{place.jobs}/train")
    assert "would be held until" in told[0]
    assert said(now) == said(made)
    assert not now["spec"].get("suspend")


async def test_a_typo_is_reported_in_an_event(place: Place) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="tomorrow")
        told = await place.until(lambda: notes(place, "NotHeld"), "an event tells")
    assert "'tomorrow' is neither a duration" in told[0]


async def test_a_gang_starts_together(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-GANG")
    await place.publish("ZZ-GANG", DIRTY_THEN_CLEAN)
    async with place.webhook(), place.controller():
        for name in ("one", "two", "three"):
            await place.create_pod(name, deadline="6h", runtime="1h", gang="ranks")
        paths = [f"{place.pods}/{name}" for name in ("one", "two", "three")]

        async def all_planned() -> list[dict[str, Any]] | None:
            found = [await planned(place, path) for path in paths]
            return [each for each in found if each] if all(found) else None

        held = await place.until(all_planned, "all are planned")
        change = {"metadata": {"annotations": {labels.RUN_NOW: "true"}}}
        await place.api.patch(f"{place.pods}/two", json.dumps(change).encode())

        async def all_started() -> bool:
            return all([await place.started(path) for path in paths])

        await place.until(all_started, "all start")
    assert len({said(each)[labels.PLANNED_START] for each in held}) == 1


async def test_what_is_above_the_budget_of_its_namespace_waits(place: Place) -> None:
    await place.green_policy(mode="enforce", budget={"period": "Month", "energyKwh": 0.000001})
    await place.offer_node("ZZ-SPENT")
    await place.publish("ZZ-SPENT", [400.0] * 24)
    async with place.webhook(), place.controller():
        await place.create_job("first", deadline="6h", runtime="1h")
        await place.until(lambda: place.started(f"{place.jobs}/first"), "the first runs")
        await place.create_job("second", deadline="6h", runtime="1h")
        held = await place.until(lambda: planned(place, f"{place.jobs}/second"), "it is planned")
    start_s, latest_s = (
        parse_timestamp(said(held)[each]) for each in (labels.PLANNED_START, labels.LATEST_START)
    )
    opens_s = BudgetPeriod.MONTH.span(time.time()).end  # within hours on a month's last evening
    assert start_s == latest_s if latest_s <= opens_s else opens_s <= start_s < latest_s
    assert "budget" in said(held)[labels.HOLD_REASON]


async def test_the_next_leader_knows_what_was_spent_before_it(place: Place) -> None:
    await place.green_policy(mode="enforce", budget={"period": "Month", "energyKwh": 0.000001})
    await place.offer_node("ZZ-NEXT")
    await place.publish("ZZ-NEXT", [400.0] * 24)
    async with place.webhook():
        async with place.controller():
            await place.create_job("first", deadline="6h", runtime="1h")
            await place.until(lambda: place.started(f"{place.jobs}/first"), "the first runs")
        async with place.controller(identity="second"):
            await place.create_job("second", deadline="6h", runtime="1h")
            held = await place.until(lambda: planned(place, f"{place.jobs}/second"), "it is held")
    assert "budget" in said(held)[labels.HOLD_REASON]


async def test_the_ledger_gets_starts_and_where_pods_went(place: Place) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-LEDGER")
    await place.publish("ZZ-LEDGER", [400.0] * 24)
    store = LedgerStore(place.settings.ledger)
    bound = place.pod("bound")
    bound["spec"]["nodeName"] = place.nodes[0]

    async def told() -> dict[str, Any] | None:
        found = {each.what.value: each for each in store.records(0.0, None, place.namespace)}
        return found if {"released", "placed"} <= found.keys() else None

    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="6h", runtime="1h")
        await place.until(lambda: place.started(f"{place.jobs}/train"), "the Job runs")
        await place.create(place.pods, bound)
        records = await place.until(told, "the ledger has both")
    store.close()
    assert records["placed"].node == place.nodes[0]
    assert records["released"].subject.name == "train"
    assert records["released"].planned == records["released"].run_now
    assert records["released"].planned.energy_j > 0.0


async def test_two_controllers_have_one_leader_and_the_other_takes_over(place: Place) -> None:
    async with place.controller() as first:
        await place.until(lambda: _leads(first), "the first leads")
        async with place.controller(identity="second") as second:
            assert not await _leads(second)
            first.stop.set()
            await place.until(lambda: _leads(second), "the second takes over")


async def _leads(process: Any) -> bool:
    return bool(process.metrics.registry.get_sample_value("greensched_operator_leading"))
