from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from greensched_core.errors import SignalUnavailable
from greensched_core.metering.measured import MeasuredPower, PowerReader
from greensched_core.metering.meters.catalogue import NODE_METERS
from greensched_core.metering.node_readings import node_utilisation, queries
from greensched_core.metering.prometheus import PrometheusApi, Sample

GOLDEN = Path(__file__).parents[2] / "golden" / "prometheus"
TAKEN_AT = 1795000000.123
NOTHING = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
ASK_OF = {query: ask for ask, query in queries().items()}
STORED = {path.stem for path in GOLDEN.glob("*.json")}
NODE_QUESTIONS = {question for meter in NODE_METERS for question in meter.questions}

Handler = Callable[[httpx.Request], httpx.Response]


def replay(request: httpx.Request) -> httpx.Response:
    file = GOLDEN / f"{ASK_OF[request.url.params['query']]}.json"
    return httpx.Response(200, content=file.read_bytes() if file.exists() else NOTHING)


async def read(handler: Handler, cores: dict[str, float] | None = None) -> MeasuredPower:
    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
        prometheus = PrometheusApi(http, "http://prometheus:9090/", timeout_s=2.0)
        return await PowerReader(prometheus, cpu_cores=(cores or {}).get).read(now=7.0)


def gauge(value: float, **labels: str) -> Sample:
    return Sample(labels, value, TAKEN_AT)


@pytest.mark.parametrize(
    ("node", "watts", "source"),
    [
        pytest.param("n1", 156 + 12 + 251.5 + 98.25, "kepler+dcgm", id="kepler-zones-and-gpus"),
        pytest.param("n2", 126.0, "kepler-0.9", id="kepler-0.9-joules"),
        pytest.param("n3", 143.5, "scaphandre", id="scaphandre-microwatts"),
        pytest.param("n4", 100.0, "rapl", id="node-exporter-rapl"),
    ],
)
async def test_each_meter_gives_watts_of_its_node(node: str, watts: float, source: str) -> None:
    measured = await read(replay)
    reading = measured.watts[node]
    assert reading.value == pytest.approx(watts)
    assert (reading.unit, reading.source, reading.taken_at) == ("W", source, TAKEN_AT)
    assert not reading.estimated


@pytest.mark.parametrize("question", sorted(STORED & NODE_QUESTIONS))
async def test_each_stored_answer_gives_watts_by_its_meter(question: str) -> None:
    sources = {it.source.split("+")[0] for it in (await read(replay)).watts.values()}
    meters = {meter.source for meter in NODE_METERS if question in meter.questions}
    assert meters & sources, "no node is measured by it: store the answer of a node of its own"


async def test_gpus_alone_are_no_node() -> None:
    assert "n5" not in (await read(replay)).watts


async def test_utilisation_comes_from_the_first_source_that_has_it() -> None:
    measured = await read(replay, cores={"n4": 64.0})
    ratios = {node: (it.value, it.source) for node, it in measured.utilisation.items()}
    assert ratios == {
        "n1": (0.25, "kubelet"),  # by kube-state-metrics' capacity
        "n4": (0.375, "node-exporter"),
    }  # n2: nobody knows its CPUs


async def test_a_failing_question_is_a_fault_and_the_others_count() -> None:
    def fail_kepler(request: httpx.Request) -> httpx.Response:
        if "kepler_node_cpu_watts" in request.url.params["query"]:
            return httpx.Response(400, content=(GOLDEN / "error.json").read_bytes())
        return replay(request)

    measured = await read(fail_kepler)
    assert measured.faults[0].startswith("kepler-cpu: Prometheus answered 400, bad_data")
    assert "n1" not in measured.watts
    assert measured.watts["n2"].value == pytest.approx(126.0)


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        pytest.param(b"<html>login</html>", 200, "not JSON", id="a-login-page"),
        pytest.param(b"", 503, "answered 503", id="empty"),
        pytest.param(b'{"status":"success"}', 200, "answered 200", id="no-data"),
        pytest.param(
            b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
            200, "not JSON of a vector", id="a-matrix",
        ),
        pytest.param(
            b'{"status":"success","data":{"resultType":"vector","result":'
            b'[{"metric":{},"value":[1,"many"]}]}}',
            200, "not JSON", id="no-number",
        ),
    ],
)  # fmt: skip
async def test_an_answer_that_is_none_is_a_signal_unavailable(
    content: bytes, status: int, words: str
) -> None:
    with pytest.raises(SignalUnavailable, match=words):
        await read(lambda _: httpx.Response(status, content=content))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(httpx.ReadTimeout("late"), "no answer within 2 s", id="late"),
        pytest.param(httpx.ConnectError("refused"), "refused", id="down"),
    ],
)
async def test_an_unreachable_server_is_asked_no_further(
    fault: httpx.HTTPError, words: str
) -> None:
    asked = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        raise fault

    with pytest.raises(SignalUnavailable, match=words):
        await read(refuse)
    assert len(asked) <= 4


async def test_an_answer_nested_beyond_reason_is_no_signal_not_a_crash() -> None:
    deep = b'{"status":"success","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(SignalUnavailable, match="not JSON of a vector"):
        await read(lambda _: httpx.Response(200, content=deep))


def test_two_questions_of_one_name_are_refused() -> None:
    rapl = next(each for each in NODE_METERS if each.source == "rapl")
    other = replace(rapl, questions={"rapl-package": "something_else"})
    assert "120s" in queries(120.0, [rapl, rapl])["rapl-package"]
    with pytest.raises(ValueError, match="another meter has a different question rapl-package"):
        queries(120.0, [rapl, other])


def test_utilisation_never_exceeds_one() -> None:
    samples = {"kubelet": [gauge(9.0, node="n1")]}
    assert node_utilisation(samples, {"n1": 8.0}.get)["n1"].value == 1.0


async def test_the_watts_of_gpus_are_also_separate_with_their_meter() -> None:
    found = {node: (it.value, it.source) for node, it in (await read(replay)).gpu_watts.items()}
    assert found["n1"] == (251.5 + 98.25, "dcgm"), "DCGM's blank value is no GPU"
    assert found["n5"] == (70.0, "dcgm"), "also where no CPU meter sees the node"
