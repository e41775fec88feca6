"""Filter and bind, which the chart registers only when asked to."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane

CHART_VALUES = (
    "extender.bind.enabled=true",
    "extender.bind.allowWithoutClientCertificates=true",
    "extender.powerLimits.enabled=true",
)


def limited(watts: float) -> dict[str, Any]:
    return {"annotations": {labels.POWER_BUDGET_WATTS: str(watts)}}


async def test_the_extender_binds_the_pods_itself(scene: Scene) -> None:
    frugal, _ = await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    bound = await scene.metric("requests_total", verb="bind", outcome="ok")
    pods = [f"pod-{index}" for index in range(20)]
    await scene.create(*pods, cpu=0.1)
    assert await scene.bound(*pods) == [frugal] * 20

    async def all_counted() -> bool:  # the API server tells of a binding before it answers us
        counted = await scene.metric("requests_total", verb="bind", outcome="ok")
        assert counted <= bound + 20
        return counted == bound + 20

    await scene.until(all_counted)


async def test_binding_twice_is_a_success_and_binding_elsewhere_is_not(scene: Scene) -> None:
    here, there = await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    await scene.create("pod", scheduler="nobody")
    pod = json.loads(await scene.api.get(f"{scene.pods_path}/pod"))

    async def bind(node: str, uid: str = pod["metadata"]["uid"]) -> str:
        body = {
            "PodName": "pod",
            "PodNamespace": scene.namespace,
            "PodUID": uid,
            "Node": node,
        }
        reply = await scene.http.post(f"{scene.greensched.extender_url}/bind", json=body)
        assert reply.status_code == 200
        error: str = reply.json()["Error"]
        return error

    assert [await bind(here), await bind(here)] == ["", ""]
    assert f"is bound to {here}, not to {there}" in await bind(there)
    assert "has been replaced by another pod" in await bind(here, "another-uid")
    assert await scene.bound("pod") == [here]


async def test_a_node_over_its_power_budget_is_refused_although_it_is_the_cheapest(
    scene: Scene,
) -> None:
    frugal, dear = await scene.offer(
        scene.machine(100, 180, **limited(120)), scene.machine(100, 500)
    )
    # 16 cores, half of what is requested is used: 4 cores more are 10 W more.
    assert await scene.place("a", "b", cpu=4) == [frugal] * 2, "100 W to 120 W fit"
    assert await scene.place("c", cpu=4) == [dear], "130 W do not"
    assert await scene.metric("refused_nodes_total") >= 1


@pytest.mark.parametrize("nodes", [1, 3])
async def test_a_burst_of_pods_exceeds_no_budget(scene: Scene, nodes: int) -> None:
    names = await scene.offer(
        *(scene.machine(100, 180, **limited(120)) for _ in range(nodes))  # room for two pods
    )
    pods = [f"pod-{index}" for index in range(2 * nodes + 3)]
    await scene.create(*pods, cpu=4)
    placed = scene.placements.node_of

    async def settled() -> bool:
        waiting = [pod for pod in pods if pod not in placed]
        told = [await scene.events(pod) for pod in waiting]
        return all(told) and len(placed) >= 2 * nodes

    await scene.until(settled)
    assert Counter(placed.values()) == dict.fromkeys(names, 2)


async def test_when_every_node_is_over_budget_the_event_says_so_and_nobody_is_evicted(
    scene: Scene,
) -> None:
    await scene.offer(
        scene.machine(100, 180, **limited(115)), scene.machine(100, 180, **limited(110))
    )
    await scene.create("victim-a", "victim-b", cpu=4)
    await scene.bound("victim-a", "victim-b")
    await scene.create("urgent", cpu=4, priorityClassName="system-cluster-critical")

    async def complaint() -> str:
        notes = [
            str(event["message"])
            for event in await scene.events("urgent")
            if event["reason"] == "FailedScheduling"
        ]
        return notes[0] if notes else ""

    said = await scene.until(complaint)
    assert "0/2 nodes are available" in said
    assert "power budget: 120 W with this pod, limit 115 W" in said
    assert "power budget: 120 W with this pod, limit 110 W" in said
    assert "Preemption is not helpful for scheduling" in said
    pods = json.loads(await scene.api.get(scene.pods_path))["items"]
    assert {pod["metadata"]["name"] for pod in pods} == {"victim-a", "victim-b", "urgent"}
    assert not any(pod["metadata"].get("deletionTimestamp") for pod in pods)
