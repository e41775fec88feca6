"""A pod that was held, started and metered: its end stands in the ledger with what it took."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core.ledger_records import LedgerRecord, What
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.units import JOULES_PER_KWH
from greensched_operator.ledger.store import LedgerStore
from greensched_testbed.metering import Exporter, Prometheus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operator.conftest import Place

pytestmark = pytest.mark.prometheus

WATTS = 100.0
GRAMS_PER_KWH = 400.0
RUNS_S = 8.0


@dataclass
class Kepler:
    """Says of each pod what Kepler 0.10 would, as time goes by."""

    began_s: dict[str, float] = field(default_factory=dict)  # by UID
    ended_s: dict[str, float] = field(default_factory=dict)

    def page(self) -> str:
        """Return the page of metrics."""
        lines = ["# TYPE kepler_pod_cpu_joules_total counter"]
        for uid, began_s in self.began_s.items():
            joules = WATTS * (self.ended_s.get(uid, time.time()) - began_s)
            state = "terminated" if uid in self.ended_s else "running"
            lines.append(
                f'kepler_pod_cpu_joules_total{{pod_id="{uid}",state="{state}",zone="package"}} '
                f"{joules}"
            )
        return "\n".join(lines) + "\n"


async def running(place: Place, path: str) -> dict[str, Any] | None:
    pod = await place.get(path)
    statuses = pod["status"].get("containerStatuses", ())
    return pod if any("running" in each["state"] for each in statuses) else None


async def metered_run(place: Place, kepler: Kepler, path: str) -> str:
    """Have a released pod run for a while under Kepler's eyes, then end; return its UID."""

    async def has_run(began_s: float) -> bool:
        return time.time() - began_s >= RUNS_S

    target = {"apiVersion": "v1", "kind": "Node", "name": place.nodes[0]}
    binding = {"metadata": {"name": path.rpartition("/")[2]}, "target": target}
    await place.api.create(f"{path}/binding", json.dumps(binding).encode())
    pod = await place.until(lambda: running(place, path), "it runs")
    uid: str = pod["metadata"]["uid"]
    state = pod["status"]["containerStatuses"][0]["state"]["running"]
    began_s = kepler.began_s[uid] = parse_timestamp(state["startedAt"])
    await place.until(lambda: has_run(began_s), "it has run a while")
    await place.api.delete(path, {"gracePeriodSeconds": 0})
    kepler.ended_s[uid] = time.time()
    return uid


async def test_a_pods_end_is_completed_by_what_it_took(place: Place, tmp_path: Path) -> None:
    await place.green_policy(mode="enforce")
    await place.offer_node("ZZ-METER")
    await place.publish("ZZ-METER", [GRAMS_PER_KWH] * 24)
    kepler, store = Kepler(), LedgerStore(place.settings.ledger)

    async def ended() -> LedgerRecord | None:
        found = store.records(0.0, None, place.namespace)
        ends = (each for each in found if each.what is What.ENDED)
        return next((each for each in ends if each.measured.energy_j is not None), None)

    with Exporter({"kepler": kepler.page}) as exporter, Prometheus(exporter, tmp_path) as server:
        settings = {"prometheus_url": server.url, "measure_after_s": 2.0}
        metered = replace(place, settings=place.settings.model_copy(update=settings))
        async with metered.webhook(), metered.controller() as controller:
            path = f"{place.pods}/one"
            await place.create_pod("one", deadline="6h", runtime="1h")
            await place.until(lambda: place.started(path), "it is started: the grid is flat")
            uid = await metered_run(place, kepler, path)
            record = await place.until(ended, "its energy is measured")
    store.close()
    runtime_s, measured = record.measured_runtime_s or 0.0, record.measured
    assert runtime_s == pytest.approx(kepler.ended_s[uid] - kepler.began_s[uid], abs=2.0)
    expected_j = WATTS * runtime_s * place.settings.default_pue
    assert measured.energy_j == pytest.approx(expected_j, rel=0.2), "whole seconds, at the wall"
    kwh = (measured.energy_j or 0.0) / JOULES_PER_KWH
    assert measured.carbon_g == pytest.approx(kwh * GRAMS_PER_KWH)
    assert record.planned.energy_j is not None
    counted = controller.metrics.registry.get_sample_value(
        "greensched_operator_ledger_ends_measured_total", {"meter": "kepler"}
    )
    assert counted == 1.0
