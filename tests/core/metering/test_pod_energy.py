"""Whose word counts for a pod, and what it is asked for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from greensched_core.errors import SignalUnavailable
from greensched_core.metering.energy_pieces import energy_j
from greensched_core.metering.meters.catalogue import ESTIMATING, POD_METERS
from greensched_core.metering.pod_energy import MeasuredPods, measured_pods, step_of
from greensched_core.metering.pod_runs import PodRun
from greensched_core.metering.prometheus import PrometheusApi, PrometheusUnreachable
from greensched_core.power.curves import PowerCurve
from greensched_core.state import Node

GOLDEN = Path(__file__).parents[2] / "golden" / "prometheus"
NOTHING = b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
METERS = {
    "kepler_pod_cpu_joules_total": "pods-kepler",
    "kepler_pod_gpu_watts": "pods-kepler-gpu",
    "kepler_container_joules_total": "pods-kepler-0.9",
    "scaph_process_power_consumption_microwatts": "pods-scaphandre",
    "pod_cpu_usage_seconds_total": "pods-kubelet",
    "container_cpu_usage_seconds_total": "pods-kubelet-containers",
    "node_cpu_usage_seconds_total": "pods-kubelet-node",
}
BEGAN_S = 1795000000.0
NODE = Node(
    "n1",
    "DE",
    8.0,
    2.0**35,
    None,
    PowerCurve(tuple(100.0 + 10.0 * at for at in range(11))),
    "label",
    "",
)
RUN = PodRun(
    "0f3c9a52-7d1e-4b1c-9c44-2a8f6f1f0c11", "team", "train-x7k2p", BEGAN_S, BEGAN_S + 600.0, NODE
)

Handler = Callable[[httpx.Request], httpx.Response]


def metric_of(request: httpx.Request) -> str:
    metrics = {name for name in METERS if re.search(rf"\b{name}\b", request.url.params["query"])}
    (metric,) = metrics
    return metric


def replay(*metrics: str) -> Handler:
    """A server that knows some of the meters."""

    def handler(request: httpx.Request) -> httpx.Response:
        metric = metric_of(request)
        if metric not in metrics:
            return httpx.Response(200, content=NOTHING)
        return httpx.Response(200, content=(GOLDEN / f"{METERS[metric]}.json").read_bytes())

    return handler


async def measured(handler: Handler, *runs: PodRun, with_gpus: bool = False) -> MeasuredPods | None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
        prometheus = PrometheusApi(http, "http://prometheus:9090/", timeout_s=2.0)
        return await measured_pods(prometheus, runs or (RUN,), with_gpus=with_gpus)


def joules(found: MeasuredPods | None) -> Mapping[str, float]:
    assert found is not None
    return {uid: energy_j(pieces) for uid, pieces in found.pieces.items()}


@pytest.mark.parametrize(
    ("metrics", "meter", "watts"),
    [
        pytest.param(list(METERS), "kepler", 110.0, id="package-and-memory-not-platform"),
        pytest.param(list(METERS)[2:], "kepler-0.9", 85.0, id="containers-of-one-pod"),
        pytest.param(list(METERS)[3:], "scaphandre", 95.0, id="processes-in-microwatts"),
        # Half of the 50 W above idle that a node draws at half load.
        pytest.param(list(METERS)[4:], "kubelet", 25.0, id="cpu-time-by-the-curve"),
        pytest.param(list(METERS)[5:], "kubelet", 25.0, id="cpu-time-of-containers"),
    ],
)
async def test_the_first_meter_that_saw_the_run_counts(
    metrics: list[str], meter: str, watts: float
) -> None:
    found = await measured(replay(*metrics))
    assert found is not None and found.meter == meter
    assert joules(found) == {RUN.uid: pytest.approx(watts * 600.0)}


async def test_cpu_time_tells_nothing_on_a_node_that_is_not_known() -> None:
    unknown = replace(RUN, node=None)
    assert await measured(replay(*list(METERS)[4:]), unknown) is None
    elsewhere = replace(RUN, node=replace(NODE, name="n2"))
    assert await measured(replay(*list(METERS)[4:]), elsewhere) is None
    assert await measured(replay("pod_cpu_usage_seconds_total"), RUN) is None


def test_only_cpu_time_is_an_estimate() -> None:
    assert {POD_METERS[-1].name} == ESTIMATING, "it counts where no meter saw a run"


async def test_asking_for_a_meter_shows_its_word_alone() -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(replay(*METERS))) as http:
        prometheus = PrometheusApi(http, "http://prometheus:9090/", timeout_s=2.0)
        found = await measured_pods(prometheus, [RUN], meters=POD_METERS[-1:])
    assert found is not None and found.meter == "kubelet"


async def test_what_was_not_scraped_is_as_the_rest() -> None:
    longer = replace(RUN, until_s=RUN.until_s + 60.0)
    found = await measured(replay("scaph_process_power_consumption_microwatts"), longer)
    assert joules(found) == {RUN.uid: pytest.approx(95.0 * 660.0)}


async def test_a_run_that_was_hardly_seen_is_not_measured() -> None:
    longer = replace(RUN, until_s=RUN.until_s + 600.0)
    assert await measured(replay("scaph_process_power_consumption_microwatts"), longer) is None


async def test_a_counter_that_stands_still_at_zero_is_no_meter() -> None:
    points = ",".join(f'[{BEGAN_S + 20 + 30 * step},"0"]' for step in range(20))
    still = f'[{{"metric":{{"pod_id":"{RUN.uid}","zone":"package"}},"values":[{points}]}}]'

    def handler(request: httpx.Request) -> httpx.Response:
        is_kepler = metric_of(request) == "kepler_pod_cpu_joules_total"
        answer = NOTHING.replace(b"[]", still.encode()) if is_kepler else NOTHING
        return httpx.Response(200, content=answer)

    assert await measured(handler) is None


async def test_gpus_count_where_there_are_some_and_without_them_nothing_is_measured() -> None:
    found = await measured(replay(*METERS), with_gpus=True)
    assert joules(found)[RUN.uid] == pytest.approx((110.0 + 250.0) * 600.0, rel=0.01)
    assert await measured(replay("kepler_pod_cpu_joules_total"), with_gpus=True) is None
    without_kepler = replay("scaph_process_power_consumption_microwatts")
    assert await measured(without_kepler, with_gpus=True) is None


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        pytest.param(
            httpx.Response(400, content=(GOLDEN / "error.json").read_bytes()),
            SignalUnavailable, "answered 400, bad_data", id="refused",
        ),
        pytest.param(
            httpx.Response(200, content=(GOLDEN / "kepler-cpu.json").read_bytes()),
            SignalUnavailable, "vector instead of a matrix", id="another-kind-of-answer",
        ),
        pytest.param(httpx.ReadTimeout("late"), PrometheusUnreachable, "within 2 s", id="late"),
    ],
)  # fmt: skip
async def test_what_is_no_answer_is_a_missing_signal(
    answer: httpx.Response | Exception, kind: type[Exception], words: str
) -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(kind, match=words):
        await measured(handler)


@pytest.mark.parametrize("count", [1, 20, 21, 45])
async def test_many_pods_are_asked_about_a_few_at_a_time(count: int) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params["query"])
        assert len(str(request.url)) < 4_000
        return httpx.Response(200, content=NOTHING)

    runs = [replace(RUN, uid=f"{place:036d}") for place in range(count)]
    assert await measured(handler, *runs) is None
    assert all(sum(run.uid in query for query in asked) == 1 for run in runs)
    by_meters, by_cpu_time = len(POD_METERS) - 1, 2  # that of pods, and of their containers
    assert len(asked) == (by_meters + by_cpu_time) * -(-count // 20)


@pytest.mark.parametrize(("length_s", "step_s"), [(0, 5), (1_200, 5), (1_201, 6), (86_400, 360)])
def test_a_longer_run_has_longer_steps(length_s: float, step_s: float) -> None:
    assert step_of(length_s) == step_s
