"""Replays a day of work on a real control plane, and publishes its forecasts."""

import asyncio
from collections.abc import Callable

import msgspec
import numpy as np

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.grid import GridSlot, ZoneForecast, object_name, to_status
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_core.watching import Watch
from greensched_testbed.creating import create_once
from greensched_testbed.held_day.day import Day, ItemRun
from greensched_testbed.held_day.objects import item_objects, owning_cron_job
from greensched_testbed.held_day.watched_runs import BoundPod, WatchedRuns, decode
from greensched_testbed.replay import TESTBED_RUNTIME

_AT_ONCE = 8
_RETRY_S = 0.5


async def publish(client: ApiClient, day: Day, hours: float = 48.0) -> None:
    """Write the zones' current forecasts for the next `hours`, in whole steps."""
    grids, now_s = day.world.grids, day.now_s()
    for zone, name in enumerate(day.world.zones):
        own = slice(*grids.starts[zone : zone + 2])
        times_s = grids.times_s[own]
        first = max(int(np.searchsorted(times_s, now_s, side="right")) - 1, 0)
        last = int(np.searchsorted(times_s, now_s + hours * 3600.0))
        slots = tuple(
            GridSlot(
                day.start_s + float(times_s[at]),
                _known(grids.forecast_carbon_g_per_kwh[own][at]),
                _known(grids.forecast_price_per_mwh[own][at]),
            )
            for at in range(first, last)
        )
        end_s = day.start_s + float(times_s[min(last, times_s.size - 1)])
        forecast = ZoneForecast(
            name, day.world.currency, day.start_s + now_s, "replay", slots[0], slots, end_s
        )
        body = msgspec.json.encode({"status": to_status(forecast)})
        await client.patch(f"{GRID_SIGNALS_PATH}/{object_name(name)}/status", body)


async def create_signals(client: ApiClient, day: Day) -> None:
    """Create the zones' GridSignals, without values."""
    for zone in day.world.zones:
        body = {
            "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
            "kind": "GridSignal",
            "metadata": {"name": object_name(zone)},
            "spec": {"zone": zone, "currency": day.world.currency},
        }
        await client.create(GRID_SIGNALS_PATH, msgspec.json.encode(body))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


async def replay_day(
    access: ApiAccess,
    day: Day,
    *,
    on_progress: Callable[[int, int], None] = lambda *_: None,
    publish_every_s: float = 3600.0,
    patience_s: float = 120.0,
) -> list[ItemRun]:
    """Create the day's work as it arrives, and return the outcome of each job.

    Returns when all have ended, or `patience_s` wall seconds after the last deadline.
    """
    jobs, log = day.world.jobs, WatchedRuns(day)
    namespace = f"/apis/batch/v1/namespaces/{day.namespace}"
    async with ApiClient(access) as client:
        watches = [
            asyncio.create_task(Watch(client, path, decode, log, WallClock()).run())
            for path in (f"/api/v1/namespaces/{day.namespace}/pods", f"{namespace}/jobs")
        ]
        beside = [
            asyncio.create_task(_keep_publishing(client, day, publish_every_s)),
            asyncio.create_task(_set_runtimes(client, day, log)),
        ]
        owner = await client.create(
            f"{namespace}/cronjobs", msgspec.json.encode(owning_cron_job(day))
        )
        uid = msgspec.json.decode(owner)["metadata"]["uid"]
        last_s = float(np.max(jobs.deadline_s[np.isfinite(jobs.deadline_s)], initial=0.0))
        try:
            await _create_all(client, day, log, uid)
            until_s = last_s + patience_s * day.pace.rate
            while log.open and day.now_s() < until_s:
                on_progress(len(log.runs) - len(log.open), len(log.runs))
                await asyncio.sleep(0.5)
        finally:
            for task in (*watches, *beside):
                task.cancel()
            await asyncio.gather(*watches, *beside, return_exceptions=True)
    return log.runs


async def _keep_publishing(client: ApiClient, day: Day, every_s: float) -> None:
    while True:
        try:
            await publish(client, day)
        except ApiUnavailable:
            await asyncio.sleep(_RETRY_S)
            continue
        now_s = day.now_s()
        await asyncio.sleep((every_s - now_s % every_s + 1.0) / day.pace.rate)


async def _set_runtimes(client: ApiClient, day: Day, log: WatchedRuns) -> None:
    """Write on each pod that got a node how long it runs there; kwok then ends it."""

    async def write(pod: BoundPod) -> None:
        ran_wall_s = (day.now_s() - pod.started_s) / day.pace.rate
        left_s = max(day.run_wall_s(pod.place, pod.slowest) - ran_wall_s, 0.001)
        body = {"metadata": {"annotations": {TESTBED_RUNTIME: f"{left_s:.3f}s"}}}
        path = f"/api/v1/namespaces/{day.namespace}/pods/{pod.name}"
        while True:
            try:
                await client.patch(path, msgspec.json.encode(body))
                return
            except ApiUnavailable as fault:
                if fault.status == 404:
                    return  # it was deleted
                if fault.status is not None and fault.status < 500 and fault.status != 429:
                    raise
            await asyncio.sleep(_RETRY_S)

    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(write(await log.bound.get()))


async def _create_all(client: ApiClient, day: Day, log: WatchedRuns, cron_uid: str) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def create(item: ItemRun) -> None:
        async with gate:
            for path, body in item_objects(day, item, cron_uid):
                await create_once(client, path, msgspec.json.encode(body))
        item.created_s = day.now_s()

    async with asyncio.TaskGroup() as group:
        for item, arrival_s in zip(log.runs, day.world.jobs.arrival_s.tolist(), strict=True):
            await asyncio.sleep(max(0.0, (arrival_s - day.now_s()) / day.pace.rate))
            group.create_task(create(item))
