"""What real Scaphandre reads on each node decides, by way of a real Prometheus, where pods land.

It runs before the uninstall: the release keeps the settings that it makes.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from greensched_core import labels
from greensched_testbed.end_to_end.clusters import ClusterAccess, RealMeters
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease
from greensched_testbed.end_to_end.work import pod, pod_template
from greensched_testbed.errors import CannotBuildHere, CommandFailed

EXAMPLES = Path(__file__).parents[2] / "examples" / "meters"
SPACE = "greensched-meters"
# Above half of its peak a watt of load costs three times what it costs below.
STEEP = "50,55,65,80,100,125,155,190,230,275,325"
CALM_W, BUSY_W = 65.0, 275.0
TOLERANCE = 0.1  # two clocks, of the counter's writer and of its reader, on a machine in use
METERED = (
    f"extender.settings.prometheusUrl=http://prometheus.{SPACE}:9090",
    "extender.settings.prometheusIntervalS=1",
    "extender.settings.policy=least-energy",
)


@dataclass(frozen=True)
class Measured:
    """Two nodes whose watts are measured."""

    cluster: ClusterAccess
    meters: RealMeters
    nodes: tuple[str, str]

    def scraped(self) -> dict[str, tuple[float, str]]:
        """Return what Prometheus has of each node: microwatts, and what Scaphandre read."""
        path = f"/api/v1/namespaces/{SPACE}/services/prometheus:9090/proxy/api/v1/query?query="
        asked = path + quote("scaph_host_power_microwatts")
        try:
            found = json.loads(self.cluster.kubectl("get", "--raw", asked))["data"]["result"]
        except CommandFailed:
            return {}  # it is starting
        return {
            each["metric"]["node"]: (float(each["value"][1]), each["metric"]["value_source"])
            for each in found
        }

    def is_scraped(self) -> bool:
        """Say whether Prometheus has the watts of each node as they are now."""
        found = self.scraped()
        return all(
            name in found and found[name][0] == pytest.approx(watts * 1e6, rel=TOLERANCE)
            for name, watts in self.meters.watts.items()
        )


@pytest.fixture(scope="module")
def measured(cluster: ClusterAccess, release: ChartRelease) -> Iterator[Measured]:
    """The examples' Scaphandre and Prometheus, and GreenSched that asks them and saves energy."""
    if cluster.can.count_watts is None:
        pytest.skip(f"{cluster.can.kind} has no energy counters that count known watts")
    with ExitStack() as undone:
        found = json.loads(cluster.kubectl("get", "nodes", "--output", "json"))["items"]
        first, second = (each["metadata"]["name"] for each in found)
        try:
            meters = undone.enter_context(cluster.can.count_watts({first: BUSY_W, second: CALM_W}))
        except CannotBuildHere as fault:
            pytest.skip(f"no meter is to be had: {fault}")
        cluster.kubectl("annotate", "nodes", first, second, f"{labels.POWER_CURVE_WATTS}={STEEP}")
        undone.callback(
            cluster.kubectl, "annotate", "nodes", first, second, f"{labels.POWER_CURVE_WATTS}-"
        )
        cluster.apply(*manifests(meters), namespace=SPACE)
        undone.callback(cluster.kubectl, "delete", "namespace", SPACE, "--wait=false")
        release.upgrade(*METERED)
        yield Measured(cluster, meters, (first, second))


def manifests(meters: RealMeters) -> list[dict[str, object]]:
    """Return the examples' objects with the images that the nodes have."""
    texts = [file.read_text() for file in sorted(EXAMPLES.glob("*.yaml"), reverse=True)]
    text = re.sub(r"image: hubblo/\S+", f"image: {meters.scaphandre_image}", "---\n".join(texts))
    text = re.sub(r"image: prom/\S+", f"image: {meters.prometheus_image}", text)
    return [each for each in yaml.safe_load_all(text) if each]


def believed(greensched: Callable[..., str]) -> dict[str, tuple[float, str]]:
    """Return each node's watts as `greensched nodes` tells them, and by which meter."""
    nodes = json.loads(greensched("nodes", "-o", "json"))["nodes"]
    return {each["name"]: (each["powerWatts"], each["powerMeter"] or "") for each in nodes}


def test_pods_follow_what_scaphandre_measures(
    measured: Measured,
    cluster: ClusterAccess,
    release: ChartRelease,
    users: str,
    shell: str,
    greensched: Callable[..., str],
) -> None:
    for turn, calm in enumerate(reversed(measured.nodes)):
        for name in measured.nodes:
            measured.meters.watts[name] = CALM_W if name == calm else BUSY_W
        cluster.wait_until(measured.is_scraped, "Prometheus has each node's watts")
        assert {source for _, source in measured.scraped().values()} == {"powercap_rapl_psys"}

        def are_believed() -> bool:
            told = believed(greensched)
            return all(
                told[name][0] == pytest.approx(watts, rel=TOLERANCE)
                for name, watts in measured.meters.watts.items()
            )

        cluster.wait_until(are_believed, "the extender believes them")
        assert {meter for _, meter in believed(greensched).values()} == {"scaphandre-psys"}
        cluster.wait_until(
            lambda: measured_nodes(cluster, release) == {2.0},
            "every extender believes both: each reads at its own time",
        )
        name = f"frugal-{turn}"
        cluster.apply(pod(name, pod_template(shell, "sleep 300 & wait")), namespace=users)
        node = "{.spec.nodeName}"
        told = ("pod", name, "--namespace", users)
        cluster.kubectl("wait", *told, f"--for=jsonpath={node}", "--timeout=30s")
        assert cluster.kubectl("get", *told, "--output", f"jsonpath={node}") == calm


def measured_nodes(cluster: ClusterAccess, release: ChartRelease) -> set[float]:
    """Return how many nodes each extender says are measured."""
    found = set()
    for each in release.pods("extender"):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{each['metadata']['name']}:8888/proxy/metrics"
        text = cluster.kubectl("get", "--raw", path)
        found |= {
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith("greensched_extender_measured_nodes ")
        }
    return found
