"""Watts of nodes come from a real Prometheus that scrapes what the usual meters say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from greensched_core.errors import SignalUnavailable
from greensched_core.metering.measured import MeasuredPower, PowerReader
from greensched_core.metering.prometheus import PrometheusApi
from greensched_testbed.demo.cluster import GreenSchedProcesses
from greensched_testbed.metering import Exporter, Page, Prometheus
from greensched_testbed.ports import free_port

if TYPE_CHECKING:
    from tests.placement.conftest import Installed, Scene

pytestmark = pytest.mark.prometheus

GOLDEN = Path(__file__).parents[1] / "golden" / "prometheus"
WINDOW_S = 6.0
PATIENCE_S = 90.0


def golden(name: str) -> Page:
    """A page that always says what the file says."""
    text = (GOLDEN / f"{name}.prom").read_text()
    return lambda: text


def joules_since(began: float) -> Page:
    """Kepler 0.9 on node n2: joules only, that grow by 60 W, 40 W and 5 W."""

    def page() -> str:
        seconds = time.monotonic() - began
        return (
            "# TYPE kepler_node_package_joules_total counter\n"
            f'kepler_node_package_joules_total{{instance="n2",mode="dynamic"}} {60 * seconds}\n'
            f'kepler_node_package_joules_total{{instance="n2",mode="idle"}} {40 * seconds}\n'
            "# TYPE kepler_node_dram_joules_total counter\n"
            f'kepler_node_dram_joules_total{{instance="n2",mode="dynamic"}} {5 * seconds}\n'
        )

    return page


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    """All the meters of a small cluster."""
    pages = {
        "kepler": golden("kepler"),
        "kepler-0.9": joules_since(time.monotonic()),
        "scaphandre": golden("scaphandre"),
        "dcgm": golden("dcgm"),
        "live": lambda: "",
    }
    with Exporter(pages) as meters:
        yield meters


@pytest.fixture(scope="module")
def prometheus(
    exporter: Exporter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A real Prometheus that scrapes every page once a second."""
    # Scaphandre does not know its node: the target says it, as relabelling would.
    labels = {"scaphandre": {"node": "n3"}}
    folder = tmp_path_factory.mktemp("prometheus")
    with Prometheus(exporter, folder, labels=labels) as running:
        yield running


async def measured(prometheus: Prometheus, claim: Callable[[MeasuredPower], bool]) -> MeasuredPower:
    """What the meters say once the claim about it holds."""
    async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(PATIENCE_S):
        reader = PowerReader(PrometheusApi(http, prometheus.url), window_s=WINDOW_S)
        while True:
            now = await reader.read(time.time())
            if claim(now):
                return now
            await asyncio.sleep(0.25)


async def test_every_meters_watts_are_read_each_in_its_own_unit(prometheus: Prometheus) -> None:
    now = await measured(
        prometheus,
        lambda now: (
            {"n1", "n2", "n3"} <= now.watts.keys()
            and now.watts["n1"].source == "kepler+dcgm"
            and now.watts["n2"].value == pytest.approx(105.0, rel=0.1)
        ),
    )
    assert now.faults == ()
    # Two packages and memory by Kepler; two GPUs by DCGM, one of them told twice by MIG, and
    # a third one's blank left out.
    assert now.watts["n1"].value == pytest.approx(156.0 + 12.0 + 251.5 + 98.25)
    assert now.watts["n2"].source == "kepler-0.9"
    assert now.watts["n3"].value == pytest.approx(143.5), "microwatts on the wire"
    assert now.watts["n3"].source == "scaphandre"
    assert {reading.unit for reading in now.watts.values()} == {"W"}
    assert all(abs(reading.taken_at - time.time()) < 60 for reading in now.watts.values())


async def test_a_prometheus_that_is_gone_is_a_missing_signal() -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        reader = PowerReader(PrometheusApi(http, f"http://127.0.0.1:{free_port()}"))
        with pytest.raises(SignalUnavailable, match="cannot be reached"):
            await reader.read(time.time())


@pytest.fixture(scope="module")
def greensched(installed: Installed, prometheus: Prometheus) -> GreenSchedProcesses:
    """The extender, told of our Prometheus by the chart."""
    installed.with_values(
        (
            f"extender.settings.prometheusUrl={prometheus.url}",
            "extender.settings.prometheusIntervalS=1",
        )
    )
    return installed.processes


@pytest.mark.controlplane
async def test_a_node_that_is_measured_to_be_busy_is_left_alone(
    scene: Scene, exporter: Exporter
) -> None:
    steep = (50.0, 55.0, 65.0, 80.0, 100.0, 125.0, 155.0, 190.0, 230.0, 275.0, 325.0)
    busy, calm = await scene.offer(
        scene.machine(0, 0, curve=steep), scene.machine(0, 0, curve=[w * 1.2 for w in steep])
    )
    assert await scene.place("by-curve") == [busy], "while nobody measures, it looks cheaper"
    exporter.pages["live"] = lambda: (
        "# TYPE kepler_node_cpu_watts gauge\n"
        f'kepler_node_cpu_watts{{zone="psys",node_name="{busy}"}} 275\n'
        f'kepler_node_cpu_watts{{zone="psys",node_name="{calm}"}} 72\n'
    )
    await scene.until_believed(
        lambda nodes: {nodes[name]["powerFrom"] for name in (busy, calm)} == {"measured"}
    )
    believed = await scene.believed()
    assert believed[busy]["powerWatts"] == 275.0
    # The mean over two minutes has hardly seen the pod yet: 1 of 16 cores, half of it used.
    assert 0.9 < believed[busy]["cpuUtilisation"] <= 0.9 + 0.5 / 16
    assert believed[busy]["cpuUtilisationFrom"] == "measured"
    assert await scene.place("by-meter-a", "by-meter-b") == [calm] * 2
    assert await scene.metric("measured_nodes") >= 2
