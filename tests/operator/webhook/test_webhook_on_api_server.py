"""The webhook, called by a real API server, and the releaser beside it."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.api_paths import CONFIGURATIONS
from greensched_core.clock import WallClock
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.holding.holding import margin_s
from greensched_operator.objects.green_policy import BUILT_IN
from greensched_operator.webhook.certificate_controller import CertificateController
from greensched_operator.webhook.webhook import WebhookProcess
from tests.operator.conftest import webhook_configuration

if TYPE_CHECKING:
    from tests.operator.conftest import Place


def said(item: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = item["metadata"].get("annotations", {})
    return found


async def test_a_job_with_a_deadline_arrives_suspended_with_its_latest_start(place: Place) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook():
        before_s = time.time()
        made = await place.create_job("train", deadline="6h", runtime="1h")
    assert made["spec"]["suspend"] is True
    latest_s = parse_timestamp(said(made)[labels.LATEST_START])
    spare_s = margin_s(BUILT_IN, 3600.0, BUILT_IN.runtime_error)
    assert latest_s == pytest.approx(before_s + 5 * 3600 - spare_s, abs=5.0)


async def test_the_latest_start_is_that_on_the_slowest_node_before_the_controller_looks(
    place: Place,
) -> None:
    """The leader notes the speed of the slowest node in its heartbeat; the webhook sees none."""
    await place.green_policy(mode="enforce")
    [slow] = await place.offer_node("ZZ-SLOW", power_model="hp-ml110-g4")
    before_s = time.time()
    async with place.webhook() as webhook:
        async with place.controller():
            slowed = partial(_is_slow, webhook)
            await place.until(slowed, f"the webhook knows that {slow} is slow")
        made = await place.create_job("train", deadline="12h", runtime="1h")
    latest_s = parse_timestamp(said(made)[labels.LATEST_START])
    speed = webhook.surroundings().rules.slowest_speed(0.0)
    longest_s = 3600.0 / speed
    spare_s = margin_s(BUILT_IN, longest_s, BUILT_IN.runtime_error)
    assert 0.0 < speed < 0.7
    assert latest_s == pytest.approx(before_s + 12 * 3600 - longest_s - spare_s, abs=60.0)


async def _is_slow(webhook: WebhookProcess) -> bool:
    return webhook.surroundings().rules.slowest_speed(0.0) < 1.0


async def test_a_pod_with_a_delay_arrives_behind_our_gate(place: Place) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook():
        made = await place.create_pod("one", max_delay="2h")
    assert made["spec"]["schedulingGates"] == [{"name": labels.GATE}]
    assert labels.LATEST_START in said(made)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({}, id="says-nothing"),
        pytest.param({"deadline": "6h", "run_now": "true"}, id="run-now"),
        pytest.param({"deadline": "tomorrow"}, id="typo"),
        pytest.param({"deadline": "61m", "runtime": "1h"}, id="no-slack"),
        pytest.param({"deadline": "6h", "scheduler": "default-scheduler"}, id="no-opt-in"),
    ],
)
async def test_what_may_not_wait_starts_at_once(place: Place, asked: dict[str, str]) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook():
        made = await place.create_job("train", **asked)
    assert not made["spec"].get("suspend")
    assert labels.LATEST_START not in said(made)


async def test_in_shadow_nothing_is_touched(place: Place) -> None:
    async with place.webhook() as webhook:
        made = await place.create_job("train", deadline="6h")
        reviews = webhook.metrics.registry.get_sample_value(
            "greensched_webhook_reviews_total", {"outcome": "shadow"}
        )
    assert not made["spec"].get("suspend")
    assert set(said(made)) == {labels.DEADLINE}
    assert reviews == 1.0


async def test_what_arrives_suspended_stays_its_owners_and_a_copy_of_held_work_is_held_anew(
    place: Place,
) -> None:
    await place.green_policy(mode="enforce")
    theirs = place.job("theirs", deadline="6h", released_at="2026-01-01T00:00:00Z")
    copied = place.job("copy", deadline="6h", latest_start="2026-01-01T00:00:00Z")
    theirs["spec"]["suspend"] = copied["spec"]["suspend"] = True
    async with place.webhook(), place.releaser() as releaser:
        made = await place.create(place.jobs, theirs)
        anew = await place.create(place.jobs, copied)
        await place.until(lambda: _synced(releaser), "the releaser sees")
        async with asyncio.TaskGroup() as passes:
            releaser.release_due(passes)
        kept = [await place.get(f"{place.jobs}/{name}") for name in ("theirs", "copy")]
    assert set(said(made)) == {labels.DEADLINE}
    assert said(anew)[labels.LATEST_START] > "2026-01-01T00:00:00Z"
    assert [each["spec"]["suspend"] for each in kept] == [True, True]


async def test_pods_of_a_held_job_are_not_held_once_more(place: Place) -> None:
    await place.green_policy(mode="enforce")
    body = place.job("train", max_delay="2h")
    body["spec"]["template"]["metadata"]["annotations"] = {labels.MAX_DELAY: "2h"}
    async with place.webhook():
        made = await place.create(place.jobs, body)
        assert made["spec"]["suspend"] is True
        await place.api.patch(
            f"{place.jobs}/train", json.dumps({"spec": {"suspend": False}}).encode()
        )
        pods = await place.until(lambda: _pods(place), "the Job has a pod")
    assert not pods[0]["spec"].get("schedulingGates")


async def test_a_dead_webhook_keeps_nothing_from_running(place: Place) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook() as webhook:
        assert webhook.serving is not None
        webhook.serving.should_exit = True
        await place.until(lambda: _ended(webhook), "the webhook is gone")
        made = await place.create_job("train", deadline="6h")
    assert not made["spec"].get("suspend")


@pytest.mark.parametrize(
    "until_text",
    [
        pytest.param(format_timestamp(time.time() - 5), id="past"),
        pytest.param("yesterday", id="unreadable"),
    ],
)
async def test_the_releaser_starts_what_is_past_its_latest_start(
    place: Place, until_text: str
) -> None:
    held_job = place.job("late", deadline="6h", latest_start=until_text)
    held_job["spec"]["suspend"] = True
    held_pod = place.pod("late", deadline="6h", latest_start=until_text)
    held_pod["spec"]["schedulingGates"] = [{"name": labels.GATE}, {"name": "example.org/other"}]
    await place.create(place.jobs, held_job)
    await place.create(place.pods, held_pod)
    async with place.releaser():
        released = await place.until(
            lambda: place.started(f"{place.jobs}/late"), "the Job was started"
        )
        freed = await place.until(
            lambda: place.started(f"{place.pods}/late"), "the pod was started"
        )
    assert said(released)[labels.RELEASE_REASON] == "releaser"
    assert labels.LATEST_START not in said(released)
    assert freed["spec"]["schedulingGates"] == [{"name": "example.org/other"}]


async def test_the_releaser_leaves_what_may_wait(place: Place) -> None:
    later = format_timestamp(time.time() + 3600)
    held = place.job("early", deadline="6h", latest_start=later)
    held["spec"]["suspend"] = True
    await place.create(place.jobs, held)
    async with place.releaser() as releaser:
        await place.until(lambda: _synced(releaser), "the releaser sees")
        assert [each.name for each in releaser.jobs if each.namespace == place.namespace] == [
            "early"
        ]
        async with asyncio.TaskGroup() as passes:
            releaser.release_due(passes)
    assert (await place.get(f"{place.jobs}/early"))["spec"]["suspend"] is True


async def test_the_emergency_release_starts_all_and_holds_nothing_more(place: Place) -> None:
    await place.green_policy(mode="enforce")
    configmap = {"metadata": {"name": "greensched-emergency-release"}}
    async with place.webhook() as webhook, place.releaser():
        await place.create_job("held", deadline="6h")
        await place.create(f"/api/v1/namespaces/{place.own}/configmaps", configmap)
        await place.until(lambda: place.started(f"{place.jobs}/held"), "it was started")
        await place.until(lambda: _knows_it(webhook), "the webhook knows")
        made = await place.create_job("next", deadline="6h")
    assert not made["spec"].get("suspend")


async def _synced(releaser: Any) -> bool:
    return bool(releaser.ready() == "")


async def _knows_it(webhook: Any) -> bool:
    return len(webhook.emergency) > 0


async def _ended(webhook: Any) -> bool:
    return not webhook.serving.servers or not webhook.serving.servers[0].is_serving()


async def _pods(place: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await place.get(place.pods))["items"]
    return found


async def test_it_is_ready_only_once_the_api_server_trusts_it(place: Place) -> None:
    """After an uninstall its Secret stays: a webhook that is installed again has a certificate."""
    configuration = f"{CONFIGURATIONS}/{place.settings.webhook_configuration}"
    controller = CertificateController(place.settings, place.api, WallClock())
    body = json.dumps(webhook_configuration(place)).encode()
    await place.api.create(CONFIGURATIONS, body)
    await controller.look()
    await place.api.delete(configuration)
    await place.api.create(CONFIGURATIONS, body)
    stop, process = asyncio.Event(), WebhookProcess(place.settings, place.api, place.settings.clock)
    running = asyncio.create_task(process.run(stop))

    async def has_listened() -> bool:
        return process.serving is not None and "sign of life" not in process.ready()

    async def is_ready() -> bool:
        return process.ready() == ""

    try:
        async with place.releaser():
            await place.until(has_listened, "it listens")
            assert process.ready().startswith("waits for the API server's trust")
            await controller.look()
            await place.until(is_ready, "it is trusted")
    finally:
        stop.set()
        await running
        await place.api.delete(configuration)
