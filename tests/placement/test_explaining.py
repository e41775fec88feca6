"""Why a pod went where it went, by HTTP and on the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core.units import kwh_from_joules
from greensched_testbed.demo.cluster import EXTENDER

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane
JOBS = "/apis/batch/v1/namespaces/{}/jobs"


async def decided(scene: Scene, pod: str, state: str = "bound") -> dict[str, Any]:
    """The latest decision on a pod, once the extender knows of that outcome."""
    url = f"{scene.greensched.explain_url}/v1/decisions/{scene.namespace}/{pod}"

    async def decision() -> dict[str, Any]:
        found: dict[str, Any] = (await scene.http.get(url)).json()
        if "decisions" not in found:
            return {}
        latest: dict[str, Any] = found["decisions"][0]
        return latest if latest["outcome"]["state"] == state else {}

    return await scene.until(decision)


async def command(scene: Scene, *arguments: str, address: str | None = None) -> tuple[int, str]:
    """Run `greensched` on the extender's explain routes; return its status and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "greensched_cli", *arguments),
        *("--address", address or scene.greensched.explain_url),
        *("--kubeconfig", str(scene.plane.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


async def two_zones(scene: Scene) -> tuple[str, ...]:
    """A clean and a dirty node; the same power costs the same."""
    names = await scene.offer(
        scene.machine(100, 260, zone="ZZ-CLEAN"), scene.machine(100, 260, zone="ZZ-DIRTY")
    )
    await scene.publish("ZZ-CLEAN", 50.0, 80.0)
    await scene.publish("ZZ-DIRTY", 500.0, 80.0)
    return names


async def test_a_decision_names_the_nodes_offered_what_each_would_cost_and_where_the_pod_went(
    scene: Scene,
) -> None:
    clean, dirty = await two_zones(scene)
    assert await scene.place("pod", cpu=4) == [clean]
    decision = await decided(scene, "pod")
    assert decision["policy"] == "onnx" and decision["fallbackReason"] is None
    assert decision["offered"] == 2 and decision["expectedNode"] == clean
    assert decision["outcome"]["node"] == clean
    first, second = decision["candidates"]
    assert (first["node"], first["score"], second["node"], second["score"]) == (clean, 10, dirty, 0)
    for candidate, grams_per_kwh in ((first, 50.0), (second, 500.0)):
        # 4 of 16 cores requested, half of them used: an eighth of 160 W, for an hour.
        assert candidate["powerWatts"] == pytest.approx(20.0, rel=1e-3)
        kwh = kwh_from_joules(candidate["energyJoules"])
        assert kwh == pytest.approx(0.020, rel=1e-3)
        assert candidate["carbonGrams"] == pytest.approx(kwh * grams_per_kwh, rel=1e-3)
        assert candidate["cost"] == pytest.approx(kwh * 0.080, rel=1e-3)
        assert candidate["currency"] == "EUR"


async def test_the_command_explain_prints_the_decision(scene: Scene) -> None:
    clean, dirty = await two_zones(scene)
    await scene.place("pod", cpu=4)
    await decided(scene, "pod")
    status, text = await command(scene, "explain", "pod", "-n", scene.namespace)
    assert status == 0, text
    assert f"{scene.namespace}/pod: 4 cores" in text and f"went to {clean}" in text
    assert text.index(clean) < text.index(dirty)
    status, text = await command(scene, "explain", "pod", "-n", scene.namespace, "-o", "json")
    assert json.loads(text)[0]["outcome"]["node"] == clean


@pytest.mark.parametrize("asked_before", [
    pytest.param((), id="on-a-new-connection"),
    pytest.param(("before",), id="on-a-connection-that-was-kept"),
])  # fmt: skip
async def test_an_answer_that_came_too_late_is_reported_as_such(
    scene: Scene, asked_before: tuple[str, ...]
) -> None:
    names = await scene.offer(scene.machine(50, 60), scene.machine(50, 900))
    await scene.place(*asked_before)
    pid = scene.plane.processes[EXTENDER].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        (node,) = await scene.place("pod", cpu=4)
        await asyncio.sleep(2.0)  # by then its watch has brought the binding, on a busy machine too
    finally:
        os.kill(pid, signal.SIGCONT)
    decision = await decided(scene, "pod", "answered too late")
    assert node in names and decision["outcome"]["node"] == node
    believed = await scene.believed()
    assert sum(believed[name]["provisionalPods"] for name in names) == 0
    status, text = await command(scene, "explain", "pod", "-n", scene.namespace)
    assert status == 0, text
    assert f"came too late: kube-scheduler placed the pod on {node} without our scores" in text


async def test_the_command_explain_tells_apart_why_nothing_was_decided(scene: Scene) -> None:
    async def explained(pod: str, address: str | None = None) -> str:
        asked = ("explain", pod, "-n", scene.namespace)
        status, text = await command(scene, *asked, address=address)
        assert status == 1, text
        return text

    assert f"There is no pod {scene.namespace}/never-was" in await explained("never-was")

    (only,) = await scene.offer(scene.machine(50, 60))
    await scene.place("single")
    text = await explained("single")
    assert f"phase Running, on node {only}" in text or f"phase Pending, on node {only}" in text
    assert "No replica remembers a decision" in text and "only one node was feasible" in text
    text = await explained("single", address="127.0.0.1:1")
    assert "No replica could be asked" in text and f"on node {only}" in text

    await scene.create("huge", cpu=999)
    await scene.until(lambda: scene.events("huge"))
    text = await explained("huge")
    assert "PodScheduled is False (Unschedulable): 0/" in text and "Insufficient cpu" in text

    await scene.create("misspelt", scheduler="greenshed")
    text = await explained("misspelt")
    assert "schedulerName greenshed, phase Pending, on no node" in text
    assert "asked about pods of `schedulerName: greensched`" in text

    await scene.place("others", scheduler="default-scheduler")
    assert "asked about pods of `schedulerName: greensched`" in await explained("others")


async def test_the_command_explain_names_the_pods_of_a_job(scene: Scene) -> None:
    template = {
        "restartPolicy": "Never",
        "schedulerName": "nobody",
        "containers": [{"name": "main", "image": "pause"}],
    }
    job = {"metadata": {"name": "batch"}, "spec": {"template": {"spec": template}}}
    await scene.api.create(JOBS.format(scene.namespace), json.dumps(job).encode())

    async def named() -> str:
        _, text = await command(scene, "explain", "batch", "-n", scene.namespace)
        return text if "but a Job; try one of its pods: batch-" in text else ""

    await scene.until(named)


async def test_the_command_nodes_prints_what_is_believed_of_each(scene: Scene) -> None:
    clean, dirty = await two_zones(scene)
    await scene.place("pod", cpu=4)
    await decided(scene, "pod")
    status, text = await command(scene, "nodes")
    assert status == 0, text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert rows[clean][1] == "ZZ-CLEAN" and rows[dirty][1] == "ZZ-DIRTY"
    assert "120" in rows[clean] and "100" in rows[dirty], "watts with the pod and without"
