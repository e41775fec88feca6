"""The GreenPolicy that an installation begins with, where the API server refuses it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from greensched_core.errors import BadInput
from greensched_operator.controller.default_policy import DefaultPolicy

if TYPE_CHECKING:
    from tests.operator.conftest import Place


def policy(folder: Path, **spec: Any) -> Path:
    """Return a file with a GreenPolicy, as the chart mounts it."""
    file = folder / "policy.json"
    kind = {"apiVersion": "greensched.io/v1alpha1", "kind": "GreenPolicy"}
    file.write_text(json.dumps({**kind, "metadata": {"name": "default"}, "spec": spec}))
    return file


async def test_what_the_api_server_refuses_is_reported_once_in_its_own_words(
    place: Place, tmp_path: Path
) -> None:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    spec = {"containers": [container], "nodeSelector": {"nowhere": ""}}
    pods = f"/api/v1/namespaces/{place.own}/pods"
    pod = await place.create(pods, {"metadata": {"name": "controller-1"}, "spec": spec})
    named = {"pod_name": "controller-1", "pod_uid": pod["metadata"]["uid"]}
    settings = place.settings.model_copy(update={**named, "pod_namespace": place.own})
    wrong = policy(tmp_path, budget={"period": "Day"})

    async def events() -> list[dict[str, Any]]:
        told = await place.get(f"/api/v1/namespaces/{place.own}/events")
        return [each for each in told["items"] if each["reason"] == "PolicyRefused"]

    with capture_logs() as logs:
        running = asyncio.create_task(DefaultPolicy(wrong, settings, place.api).run(again_s=0.05))
        (event,) = await place.until(events, "an event of its pod")
        await asyncio.sleep(0.5)  # it tries several times more
        running.cancel()
    sentence = "a budget needs energyKwh or carbonKg, or both"
    assert sentence in event["message"]
    assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "controller-1")
    (warning,) = (each for each in logs if each["log_level"] == "warning")
    assert sentence in warning["reason"]
    assert await events() == [event]


async def test_what_may_pass_is_no_warning(place: Place, tmp_path: Path) -> None:
    nowhere = place.settings.model_copy(update={"namespace": f"{place.own}-not-yet"})  # a 404
    with capture_logs() as logs:
        running = asyncio.create_task(
            DefaultPolicy(policy(tmp_path), nowhere, place.api).run(again_s=0.05)
        )

        async def has_tried() -> bool:
            return len(logs) > 1

        await place.until(has_tried, "it tries again")
        running.cancel()
    assert {each["log_level"] for each in logs} == {"info"}


@pytest.mark.parametrize("text", ["[]", "{", ""])
async def test_a_file_that_is_no_object_is_named(place: Place, tmp_path: Path, text: str) -> None:
    file = tmp_path / "policy.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=f"default_policy_file {file}: "):
        DefaultPolicy(file, place.settings, place.api)
