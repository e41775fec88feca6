"""Ends are completed by what was measured; what cannot be is counted, and holds up none."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_core.ledger_records import Amounts, LedgerRecord, What
from greensched_core.metering.energy_pieces import Piece
from greensched_core.metering.prometheus import PrometheusApi
from greensched_operator.ledger.grid_history import Known
from greensched_operator.ledger.measured_amounts import measured_amounts
from greensched_operator.ledger.measuring import Counts, Measuring, Unmeasured
from greensched_operator.ledger.pod_runs import RanPod
from greensched_operator.planning.cluster_state import NodeSite
from tests.operator.ledger.conftest import MakeRecord

BEGAN_S = 1_700_000_000.0
UNTIL_S = BEGAN_S + 100.0
SITE = NodeSite("DE", 1.5)
KWH_J = 3.6e6

Handler = Callable[[httpx.Request], httpx.Response]


def ran(uid: str = "p1", site: NodeSite | None = SITE, until_s: float | None = UNTIL_S) -> RanPod:
    return RanPod(uid, "team", f"name-{uid}", site, BEGAN_S, until_s)


def matrix(*tracks: dict[str, object]) -> httpx.Response:
    answer = {"status": "success", "data": {"resultType": "matrix", "result": list(tracks)}}
    return httpx.Response(200, content=json.dumps(answer).encode())


def kepler(request: httpx.Request) -> httpx.Response:
    """One pod p1 that took 1,000 J, evenly."""
    if "kepler_pod_cpu_joules_total" not in request.url.params["query"]:
        return matrix()
    points = [[BEGAN_S + at, str(10.0 * at)] for at in (20, 60, 100)]
    return matrix({"metric": {"pod_id": "p1", "zone": "package"}, "values": points})


@dataclass
class Scene:
    """Measuring with a Prometheus that answers as it is told, on a clock that stands."""

    answer: Handler = kepler
    clock: ManualClock = field(default_factory=lambda: ManualClock(UNTIL_S))
    pods: dict[str, list[RanPod]] = field(default_factory=lambda: {"uid-0": [ran()]})
    written: list[LedgerRecord] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    unmeasured: list[Unmeasured] = field(default_factory=list)
    asked: int = 0

    def __post_init__(self) -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self._handle))
        self.measuring = Measuring(
            PrometheusApi(http, "http://prometheus"),
            lambda uid: self.pods.pop(uid, []),
            lambda found, pods: measured_amounts(
                found.pieces, pods, 1.2, lambda *_: (360.0, 100.0)
            ),
            self.written.append,
            self.clock,
            Counts(self.measured.append, self.unmeasured.append),
        )

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        return self.answer(request)

    async def after(self, seconds: float) -> None:
        """Let time pass, then measure what is due."""
        self.clock.advance(seconds)
        await self.measuring.measure_due()


async def test_an_end_is_reported_again_with_what_was_measured(make_record: MakeRecord) -> None:
    scene, ended = Scene(), make_record(0, What.ENDED)
    scene.measuring.take(ended)
    await scene.after(89.0)
    assert (scene.written, scene.asked) == ([], 0), "scrapes lag"
    await scene.after(1.0)
    # 1,000 J at the pod, 1,500 J at the wall of its site; 360 g/kWh and 100 per MWh.
    [told] = scene.written
    assert told == replace(ended, measured=told.measured, meter="kepler")
    assert told.measured.energy_j == pytest.approx(1_500.0)
    assert told.measured.carbon_g == pytest.approx(0.15)
    assert told.measured.cost == pytest.approx(1_500 / KWH_J * 0.1)
    assert told.id == ended.id, "it completes the same record"
    assert (scene.measured, scene.unmeasured) == (["kepler"], [])


@pytest.mark.parametrize(
    ("answer", "reason", "first_pass"),
    [
        pytest.param(lambda _: matrix(), Unmeasured.NO_METER, 3, id="no-meter"),
        pytest.param(lambda _: httpx.Response(503), Unmeasured.REFUSED, 1, id="refused"),
    ],
)
async def test_it_asks_again_and_then_counts_why(
    make_record: MakeRecord, answer: Handler, reason: Unmeasured, first_pass: int
) -> None:
    scene = Scene(answer)
    scene.measuring.take(make_record(0, What.ENDED))
    await scene.after(90.0)
    assert (scene.asked, scene.unmeasured) == (first_pass, [])
    await scene.after(210.0)
    assert scene.unmeasured == []
    await scene.after(1_500.0)
    assert (scene.unmeasured, scene.written) == ([reason], [])
    await scene.after(10_000.0)
    assert scene.asked == 3 * first_pass


async def test_a_prometheus_that_comes_back_is_asked_for_what_waited(
    make_record: MakeRecord,
) -> None:
    def down(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    scene = Scene(down)
    scene.pods["uid-1"] = [ran()]
    for number in range(2):
        scene.measuring.take(make_record(number, What.ENDED))
    await scene.after(90.0)
    assert scene.asked == 1, "the next question would fare no better"
    scene.answer = kepler
    await scene.after(210.0)
    assert sorted(told.subject.name for told in scene.written) == ["job-0", "job-1"]


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param([], Unmeasured.NO_RUN_SEEN, id="no-pod"),
        pytest.param([ran(until_s=None)], Unmeasured.NO_RUN_SEEN, id="it-still-runs"),
        pytest.param([ran(f"p{n}") for n in range(1_001)], Unmeasured.TOO_MANY_PODS, id="many"),
    ],
)
async def test_what_cannot_be_asked_about_is_counted_at_once(
    make_record: MakeRecord, pods: list[RanPod], reason: Unmeasured
) -> None:
    scene = Scene(pods={"uid-0": pods})
    scene.measuring.take(make_record(0, What.ENDED))
    await scene.after(90.0)
    assert (scene.unmeasured, scene.asked, scene.written) == ([reason], 0, [])


async def test_our_own_fault_with_one_silences_no_other(make_record: MakeRecord) -> None:
    scene = Scene(pods={"uid-0": [ran()], "uid-1": [ran()]})
    answers = [RuntimeError("a fault"), None]

    def once_broken(request: httpx.Request) -> httpx.Response:
        fault = answers.pop(0) if answers else None
        if fault is not None:
            raise fault
        return kepler(request)

    scene.answer = once_broken
    for number in range(2):
        scene.measuring.take(make_record(number, What.ENDED))
    await scene.after(90.0)
    assert scene.unmeasured == [Unmeasured.OTHER]
    assert [told.subject.name for told in scene.written] == ["job-1"]


async def test_more_ends_than_wait_are_counted_and_their_pods_forgotten(
    make_record: MakeRecord,
) -> None:
    scene = Scene()
    scene.pods["uid-5000"] = [ran()]
    for number in range(5_001):
        scene.measuring.take(make_record(number, What.ENDED))
    assert scene.unmeasured == [Unmeasured.QUEUE_FULL]
    assert scene.pods.keys() == {"uid-0"}


async def test_gpus_that_no_meter_sees_leave_the_estimate(make_record: MakeRecord) -> None:
    scene, ended = Scene(), make_record(0, What.ENDED)
    scene.measuring.take(replace(ended, subject=replace(ended.subject, gpus=1.0)))
    await scene.after(90.0)
    assert scene.written == []


def amounts(pods: list[RanPod], grid: Callable[[str, float, float], Known]) -> Amounts:
    pieces = [Piece(BEGAN_S, BEGAN_S + 50.0, KWH_J), Piece(BEGAN_S + 50.0, UNTIL_S, 3 * KWH_J)]
    return measured_amounts({pod.uid: pieces for pod in pods}, pods, 1.25, grid)


def by_the_half(zone: str, begin_s: float, _: float) -> Known:
    grams = 100.0 if begin_s == BEGAN_S else 500.0
    return (grams if zone == "DE" else None), 200.0


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([ran()], Amounts(6 * KWH_J, 2_400.0, 1.2), id="each-piece-by-its-own-time"),
        pytest.param(
            [ran(site=NodeSite("DE", None))], Amounts(5 * KWH_J, 2_000.0, 1.0), id="default-pue"
        ),
        pytest.param(
            [ran(), ran("p2", NodeSite("FR", 1.0))], Amounts(10 * KWH_J, None, 2.0),
            id="one-zone-unknown",
        ),
        pytest.param([ran(site=None)], Amounts(5 * KWH_J, None, None), id="node-unknown"),
    ],
)  # fmt: skip
def test_carbon_and_cost_go_by_the_grid_as_it_was(pods: list[RanPod], expected: Amounts) -> None:
    found = amounts(pods, by_the_half)
    assert found.energy_j == pytest.approx(expected.energy_j)
    assert found.carbon_g == pytest.approx(expected.carbon_g)
    assert found.cost == pytest.approx(expected.cost)
