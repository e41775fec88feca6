"""Energy of a pod out of a real Prometheus that has scraped Kepler's own words on it."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from greensched_core.metering.energy_pieces import energy_j
from greensched_core.metering.pod_energy import MeasuredPods, measured_pods
from greensched_core.metering.pod_runs import PodRun
from greensched_core.metering.prometheus import PrometheusApi
from greensched_core.power.curves import PowerCurve
from greensched_core.state import Node
from greensched_testbed.metering import Exporter, Prometheus

pytestmark = pytest.mark.prometheus

PATIENCE_S = 90.0
LENGTH_S = 600.0
SCRAPE_S = 30.0
PACKAGE_W, DRAM_W = 100.0, 10.0
UID = "0f3c9a52-7d1e-4b1c-9c44-2a8f6f1f0c11"
POD = f'node_name="n1",pod_id="{UID}",pod_name="train-x7k2p",pod_namespace="team"'
CURVE = PowerCurve(tuple(100.0 + 10.0 * step for step in range(11)))
NODE = Node("n1", "DE", 8.0, 2.0**35, None, CURVE, "annotation", "")
CONTAINER = 'pod_name="train-x7k2p",container_namespace="team",container_name="main"'


def kepler(age_s: float, at_ms: int) -> str:
    """Kepler 0.10's page on a pod of this age; at 300 s Kepler itself is started anew."""
    state = "running" if age_s < LENGTH_S else "terminated"
    since_s = min(age_s, LENGTH_S) - (300.0 if age_s > 300.0 else 0.0)
    zones = {"package": PACKAGE_W, "core": 60.0, "dram": DRAM_W, "psys": 300.0}
    return "# TYPE kepler_pod_cpu_joules_total counter\n" + "".join(
        f'kepler_pod_cpu_joules_total{{{POD},state="{state}",zone="{zone}"}} '
        f"{watts * since_s} {at_ms}\n"
        for zone, watts in zones.items()
    )


def old_kepler(age_s: float, at_ms: int) -> str:
    """Kepler 0.9's page on another pod; nothing more once that has ended."""
    if age_s >= LENGTH_S:
        return ""
    return "# TYPE kepler_container_joules_total counter\n" + "".join(
        f'kepler_container_joules_total{{{CONTAINER},container_id="a1",mode="{mode}"}} '
        f"{watts * age_s} {at_ms}\n"
        for mode, watts in {"dynamic": 80.0, "idle": 30.0}.items()
    )


def kubelet(age_s: float, at_ms: int) -> str:
    """The kubelet's page: 2 of 8 cores are a third pod's from 30 s on, 2 are the system's."""
    node_s, pod_s = 90_000.0 + 4.0 * age_s, 2.0 * max(age_s - SCRAPE_S, 0.0)
    return (
        "# TYPE node_cpu_usage_seconds_total counter\n"
        f"node_cpu_usage_seconds_total {node_s} {at_ms}\n"
        "# TYPE pod_cpu_usage_seconds_total counter\n"
        f'pod_cpu_usage_seconds_total{{namespace="team",pod="cpu-only"}} {pod_s} {at_ms}\n'
    )


def replayed(page: Callable[[float, int], str], began_s: float) -> Callable[[], str]:
    """Return a page that is a scrape interval older by and by, until after the end.

    Each is said a few times: a busy machine gives up some of its scrapes.
    """
    ages = [20.0 + SCRAPE_S * number for number in range(21) for _ in range(4)]
    said = itertools.chain(ages, itertools.repeat(ages[-1]))

    def text() -> str:
        age_s = next(said)
        return page(age_s, round((began_s + age_s) * 1_000))

    return text


@pytest.fixture(scope="module")
def began_s() -> float:
    """When the pods began: a while ago, so that what is replayed lies in the past."""
    return float(round(time.time()) - 900)


@pytest.fixture(scope="module")
def prometheus(began_s: float, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A real server that takes in ten minutes of each meter within seconds."""
    pages = {
        "kepler": replayed(kepler, began_s),
        "kepler-0.9": replayed(old_kepler, began_s),
        "kubelet": replayed(kubelet, began_s - SCRAPE_S),  # a node is there before its pods
    }
    folder: Path = tmp_path_factory.mktemp("prometheus")
    where = {"kubelet": {"node": NODE.name}}
    with (
        Exporter(pages) as exporter,
        Prometheus(exporter, folder, "150ms", labels=where) as running,
    ):
        yield running


async def energy_of(prometheus: Prometheus, run: PodRun) -> MeasuredPods:
    """Return what was measured, once the last of it was scraped."""
    async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(PATIENCE_S):
        while True:
            found = await measured_pods(PrometheusApi(http, prometheus.url), [run])
            if found is not None:
                last_s = max(piece.until_s for piece in found.pieces[run.uid])
                if last_s >= run.until_s - SCRAPE_S:
                    return found
            await asyncio.sleep(0.2)


@pytest.mark.parametrize(
    ("uid", "name", "meter", "joules"),
    [
        # What came between its last scrape and its restart, 10 s of 600, is lost.
        pytest.param(UID, "train-x7k2p", "kepler", (PACKAGE_W + DRAM_W) * 590.0, id="kepler"),
        # Seen until 590 s: the last ten are as the rest.
        pytest.param("another", "train-x7k2p", "kepler-0.9", 80.0 * 600.0, id="kepler-0.9"),
        # Half of the 50 W above idle that its node draws.
        pytest.param("third", "cpu-only", "kubelet", 25.0 * 600.0, id="kubelet"),
    ],
)
async def test_a_pods_energy_is_what_its_meter_counted(
    prometheus: Prometheus, began_s: float, uid: str, name: str, meter: str, joules: float
) -> None:
    run = PodRun(uid, "team", name, began_s, began_s + LENGTH_S, NODE)
    found = await energy_of(prometheus, run)
    assert found.meter == meter
    assert energy_j(found.pieces[uid]) == pytest.approx(joules, rel=1e-3)
