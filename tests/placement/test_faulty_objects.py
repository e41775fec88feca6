"""What people mistype on nodes, pods and signals is told, and blocks nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from greensched_core import labels

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane


async def test_a_node_with_unreadable_labels_and_annotations_still_takes_part_and_says_so(
    scene: Scene,
) -> None:
    faulty, tiny = await scene.offer(
        scene.machine(
            50,
            100,
            annotations={
                labels.POWER_CURVE_WATTS: "fifty,sixty",
                labels.POWER_BUDGET_WATTS: "a lot",
            },
            extra_labels={labels.PUE: "high", labels.POWER_MODEL: "unheard-of"},
        ),
        scene.machine(50, 100, cpu_cores=2),
    )
    believed = (await scene.believed())[faulty]
    told = " ".join(believed["faults"])
    assert labels.POWER_CURVE_WATTS in told and labels.POWER_BUDGET_WATTS in told
    assert labels.PUE in told and labels.POWER_MODEL in told
    assert believed["powerBudgetWatts"] is None
    assert await scene.place("large", cpu=4) == [faulty]
    assert await scene.metric("faulty_nodes") >= 1


async def test_a_pod_with_an_unreadable_runtime_is_placed_as_if_it_had_said_nothing(
    scene: Scene,
) -> None:
    frugal, _ = await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    counted = await scene.metric("fallbacks_total", reason="unreadable_pod")
    await scene.create("pod", annotations={labels.RUNTIME: "soon"})
    assert await scene.bound("pod") == [frugal]
    assert await scene.metric("fallbacks_total", reason="unreadable_pod") == counted + 1
    url = f"{scene.greensched.explain_url}/v1/decisions/{scene.namespace}/pod"
    pod = (await scene.http.get(url)).json()["decisions"][0]["pod"]
    assert pod["runtimeIsDefault"] and labels.RUNTIME in pod["faults"][0]


async def test_a_signal_that_says_nothing_leaves_the_choice_to_watts(scene: Scene) -> None:
    signal = {
        "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
        "kind": "GridSignal",
        "metadata": {"name": "zz-mute"},
        "spec": {"zone": "ZZ-MUTE"},
    }
    path = f"/apis/{labels.GROUP}/{labels.VERSION}/{labels.GRID_SIGNALS}"
    await scene.api.create(path, json.dumps(signal).encode())
    scene.signals.add("ZZ-MUTE")
    frugal, _ = await scene.offer(
        scene.machine(50, 150, zone="ZZ-MUTE"), scene.machine(50, 400, zone="ZZ-UNHEARD-OF")
    )
    assert await scene.place("a", "b") == [frugal] * 2
    assert await scene.metric("signal_faults_total", reason="absent") >= 1
    assert await scene.metric("fallbacks_total", reason="no_price") >= 2
    assert (await scene.believed())[frugal]["pricePerMwh"] is None, "no data is no number"
