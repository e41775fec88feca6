"""Energy of a pod out of a real Prometheus that has scraped Kepler's own words on it."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from greensched_core.power.pod_courses import energy_j
from greensched_core.power.pod_energy import MeasuredPods, PodMeter, PodRun, measured_pods
from greensched_core.power.prometheus import PrometheusApi
from greensched_testbed.metering import Exporter, Prometheus

pytestmark = pytest.mark.prometheus

PATIENCE_S = 90.0
LENGTH_S = 600.0
SCRAPE_S = 30.0
PACKAGE_W, DRAM_W = 100.0, 10.0
UID = "0f3c9a52-7d1e-4b1c-9c44-2a8f6f1f0c11"
POD = f'node_name="n1",pod_id="{UID}",pod_name="train-x7k2p",pod_namespace="team"'
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
    }
    folder: Path = tmp_path_factory.mktemp("prometheus")
    with Exporter(pages) as exporter, Prometheus(exporter, folder, "150ms") as running:
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
    ("uid", "meter", "joules"),
    [
        # What came between its last scrape and its restart, 10 s of 600, is lost.
        pytest.param(UID, PodMeter.KEPLER, (PACKAGE_W + DRAM_W) * 590.0, id="kepler"),
        # Seen until 590 s: the last ten are as the rest.
        pytest.param("another", PodMeter.OLD_KEPLER, 80.0 * 600.0, id="kepler-0.9"),
    ],
)
async def test_a_pods_energy_is_what_its_meter_counted(
    prometheus: Prometheus, began_s: float, uid: str, meter: PodMeter, joules: float
) -> None:
    run = PodRun(uid, "team", "train-x7k2p", began_s, began_s + LENGTH_S)
    found = await energy_of(prometheus, run)
    assert found.meter is meter
    assert energy_j(found.pieces[uid]) == pytest.approx(joules, rel=1e-3)
