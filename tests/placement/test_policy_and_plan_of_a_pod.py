"""A GreenPolicy's weights, and the zone of the plan, decide where pods go on a real cluster."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp
from tests.placement.test_explaining import command, decided
from tests.placement.test_runtime_of_a_jobs_pods import BATCH, job_spec, pod_of_the_job

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane
POLICIES = f"/apis/{labels.GROUP}/{labels.VERSION}/namespaces/{{}}/{labels.GREEN_POLICIES}"


async def policy(scene: Scene, name: str, **weights: float) -> None:
    """Create a GreenPolicy in the test's namespace; return once the extender knows it."""

    async def known() -> int:
        reply = await scene.http.get(f"{scene.greensched.explain_url}/v1/policy")
        found: int = reply.json()["greenPolicies"]
        return found

    before = await known()
    body = {
        "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
        "kind": "GreenPolicy",
        "metadata": {"name": name},
        "spec": {"weights": weights},
    }
    await scene.api.create(POLICIES.format(scene.namespace), json.dumps(body).encode())

    async def is_known() -> bool:
        return await known() > before

    await scene.until(is_known)


async def cheap_and_clean(scene: Scene) -> tuple[str, ...]:
    """A node in a cheap dirty zone, and one in a clean dear zone."""
    names = await scene.offer(
        scene.machine(100, 260, zone="ZZ-CHEAP"), scene.machine(100, 260, zone="ZZ-CLEAN")
    )
    await scene.publish("ZZ-CHEAP", 500.0, 20.0)
    await scene.publish("ZZ-CLEAN", 50.0, 200.0)
    return names


async def test_pods_of_two_policies_go_to_the_cheap_and_to_the_clean_node(scene: Scene) -> None:
    cheap, clean = await cheap_and_clean(scene)
    await policy(scene, "default", cost=1, carbon=0, performance=0)
    await policy(scene, "green", cost=0, carbon=1, performance=0)
    assert await scene.place("plain") == [cheap]
    assert await scene.place("named", annotations={labels.POLICY: "green"}) == [clean]
    found = await decided(scene, "named")
    assert found["weightsFrom"] == f"GreenPolicy {scene.namespace}/green"
    _, told = await command(scene, "explain", "named", "-n", scene.namespace)
    assert f"performance 0 of GreenPolicy {scene.namespace}/green" in told


async def test_a_released_job_goes_to_its_planned_zone_and_says_so(scene: Scene) -> None:
    cheap, _ = await cheap_and_clean(scene)
    await scene.publish("ZZ-CHEAP", 53.0, 20.0)  # dirtier by less than a tenth
    await policy(scene, "default", cost=0, carbon=1, performance=0)
    plan: dict[str, Any] = {
        "zone": "ZZ-CHEAP",
        "start": format_timestamp(round(time.time())),
        "runtimeSeconds": 1800.0,
    }
    meta = {"name": "batch", "annotations": {labels.DECISION: json.dumps(plan)}}
    job = {"metadata": meta, "spec": job_spec(scene, None)}
    await scene.api.create(BATCH.format(scene.namespace, "jobs"), json.dumps(job).encode())
    pod = await pod_of_the_job(scene)
    found = await decided(scene, pod)
    assert (found["outcome"]["node"], found["plannedZone"]["outcome"]) == (cheap, "honoured")
    assert found["pod"]["runtimeSeconds"] == 1800.0
    _, told = await command(scene, "explain", pod, "-n", scene.namespace)
    assert "its start was planned in ZZ-CHEAP" in told
