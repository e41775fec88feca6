"""Prioritize under load: scheduled requests while the watch brings 500 pod events a second.

Lists and events are recorded from a real API server and then played back (see `recorded_api`). The
extender, the load generator and the playing server are separate processes on one machine.
"""

import asyncio
import itertools
import json
import random
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import msgspec

from benchmarks.bench_cluster import NODE_ZONES, PODS, at_once, extender_process, pod
from benchmarks.command_line import ROOT
from benchmarks.http_load import Timing, open_loop, post
from benchmarks.recorded_api import record
from greensched_core.kubernetes_api import ApiClient
from greensched_simulator.formats.synthetic_grid import SyntheticSlot, synthetic_slots
from greensched_testbed.certificates import Authority
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.cluster import publish_grid
from greensched_testbed.demo.world import DEMO_ZONES
from greensched_testbed.ports import free_port
from greensched_testbed.processes import start_process

EVENTS_PER_S = 500.0
RECORDED_EVENTS = 6_000
_LIVES_AT_ONCE = 200  # pods
_WARM_UP_S = 5.0
_WIRE = ROOT / "tests/golden/extender/prioritize.json"


@dataclass(frozen=True)
class Percentiles:
    """Milliseconds of one turn in the handler and at the client, with the actual load."""

    requests: int
    handler_p50_ms: float
    handler_p99_ms: float
    client_p50_ms: float
    client_p99_ms: float
    client_max_ms: float
    events_per_s: float


def measure(
    recording: Path, nodes: Sequence[str], *, rate_per_s: float, turns: int, seconds: float
) -> list[Percentiles]:
    """Return the percentiles of prioritize over `nodes` at `rate_per_s` requests a second.

    All turns, each `seconds` long, use one extender process.
    """
    with playing(recording) as environment, extender_process(recording, environment) as running:
        return asyncio.run(_measure(recording, nodes, running.port, rate_per_s, turns, seconds))


@contextmanager
def playing(recording: Path) -> Iterator[dict[str, str]]:
    """Play the recording on a free port; give the variables by which a pod finds it."""
    port = free_port()
    argv = [sys.executable, "-m", "benchmarks.recorded_api", str(recording), str(port),
            str(EVENTS_PER_S)]  # fmt: skip
    process = start_process("recorded-api", argv, recording / "recorded-api.log", folder=ROOT)
    (recording / "port").write_text(str(port))
    try:
        process.wait_until(lambda: _sent(recording) is not None, "an answer", 30.0)
        yield {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    finally:
        process.kill()


def _sent(recording: Path) -> int | None:
    """Return how many events were played; None while the server does not answer."""
    port = (recording / "port").read_text()
    context = ssl.create_default_context(cafile=recording / "ca.crt")
    try:
        reply = httpx.get(f"https://127.0.0.1:{port}/sent", verify=context, trust_env=False)
    except httpx.HTTPError:
        return None
    return int(reply.content)


def make_recording(plane: ControlPlane, nodes: Sequence[str], folder: Path, events: int) -> None:
    """Record what the API server sends to an extender about nodes, grid and `events` of pods."""

    async def run() -> None:
        async with ApiClient(plane.access) as client:
            await publish_grid(client, _grid(), starts_at=time.time(), wall_s_per_workload_s=1.0)
            await record(client, folder, events, _live_pods(client, nodes))

    folder.mkdir(parents=True)
    asyncio.run(run())
    authority = Authority(folder)
    pair = authority.issue_server("server", ("127.0.0.1",))
    pair.certificate.rename(folder / "server.crt")
    pair.key.rename(folder / "server.key")
    (folder / "token").write_text("any")


def _grid() -> dict[str, Sequence[SyntheticSlot]]:
    """Return two days of synthetic grid for each zone of the nodes."""
    shapes = itertools.cycle(DEMO_ZONES)
    return {
        zone: synthetic_slots(shape, seed=1, span_s=2 * 86_400.0)
        for zone, shape in zip(NODE_ZONES, shapes, strict=False)
    }


async def _live_pods(client: ApiClient, nodes: Sequence[str]) -> None:
    """Create, run and delete pods, 200 at a time."""
    places = itertools.cycle(nodes)
    for turn in itertools.count():
        names = [f"life-{turn}-{number}" for number in range(_LIVES_AT_ONCE)]
        bound = (pod(name, scheduler="bench", node=next(places)) for name in names)
        await at_once([partial(client.create, PODS, each) for each in bound])
        await at_once([partial(client.patch, f"{PODS}/{name}/status", _RUNNING) for name in names])
        await at_once([partial(client.delete, f"{PODS}/{name}") for name in names])


_RUNNING = b'{"status":{"phase":"Running"}}'


async def _measure(
    recording: Path,
    names: Sequence[str],
    port: int,
    rate_per_s: float,
    turns: int,
    seconds: float,
) -> list[Percentiles]:
    requests = [post("/prioritize", body) for body in _bodies(names, 200)]
    found = []
    await open_loop("127.0.0.1", port, requests, rate_per_s=rate_per_s, seconds=_WARM_UP_S)
    for _ in range(turns):
        before = _sent(recording) or 0
        timings = await open_loop(
            "127.0.0.1", port, requests, rate_per_s=rate_per_s, seconds=seconds
        )
        found.append(_percentiles(timings, ((_sent(recording) or 0) - before) / seconds))
    return found


def _percentiles(timings: Sequence[Timing], events_per_s: float) -> Percentiles:
    if any(timing.status != 200 for timing in timings):
        raise RuntimeError(f"answers other than 200: {[t.status for t in timings][:10]}")
    handler = sorted(timing.handler_s * 1e3 for timing in timings)
    client = sorted(timing.client_s * 1e3 for timing in timings)

    def at(values: Sequence[float], share: float) -> float:
        return values[min(len(values) - 1, int(share * len(values)))]

    return Percentiles(
        requests=len(timings),
        handler_p50_ms=at(handler, 0.5),
        handler_p99_ms=at(handler, 0.99),
        client_p50_ms=at(client, 0.5),
        client_p99_ms=at(client, 0.99),
        client_max_ms=client[-1],
        events_per_s=events_per_s,
    )


def _bodies(names: Sequence[str], count: int) -> list[bytes]:
    """Return requests captured from a real kube-scheduler, for pods that opted in."""
    captured = json.loads(_WIRE.read_text())
    dice = random.Random(1)
    bodies = []
    for number in range(count):
        captured["Pod"]["metadata"].update(name=f"p-{number}", uid=f"uid-{number}")
        captured["Pod"]["spec"]["schedulerName"] = "greensched"
        start = dice.randrange(len(names))  # the scheduler starts at a different node each time
        captured["NodeNames"] = [*names[start:], *names[:start]]
        bodies.append(msgspec.json.encode(captured))
    return bodies
