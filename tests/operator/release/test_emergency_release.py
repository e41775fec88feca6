"""What an uninstall runs first: all that is held is started, and told."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_operator.release.emergency_release import EmergencyRelease, EmergencyReleaseOutcome
from greensched_operator.runtime.settings import OperatorSettings

if TYPE_CHECKING:
    from tests.operator.conftest import Place

LATER = "2099-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        pytest.param(
            EmergencyReleaseOutcome(0, ()),
            "released 0 held workloads; none is still held",
            id="nothing",
        ),
        pytest.param(
            EmergencyReleaseOutcome(7, ()),
            "released 7 held workloads; none is still held",
            id="all",
        ),
        pytest.param(
            EmergencyReleaseOutcome(1, ("Job a/b (no)",)),
            "released 1 held workloads; 1 still held: Job a/b (no)",
            id="one-left",
        ),
        pytest.param(
            EmergencyReleaseOutcome(0, (), "no answer"),
            "released 0 held workloads; no answer",
            id="unseen",
        ),
        pytest.param(
            EmergencyReleaseOutcome(0, tuple("abcdefghijklmnopqrstuv")),
            "released 0 held workloads; 22 still held: "
            + ", ".join("abcdefghijklmnopqrst")
            + ", and 2 more",
            id="many-left",
        ),
    ],
)
def test_the_outcome_is_one_sentence(outcome: EmergencyReleaseOutcome, text: str) -> None:
    assert outcome.text == text
    assert outcome.is_done is text.endswith("none is still held")


class Server:
    """An API server that holds two Jobs, one of which it never lets go."""

    def __init__(self) -> None:
        self.held = {"free": True, "stuck": True}
        self.configmaps: list[dict[str, Any]] = []
        self.reasons: list[str] = []
        self.refuses = 0  # the status of whoever would delete the webhook's configuration

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer as the API server would."""
        path = request.url.path
        if request.method == "GET":
            items = [_job(name) for name, held in self.held.items() if held]
            listed = items if path.endswith("/jobs") else []
            return httpx.Response(200, json={"metadata": {}, "items": listed})
        if request.method == "DELETE":
            return httpx.Response(self.refuses or 200, json={"message": "you may not"})
        body = json.loads(request.content)
        if request.method == "POST":
            self.configmaps.append(body)
            return httpx.Response(201, json=body)
        if path.endswith("/stuck"):
            return httpx.Response(500, json={"message": "a policy of the cluster says no"})
        self.held["free"] = False
        self.reasons.append(body["metadata"]["annotations"]["greensched.io/release-reason"])
        return httpx.Response(200, json={})


def _job(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "team", "uid": name}
    return {
        "metadata": {**meta, "annotations": {"greensched.io/latest-start": LATER}},
        "spec": {"suspend": True},
    }


async def run(
    answer: Callable[[httpx.Request], httpx.Response], timeout_s: float
) -> EmergencyReleaseOutcome:
    access = ApiAccess("https://test", ssl.create_default_context())
    async with ApiClient(access, transport=httpx.MockTransport(answer)) as client:
        settings = OperatorSettings(emergency_release_timeout_s=timeout_s)
        return await EmergencyRelease(settings, client, WallClock()).run(asyncio.Event())


async def test_what_cannot_be_started_is_named_when_the_time_is_over() -> None:
    server = Server()
    outcome = await run(server.answer, timeout_s=0.3)
    assert outcome.released == 1
    assert server.reasons == ["uninstall"]
    assert len(server.configmaps) == 1
    assert not outcome.is_done
    assert "Job team/stuck" in outcome.text
    assert "a policy of the cluster says no" in outcome.text


async def test_an_account_of_an_older_chart_starts_all_the_same() -> None:
    server = Server()
    server.held, server.refuses = {"free": True}, 403
    outcome = await run(server.answer, timeout_s=30.0)
    assert outcome.is_done
    assert "could not be deleted" in outcome.text


async def test_a_server_that_never_answers_is_reported_too() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(503, json={"message": "starting"})

    outcome = await run(answer, timeout_s=0.3)
    assert (outcome.released, outcome.is_done) == (0, False)
    assert "starting" in outcome.text


async def test_all_is_started_and_nothing_new_is_held(place: Place) -> None:
    await place.green_policy(mode="enforce")
    async with place.webhook() as webhook:
        await place.create_job("held", deadline="6h")
        await place.create_pod("held", deadline="6h")
        settings = place.settings.model_copy(update={"emergency_release_timeout_s": 30.0})
        outcome = await EmergencyRelease(settings, place.api, WallClock()).run(asyncio.Event())
        assert outcome.is_done, outcome.text
        for path in (f"{place.jobs}/held", f"{place.pods}/held"):
            found = await place.started(path)
            assert found is not None
            assert found["metadata"]["annotations"]["greensched.io/release-reason"] == "uninstall"

        async def knows() -> bool:
            return len(webhook.emergency) > 0

        await place.until(knows, "the webhook knows")
        made = await place.create_job("next", deadline="6h")
    assert outcome.released >= 2
    assert not made["spec"].get("suspend")
