"""10,000 held Jobs on a real API server: replans, memory, writes, and concurrent reviews."""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
import msgspec
import numpy as np
import psutil

from benchmarks.bench_cluster import at_once
from greensched_core import labels
from greensched_core.custom_resources.policy_lookup import green_policies_in
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.grid import GridSlot, ZoneForecast, object_name, to_status
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import EqualNodes, create_nodes
from greensched_testbed.operator_processes import FastClock, OperatorProcesses

WORK = "held"
ZONES = ("DE", "FR", "PL")
REVIEWS_PER_S = 100.0
_HOUR_S = 3600.0
REPLANS = 5  # measured in sequence
_TIMEOUT_S = 300.0
Say = Callable[[str], None]


def measure(held: int, replans: int, seconds: float, say: Say) -> dict[str, Any]:
    """Return the figures of `replans` replans of `held` Jobs, and of the webhook meanwhile."""
    options = ControlPlaneOptions(
        kwok=False,
        scheduler=False,
        # All other controllers would take CPU from the measurement.
        controllers="serviceaccount-token-controller,serviceaccount-controller,"
        "root-ca-certificate-publisher-controller,namespace-controller",
    )
    with ControlPlane(options) as plane:
        processes = OperatorProcesses(plane, FastClock(), replan_every_s=3600.0)
        processes.install()
        plane.create_namespace(WORK)
        asyncio.run(_prepare(plane, held))
        say(f"{held} held Jobs, {len(ZONES)} zones, 48 h of quarter hours")
        processes.start("controller")
        processes.start("webhook")
        figures = _replans(plane, processes, held, replans, say)
        processes.wait_until_called(WORK)
        figures |= _reviews(plane, processes, seconds, say)
        for name in ("webhook", "controller"):
            processes.stop(name)
    return figures


async def _prepare(plane: ControlPlane, held: int) -> None:
    async with ApiClient(plane.access) as client:
        groups = [
            EqualNodes(200, f"node-{zone.lower()}", 64, 2.0**38, grid_zone=zone) for zone in ZONES
        ]
        await create_nodes(client, groups, plain=True)
        policy = {
            "apiVersion": f"{labels.GROUP}/{labels.VERSION}", "kind": "GreenPolicy",
            "metadata": {"name": "default"},
            "spec": {"mode": "enforce", "maxHeldSharePercent": 100},
        }  # fmt: skip
        await client.create(green_policies_in(WORK), msgspec.json.encode(policy))
        await _publish(client, shift_s=0.0)
        jobs = f"/apis/batch/v1/namespaces/{WORK}/jobs"
        bodies = [msgspec.json.encode(_held_job(place)) for place in range(held)]
        await at_once([lambda body=body: client.create(jobs, body) for body in bodies])  # type: ignore[misc]  # bound early


def _held_job(place: int) -> dict[str, Any]:
    now_s = time.time()
    annotations = {
        labels.DEADLINE: f"{12 + place % 12}h",
        labels.RUNTIME: f"{20 + place % 100}m",
        labels.HELD_AT: format_timestamp(round(now_s, 3)),
        labels.LATEST_START: format_timestamp(round(now_s + 10 * _HOUR_S)),
    }
    return {
        "metadata": {"name": f"job-{place}", "annotations": annotations},
        "spec": {"suspend": True, "template": {"spec": {
            "schedulerName": labels.SCHEDULER_NAME, "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox:1.37",
                            "resources": {"requests": {"cpu": str(1 + place % 4),
                                                       "memory": "1Gi"}}}]}}},
    }  # fmt: skip


async def _publish(client: ApiClient, shift_s: float) -> None:
    """Write a 48-hour forecast for each zone: a daily wave that is cleanest in seven hours."""
    now_s = time.time() // 900 * 900
    for number, zone in enumerate(ZONES):
        slots = tuple(
            GridSlot(now_s + place * _HOUR_S, _wave(place * _HOUR_S + shift_s, number), 80.0)
            for place in range(48)
        )
        forecast = ZoneForecast(
            zone, "EUR", time.time(), "bench", slots[0], slots, now_s + 48 * _HOUR_S
        )
        name = object_name(zone)
        if shift_s == 0.0:
            body = {
                "apiVersion": f"{labels.GROUP}/{labels.VERSION}", "kind": "GridSignal",
                "metadata": {"name": name}, "spec": {"zone": zone, "currency": "EUR"},
            }  # fmt: skip
            await client.create(GRID_SIGNALS_PATH, msgspec.json.encode(body))
        status = msgspec.json.encode({"status": to_status(forecast)})
        await client.patch(f"{GRID_SIGNALS_PATH}/{name}/status", status)


def _wave(ahead_s: float, zone: int) -> float:
    return 400.0 + 50.0 * zone - 250.0 * float(np.cos((ahead_s / _HOUR_S - 7.0) / 24.0 * 2 * np.pi))


def _replans(
    plane: ControlPlane, processes: OperatorProcesses, held: int, replans: int, say: Say
) -> dict[str, Any]:
    """Measure replans after the first plan, each caused by a shifted forecast."""
    _until(
        lambda: _sample(processes, "greensched_operator_plan_changes_total") >= held * 0.9,
        "first plan",
    )
    _settled(processes)
    process = psutil.Process(processes.pid("controller"))
    took_s, writes = [], []
    for turn in range(1, replans + 1):
        before = _counts(processes)
        asyncio.run(_shift_forecast(plane, shift_s=turn * 600.0))
        _until(lambda count=before[0]: _counts(processes)[0] > count, "a replan")  # type: ignore[misc]  # bound early
        _settled(processes)
        after = _counts(processes)
        took_s.append((after[1] - before[1]) / (after[0] - before[0]))
        writes.append((after[2] - before[2]) / (after[0] - before[0]))
        say(f"replan {turn}: {took_s[-1]:.2f} s, {writes[-1]:.0f} plans written")
    return {
        f"replan_s_{held}": float(np.median(took_s)),
        f"replan_s_{held}_turns": took_s,
        f"rss_mib_{held}": process.memory_info().rss / 2**20,
        "writes_per_replan": float(np.median(writes)),
        "writes_per_replan_turns": writes,
    }


async def _shift_forecast(plane: ControlPlane, shift_s: float) -> None:
    async with ApiClient(plane.access) as client:
        await _publish(client, shift_s)


def _reviews(
    plane: ControlPlane, processes: OperatorProcesses, seconds: float, say: Say
) -> dict[str, Any]:
    """Measure reviews at 100 a second while the controller replans repeatedly."""
    before = _counts(processes)[0]
    took_s = asyncio.run(_review_and_replan(plane, processes, seconds))
    replans = _counts(processes)[0] - before
    p50, p99 = (float(np.percentile(took_s, share)) * 1e3 for share in (50, 99))
    say(f"{len(took_s)} reviews during {replans:.0f} replans: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return {"webhook_p50_ms": p50, "webhook_p99_ms": p99, "webhook_replans": replans}


async def _review_and_replan(
    plane: ControlPlane, processes: OperatorProcesses, seconds: float
) -> list[float]:
    replanning = asyncio.create_task(_keep_replanning(plane))
    try:
        return await _paced(processes.review_url(), seconds)
    finally:
        replanning.cancel()
        await asyncio.gather(replanning, return_exceptions=True)


async def _keep_replanning(plane: ControlPlane) -> None:
    shift_s = 10_000.0
    while True:
        await _shift_forecast(plane, shift_s)
        shift_s += 5.0  # so small that hardly any plan changes
        await asyncio.sleep(5.0)


async def _paced(url: str, seconds: float) -> list[float]:
    """Send reviews at a constant rate; return the seconds that each took."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    took_s: list[float] = []
    connector = aiohttp.TCPConnector(ssl=context, limit=16)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(round(seconds * REVIEWS_PER_S)):
            await asyncio.sleep(max(0.0, began + number / REVIEWS_PER_S - loop.time()))
            group.create_task(_review(session, url, number, took_s))
    return took_s


async def _review(
    session: aiohttp.ClientSession, url: str, number: int, took_s: list[float]
) -> None:
    body = _review_body(number)
    began = time.perf_counter()
    async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as reply:
        answer = await reply.read()
    took_s.append(time.perf_counter() - began)
    assert b'"patch"' in answer, answer


def _review_body(number: int) -> bytes:
    job = _held_job(number)
    job["spec"].pop("suspend")
    job["metadata"]["annotations"] = {labels.DEADLINE: "12h", labels.RUNTIME: "1h"}
    request = {
        "uid": str(number), "operation": "CREATE", "namespace": WORK,
        "kind": {"group": "batch", "version": "v1", "kind": "Job"}, "object": job,
    }  # fmt: skip
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def _sample(processes: OperatorProcesses, name: str) -> float:
    return sum(
        value for key, value in processes.metrics("controller").items() if key.startswith(name)
    )


def _counts(processes: OperatorProcesses) -> Sequence[float]:
    """Return the number of replans, their total seconds, and the plans written."""
    return (
        _sample(processes, "greensched_operator_replan_seconds_count"),
        _sample(processes, "greensched_operator_replan_seconds_sum"),
        _sample(processes, "greensched_operator_plan_changes_total"),
    )


def _settled(processes: OperatorProcesses) -> None:
    """Wait until there was no replan and no written plan for three seconds."""
    last, since = _counts(processes), time.monotonic()
    while time.monotonic() - since < 3.0:
        time.sleep(0.5)
        now = _counts(processes)
        if now != last:
            last, since = now, time.monotonic()


def _until(claim: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not claim():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_TIMEOUT_S:.0f} s: {what}")
        time.sleep(0.5)
