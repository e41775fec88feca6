"""`greensched status` and `release` beside a living operator: both tell the same, and agree."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greensched_core import labels
from greensched_core.ledger_records import What
from greensched_operator.ledger.store import LedgerStore
from greensched_testbed.controlplane import ControlPlane

if TYPE_CHECKING:
    from tests.operator.conftest import Place

DIRTY_THEN_CLEAN = [500.0] * 3 + [100.0] * 21


async def greensched(kubeconfig: Path, place: Place, verb: str, *arguments: str) -> str:
    """Return what the command prints; the operator lives on in this loop meanwhile."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "greensched_cli", verb, *arguments, "-n", place.namespace,
        "--install-namespace", place.own, "--kubeconfig", str(kubeconfig),
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "TZ": "UTC"},
    )  # fmt: skip
    told, _ = await running.communicate()
    assert running.returncode == 0, told
    return told.decode()


async def planned(place: Place, path: str) -> bool:
    found = await place.get(path)
    return labels.PLANNED_START in found["metadata"].get("annotations", {})


async def released_is_told(place: Place, store: LedgerStore) -> bool:
    records = store.records(0.0, None, place.namespace)
    events = await place.get(f"/api/v1/namespaces/{place.namespace}/events")
    notes = [each["message"] for each in events["items"] if each["reason"] == "Released"]
    starts = [each.reason for each in records if each.what is What.RELEASED]
    is_recorded = starts == ["run-now"]
    return is_recorded and notes == ["run-now: started by greensched release"]


async def test_what_the_operator_planned_is_reported_and_started_at_once(
    place: Place, control_plane: ControlPlane
) -> None:
    kubeconfig = control_plane.kubeconfig
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-TOLD")
    await place.publish("ZZ-TOLD", DIRTY_THEN_CLEAN)
    path, store = f"{place.jobs}/train", LedgerStore(place.settings.ledger)
    async with place.webhook(), place.controller():
        await place.create_job("train", deadline="8h", runtime="1h")
        await place.until(lambda: planned(place, path), "it is planned")
        document: dict[str, Any] = json.loads(
            await greensched(kubeconfig, place, "status", "-o", "json")
        )
        table = await greensched(kubeconfig, place, "status")
        one = await greensched(kubeconfig, place, "status", "train")
        await greensched(kubeconfig, place, "release", "train")
        job = await place.get(path)
        after = await greensched(kubeconfig, place, "status", "--released")
        await place.until(lambda: released_is_told(place, store), "event and ledger tell of it")
    store.close()
    (held,) = document["held"]
    assert held["faults"] == [] and held["latestStartBound"] == "deadline"
    assert (held["carbonGramsPerKwh"], held["carbonGramsPerKwhIfNow"]) == (100.0, 500.0)
    assert held["zone"] == "ZZ-TOLD" and held["runtime"] == "1h (annotation)"
    assert document["operator"]["leader"] == "first" and document["operator"]["isAlive"] is True
    assert {each["name"]: each["isTrusted"] for each in document["operator"]["webhooks"]}[place.own]
    assert "100 (now 500)" in table and "first leads, last renewal" in table
    assert "Held: start planned for" in one and "by the forecast of zone ZZ-TOLD" in one
    assert job["spec"]["suspend"] is False
    assert "Nothing is held" in after and "run-now" in after
