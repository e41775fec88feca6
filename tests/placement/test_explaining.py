"""Why a pod went where it went, by HTTP and on the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core.units import kwh_from_joules

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane


async def decided(scene: Scene, pod: str) -> dict[str, Any]:
    """The latest decision on a pod, once the extender has seen where it went."""
    url = f"{scene.greensched.explain_url}/v1/decisions/{scene.namespace}/{pod}"

    async def decision() -> dict[str, Any]:
        found: dict[str, Any] = (await scene.http.get(url)).raise_for_status().json()
        latest: dict[str, Any] = found["decisions"][0]
        return latest if latest["outcome"]["state"] == "bound" else {}

    return await scene.until(decision)


async def command(scene: Scene, *arguments: str) -> tuple[int, str]:
    """Run `greensched` on the extender's explain routes; return its status and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "greensched_cli", *arguments),
        *("--address", scene.greensched.explain_url),
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
    status, text = await command(scene, "explain", "pod", "-n", scene.namespace, "--json")
    assert json.loads(text)[0]["outcome"]["node"] == clean


async def test_the_command_explain_says_when_nothing_is_known_of_a_pod(scene: Scene) -> None:
    status, text = await command(scene, "explain", "never-was", "-n", scene.namespace)
    assert status == 1 and "No replica remembers a decision" in text


async def test_the_command_nodes_prints_what_is_believed_of_each(scene: Scene) -> None:
    clean, dirty = await two_zones(scene)
    await scene.place("pod", cpu=4)
    await decided(scene, "pod")
    status, text = await command(scene, "nodes")
    assert status == 0, text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert rows[clean][1] == "ZZ-CLEAN" and rows[dirty][1] == "ZZ-DIRTY"
    assert "120" in rows[clean] and "100" in rows[dirty], "watts with the pod and without"
