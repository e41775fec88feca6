"""What kubelets say of CPU time, and what pods took by it."""

import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.metering.energy_pieces import energy_j
from greensched_core.metering.pod_runs import PodRun
from greensched_core.power.curves import PowerCurve
from greensched_core.state import Node
from greensched_testbed.stress.kubelet_meter import KubeletMeter
from greensched_testbed.stress.kubelet_pages import parse_resource, parse_summary

GOLDEN = Path(__file__).parents[2] / "golden" / "kubelet"
RESOURCE = GOLDEN / "metrics-resource.prom"
SUMMARY = GOLDEN / "stats-summary.json"
CURVE = PowerCurve(tuple(100.0 + 10.0 * step for step in range(11)))
NODE = Node("n1", "DE", 8.0, 2.0**35, None, CURVE, "annotation", "")
BEGAN_S = 1_795_000_000.0


def test_the_kubelets_page_tells_cpu_seconds_and_when_it_looked() -> None:
    page = parse_resource(RESOURCE.read_bytes(), now_s=7.0)
    assert page.node == (1_795_477_381.785, 23_082.513178293)
    assert page.pods == {
        ("team", "train-x7k2p"): (1_795_477_385.355, 10.504563463),
        ("shop", "shop-5c9"): (1_795_477_383.997, 0.092513552),
    }


def test_containers_add_up_where_the_page_has_no_pods() -> None:
    lines = [
        line
        for line in RESOURCE.read_text().splitlines()
        if not line.startswith("pod_") and " pod_" not in line
    ]
    page = parse_resource("\n".join(lines).encode(), now_s=7.0)
    looked_at_s, cpu_s = page.pods[("team", "train-x7k2p")]
    assert looked_at_s == 1_795_477_381.588, "the later of the two"
    assert cpu_s == pytest.approx(7.602816257 + 1.911702026)


def test_what_tells_no_time_was_looked_at_now() -> None:
    assert parse_resource(b"node_cpu_usage_seconds_total 5\n", now_s=7.0).node is None, "no type"
    typed = b"# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total 5\n"
    assert parse_resource(typed, now_s=7.0).node == (7.0, 5.0)


def test_the_summary_tells_the_same_in_whole_seconds() -> None:
    page, summary = parse_resource(RESOURCE.read_bytes(), 7.0), parse_summary(SUMMARY.read_bytes())
    assert page.node is not None and summary.node is not None
    assert summary.node == (float(int(page.node[0])), page.node[1])
    assert summary.pods == {
        whose: (float(int(at_s)), cpu_s) for whose, (at_s, cpu_s) in page.pods.items()
    }


def test_a_pod_that_the_summary_knows_no_cpu_time_of_is_left_out() -> None:
    told = json.loads(SUMMARY.read_text())
    told["pods"].append({"podRef": {"name": "new", "namespace": "team", "uid": "v"}})
    assert ("team", "new") not in parse_summary(json.dumps(told).encode()).pods


@pytest.mark.parametrize("body", [b"<html>login</html>", b'pod{x="', b"\xff\xfe"])
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        parse_resource(body + b" \n", now_s=7.0)
    with pytest.raises(BadInput):
        parse_summary(body)


@dataclass
class Scene:
    """A node of 8 cores, 4 of them busy and 2 of these by one pod, on a clock that stands."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(BEGAN_S - 5.0))
    status: int = 200
    has_resource: bool = True

    def __post_init__(self) -> None:
        access = ApiAccess("http://api", ssl.create_default_context())
        self.client = ApiClient(access, transport=httpx.MockTransport(self._answer))
        self.meter = KubeletMeter(self.client, ["n1"], self.clock)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        now_s = self.clock.now()
        age_s = now_s - BEGAN_S
        if self.status != 200:
            return httpx.Response(self.status, content=b"no right")
        if request.url.path.endswith("/stats/summary"):
            at = {"time": f"2026-11-18T00:00:{int(age_s) + 5:02d}Z"}
            return httpx.Response(200, content=json.dumps({"node": {"cpu": at}}).encode())
        assert request.url.path == "/api/v1/nodes/n1/proxy/metrics/resource"
        if not self.has_resource:
            return httpx.Response(404, content=b"no such page")
        at_ms = round(now_s * 1_000)
        lines = ["# TYPE node_cpu_usage_seconds_total counter",
                 f"node_cpu_usage_seconds_total {9_000 + 4.0 * age_s} {at_ms}"]  # fmt: skip
        if 0 < age_s < 60.0:
            of = 'namespace="t",pod="p"'
            lines += ["# TYPE pod_cpu_usage_seconds_total counter",
                      f"pod_cpu_usage_seconds_total{{{of}}} {2 * age_s} {at_ms}"]  # fmt: skip
        return httpx.Response(200, content="\n".join([*lines, ""]).encode())

    async def ask_for(self, seconds: float, every_s: float = 5.0) -> None:
        for _ in range(int(seconds / every_s)):
            await self.meter.ask()
            self.clock.advance(every_s)


RUN = PodRun("u", "t", "p", BEGAN_S, BEGAN_S + 60.0, NODE)


async def test_a_pod_takes_its_share_of_what_the_curve_says() -> None:
    scene = Scene()
    await scene.ask_for(80.0)
    found = scene.meter.pieces([RUN])
    # Half of the 50 W above idle; seen until 55 s, and the rest is as that.
    assert found is not None and energy_j(found["u"]) == pytest.approx(25.0 * 60.0)


@pytest.mark.parametrize(
    ("seconds", "is_known"), [pytest.param(35.0, False, id="hardly"), pytest.param(40.0, True)]
)
async def test_a_run_of_which_too_little_was_seen_is_not_known(
    seconds: float, is_known: bool
) -> None:
    scene = Scene()
    await scene.ask_for(seconds)  # from 5 s before its start
    assert (scene.meter.pieces([RUN]) is not None) is is_known


async def test_a_kubelet_that_may_not_be_asked_is_reported_and_gives_no_reading() -> None:
    scene = Scene(status=403)
    await scene.ask_for(60.0)
    assert "HTTP 403" in scene.meter.fault and scene.meter.pieces([RUN]) is None
    scene.status = 200
    await scene.meter.ask()
    assert scene.meter.fault == ""


async def test_a_kubelet_without_that_page_is_asked_for_its_summary() -> None:
    scene = Scene(has_resource=False)
    await scene.meter.ask()
    assert scene.meter.fault == ""
