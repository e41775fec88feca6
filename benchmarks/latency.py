"""Prioritize under load: requests on schedule while 500 pod events a second arrive by the watch.

The events are real: annotations of bound pods are patched on the real API server, which tells the
extender by its watch. The patching client writes raw HTTP/1.1 on a few connections, so that it
takes little of the CPU that it shares with what is measured.
"""

import asyncio
import json
import random
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.bench_cluster import PODS, at_once, our_extender, pod
from benchmarks.http_load import Connection, Timing, open_loop, post
from greensched_core.kubernetes_api import ApiClient
from greensched_testbed.controlplane import ControlPlane

EVENTS_PER_S = 500.0
_BUSY_PODS = 1_000  # those that are patched, in turn
_WRITERS = 4
_WARM_UP_S = 5.0
_WIRE = Path(__file__).parents[1] / "tests/golden/extender/prioritize.json"


@dataclass(frozen=True)
class Percentiles:
    """Milliseconds of one run, in the handler and as the client saw it; and what really ran."""

    requests: int
    handler_p50_ms: float
    handler_p99_ms: float
    client_p50_ms: float
    client_p99_ms: float
    events_per_s: float


def measure(
    plane: ControlPlane, nodes: Sequence[str], *, names: int, rate_per_s: float, seconds: float
) -> Percentiles:
    """Return the percentiles of prioritize over `names` nodes at `rate_per_s` requests a second."""
    with our_extender(plane) as running:
        return asyncio.run(_measure(plane, nodes[:names], running.port, rate_per_s, seconds))


async def bind_busy_pods(client: ApiClient, nodes: Sequence[str]) -> None:
    """Create the pods whose changes are the events, bound to nodes."""
    await at_once(
        [
            partial(
                client.create,
                PODS,
                pod(f"busy-{number}", scheduler="bench", node=nodes[number]),
            )
            for number in range(_BUSY_PODS)
        ]
    )


async def _measure(
    plane: ControlPlane, names: Sequence[str], port: int, rate_per_s: float, seconds: float
) -> Percentiles:
    requests = [post("/prioritize", body) for body in _bodies(names, 200)]
    written = [0]
    writers = [asyncio.create_task(_write(plane, number, written)) for number in range(_WRITERS)]
    try:
        await open_loop("127.0.0.1", port, requests, rate_per_s=rate_per_s, seconds=_WARM_UP_S)
        before = written[0]
        timings = await open_loop(
            "127.0.0.1", port, requests, rate_per_s=rate_per_s, seconds=seconds
        )
        events = written[0] - before
    finally:
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
    return _percentiles(timings, events / seconds)


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
        events_per_s=events_per_s,
    )


def _bodies(names: Sequence[str], count: int) -> list[bytes]:
    """Return requests as captured from a real kube-scheduler, for pods that opted in."""
    captured = json.loads(_WIRE.read_text())
    dice = random.Random(1)
    bodies = []
    for number in range(count):
        captured["Pod"]["metadata"].update(name=f"p-{number}", uid=f"uid-{number}")
        captured["Pod"]["spec"]["schedulerName"] = "greensched"
        start = dice.randrange(len(names))  # the scheduler goes round the nodes
        captured["NodeNames"] = [*names[start:], *names[:start]]
        bodies.append(msgspec.json.encode(captured))
    return bodies


async def _write(plane: ControlPlane, writer: int, written: list[int]) -> None:
    context = ssl.create_default_context(cafile=plane.ca_file)
    keys = plane.client_certificate
    context.load_cert_chain(keys.certificate, keys.key)
    host, port = plane.url.removeprefix("https://").split(":")
    connection = await Connection.open(host, int(port), context)
    loop = asyncio.get_running_loop()
    start, sent = loop.time(), 0
    while True:
        due = start + sent * _WRITERS / EVENTS_PER_S
        await asyncio.sleep(max(0.0, due - loop.time()))
        number = (sent * _WRITERS + writer) % _BUSY_PODS
        body = b'{"metadata":{"annotations":{"bench.greensched.io/turn":"%d"}}}' % sent
        head = (
            f"PATCH {PODS}/busy-{number} HTTP/1.1\r\nHost: {host}\r\n"
            f"Content-Type: application/merge-patch+json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        status, _, _ = await connection.send(head.encode() + body)
        if status != 200:
            raise RuntimeError(f"patching a pod: HTTP {status}")
        sent += 1
        written[0] += 1
