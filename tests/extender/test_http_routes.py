"""The applications, asked over ASGI as kube-scheduler, the kubelet and the CLI ask them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from greensched_core.serving import server
from greensched_core.testing import make_node
from greensched_core.watching import WatchHealth
from greensched_extender.app import Health, explain_app, extender_app
from greensched_extender.gauges import Gauges, WatchesHealth

World = Any


@pytest.fixture
def wrong() -> dict[str, str]:
    """What is wrong, to be set by a test."""
    return {"alive": "", "ready": ""}


@pytest.fixture
def verbs(world: World, wrong: dict[str, str]) -> FastAPI:
    """The verbs' application."""
    health = WatchHealth(synced=True, lost_at=None, lists=2)
    watches = WatchesHealth(world.clock, needed={"nodes": health, "pods": health}, optional={})
    gauges = Gauges(
        world.metrics,
        snapshot=world.snapshot,
        watches=watches,
        choice=world.choice,
        grid=world.known.grid,
        clock=world.clock,
    )
    return extender_app(
        world.extender,
        world.metrics,
        Health(lambda: wrong["alive"], lambda: wrong["ready"]),
        gauges.set,
        max_body_bytes=2048,
    )


@pytest.fixture
async def http(verbs: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the verbs' application."""
    async with _client(verbs) as client:
        yield client


@pytest.fixture
async def port(verbs: FastAPI) -> AsyncIterator[int]:
    """The port of a real server of the verbs' application."""
    one = server(verbs, "127.0.0.1", 0)
    serving = asyncio.create_task(one.serve())
    while not one.started:
        await asyncio.sleep(0.005)
    yield one.port
    one.should_exit = True
    await serving


@pytest.fixture
async def why(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the explain routes."""
    async with _client(explain_app(world.explanations())) as client:
        yield client


def _client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://extender")


async def test_prioritize_answers_with_its_handler_time(
    http: httpx.AsyncClient, world: World
) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    reply = await http.post("/prioritize", content=world.body(["a", "b"]))
    assert reply.json() == [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["server-timing"].startswith("handler;dur=")
    assert world.counted("requests_total", verb="prioritize", outcome="ok") == 1
    assert world.counted("handler_seconds_count", verb="prioritize") == 1


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in-chunks"])
async def test_a_body_that_is_too_large_is_refused_without_being_read(
    http: httpx.AsyncClient, world: World, announced: bool
) -> None:
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(50):
            read += 1024
            yield b"x" * 1024

    headers = {"content-length": str(50 * 1024)} if announced else {}
    reply = await http.post("/filter", content=chunks(), headers=headers)
    assert reply.status_code == 413
    assert "larger than 2048 bytes" in reply.json()["Error"]
    assert reply.headers["connection"] == "close"
    assert read <= (0 if announced else 4096)
    assert world.counted("requests_total", verb="filter", outcome="too_large") == 1


@pytest.mark.parametrize(
    ("length", "status"), [("abc", 400), ("-1", 400), ("", 400), ("9" * 5_000, 413)]
)
async def test_an_odd_content_length_is_refused_not_a_crash(
    http: httpx.AsyncClient, world: World, length: str, status: int
) -> None:
    reply = await http.post("/filter", content=b"{}", headers={"content-length": length})
    assert reply.status_code == status
    assert reply.json()["Error"]
    assert world.counted("requests_total", verb="filter", outcome="failed") == 0


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"Pod":1}', b'{"Pod":{"spec":{"schedulerName":3}}}']
)
async def test_malformed_bodies_get_400_and_a_sentence(
    http: httpx.AsyncClient, body: bytes
) -> None:
    for verb in ("filter", "prioritize"):
        reply = await http.post(f"/{verb}", content=body)
        assert reply.status_code == 400
        assert len(reply.json()["Error"]) > 20


async def test_an_unknown_verb_and_a_wrong_method_say_so(http: httpx.AsyncClient) -> None:
    reply = await http.post("/preempt", content=b"{}")
    assert (reply.status_code, reply.json()["Error"]) == (404, "no such route: POST /preempt")
    reply = await http.get("/filter")
    assert (reply.status_code, reply.json()["Error"]) == (405, "/filter does not take GET")
    assert reply.headers["allow"] == "POST"


@pytest.mark.parametrize("is_sent", [True, False], ids=["with-its-body", "before-its-body"])
async def test_an_upgrade_is_refused_in_one_answer_and_its_body_is_no_other_request(
    port: int, world: World, is_sent: bool
) -> None:
    world.add(make_node("a"))
    body = world.body(["a"])
    head = (
        "POST /prioritize HTTP/1.1\r\nHost: extender\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        f"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + (body if is_sent else b""))
    async with asyncio.timeout(20):
        reply = await reader.read()  # until the server hangs up
    writer.close()
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.endswith(
        b'{"Error":"Upgrade is not supported: send the request as plain HTTP/1.1"}'
    )
    assert reply.count(b"HTTP/1.1 ") == 1
    assert world.counted("requests_total", verb="prioritize", outcome="bad_request") == 1


async def test_every_known_value_of_a_label_is_there_before_it_is_counted(
    http: httpx.AsyncClient,
) -> None:
    text = (await http.get("/metrics")).text
    for series in (
        'guard_fallbacks_total{reason="late"} 0.0',
        'guard_fallbacks_total{reason="rule_failed"} 0.0',
        'bundle_loads_total{outcome="refused"} 0.0',
        'signal_faults_total{reason="negative-carbon"} 0.0',
        'signal_steps_total{kind="price",step="static-zone"} 0.0',
        'task_failures_total{task="bundle"} 0.0',
    ):
        assert f"greensched_extender_{series}" in text


async def test_bind_that_is_off_says_how_to_switch_it_on(
    http: httpx.AsyncClient, world: World
) -> None:
    reply = await http.post("/bind", content=b"{}")
    assert reply.status_code == 404
    assert "GREENSCHED_EXTENDER_BIND_ENABLED" in reply.json()["Error"]
    assert world.counted("requests_total", verb="bind", outcome="disabled") == 1


async def test_probes_tell_what_is_wrong(http: httpx.AsyncClient, wrong: dict[str, str]) -> None:
    for route, key in (("/healthz", "alive"), ("/readyz", "ready")):
        assert (await http.get(route)).text == "ok"
        wrong[key] = "waiting for the first list of pods"
        reply = await http.get(route)
        assert (reply.status_code, reply.text) == (503, "waiting for the first list of pods")


async def test_metrics_tell_of_the_snapshot_and_name_no_pod_and_no_node(
    http: httpx.AsyncClient, world: World
) -> None:
    world.add(make_node("secret-node", zone="FR"), make_node("other-node", zone="PL"))
    world.scores("secret-node", "other-node")
    text = (await http.get("/metrics")).text
    assert "greensched_extender_nodes 2.0" in text
    assert "greensched_extender_provisional_pods 1.0" in text
    assert 'greensched_extender_watch_lists_total{resource="nodes"} 2.0' in text
    assert 'greensched_extender_signal_age_seconds{kind="carbon",zone="FR"} 60.0' in text
    assert 'model_info{bundle="",policy="weighted-cost",runs_in="",sha256=""} 1.0' in text
    again = (await http.get("/metrics")).text
    assert 'greensched_extender_watch_lists_total{resource="nodes"} 2.0' in again
    assert "secret-node" not in text
    assert "p1" not in text


async def test_why_a_pod_went_where_it_went(
    why: httpx.AsyncClient, world: World, pod: Callable[..., dict[str, Any]]
) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.scores("a", "b", pod=pod("web"))
    reply = await why.get("/v1/decisions/default/web")
    (decision,) = reply.json()["decisions"]
    assert [candidate["node"] for candidate in decision["candidates"]] == ["a", "b"]
    reply = await why.get("/v1/decisions/default/other")
    assert (reply.status_code, "default/other" in reply.json()["error"]) == (404, True)


async def test_what_is_believed_of_each_node(why: httpx.AsyncClient, world: World) -> None:
    world.snapshot.put_node(make_node("b", zone="FR", cpu_cores=10.0), ("label x: bad",))
    world.add(make_node("a"))
    world.snapshot.put_pod("u", "b", (5.0, 1.0, 0.0))
    world.snapshot.put_pod("v", "ghost", (5.0, 1.0, 0.0))
    first, second = (await why.get("/v1/nodes")).json()["nodes"]
    assert (first["name"], second["name"]) == ("a", "b")
    assert (second["cpuUtilisation"], second["cpuUtilisationFrom"]) == (0.25, "requests")
    assert second["powerWatts"] > second["idleWatts"]
    assert (second["carbonGramsPerKwh"], second["pods"]) == (50.0, 1)
    assert second["faults"] == ["label x: bad"]


async def test_which_policy_serves(why: httpx.AsyncClient) -> None:
    told = (await why.get("/v1/policy")).json()
    assert (told["policy"], told["serving"], told["fallbackPolicy"]) == (
        "weighted-cost",
        "weighted-cost",
        "weighted-cost",
    )
    assert told["weights"] == {"cost": 1.0, "carbon": 1.0, "performance": 0.1}
    assert json.dumps(told)
