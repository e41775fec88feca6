"""Replays a world's jobs as real Jobs, pods and CronJob runs, on an accelerated clock.

Times are those of the watch's events, since timestamps in objects are whole seconds.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.grid import GridSlot, ZoneForecast, object_name, to_status
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.signals.watched import GRID_SIGNALS
from greensched_core.watching import Watch
from greensched_policies.billing.timelines import Placements
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_simulator.world.world import World
from greensched_testbed.nodes import EqualNodes
from greensched_testbed.operator_processes import FastClock
from greensched_testbed.replay import TESTBED_RUNTIME

JOB, POD, CRON_RUN = "job", "pod", "cron-run"
KINDS = (JOB, JOB, POD, CRON_RUN)  # in turn
_ITEM = "held-day"  # label: place in the world's jobs
_CRON_JOB = "nightly"
_AT_ONCE = 8
_RETRY_S = 0.5


@dataclass
class ItemRun:
    """The outcome of one job; times in seconds since the world's start, None: did not happen."""

    place: int
    kind: str
    created_s: float | None = None
    released_s: float | None = None  # our hold was first seen to be gone
    planned_s: float | None = None  # the planned start at that time
    release_reason: str = ""
    started_s: float | None = None
    ended_s: float | None = None
    node: str = ""


@dataclass(frozen=True)
class Day:
    """A world, its start on the operator's clock, and where it is replayed."""

    world: World
    pace: FastClock
    namespace: str
    scheduler: str = labels.SCHEDULER_NAME

    @property
    def start_s(self) -> float:
        """The world's start, in seconds since the epoch on the operator's clock."""
        return self.pace.shows_s

    def now_s(self) -> float:
        """Return the seconds since the world's start."""
        return self.pace.clock.now() - self.start_s


def node_groups(world: World) -> list[EqualNodes]:
    """Return a cluster node for each of the world's nodes, with the same power and zone."""
    nodes, groups = world.nodes, []
    curves = world.curve_watts.reshape(-1, CURVE_POINTS)
    for place, name in enumerate(world.node_names):
        watts = curves[int(nodes.curve_class[place])]
        groups.append(
            EqualNodes(
                count=1,
                name_prefix=name,
                cpu_cores=float(nodes.cpu_capacity[place]),
                memory_bytes=float(nodes.memory_capacity[place]),
                grid_zone=world.zones[nodes.zone[place]],
                annotations={labels.POWER_CURVE_WATTS: ",".join(f"{each:.3f}" for each in watts)},
                extra_labels={labels.PUE: str(float(nodes.pue[place]))},
            )
        )
    return groups


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
        await client.patch(f"{GRID_SIGNALS}/{object_name(name)}/status", body)


async def create_signals(client: ApiClient, day: Day) -> None:
    """Create the zones' GridSignals, without values."""
    for zone in day.world.zones:
        body = {
            "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
            "kind": "GridSignal",
            "metadata": {"name": object_name(zone)},
            "spec": {"zone": zone, "currency": day.world.currency},
        }
        await client.create(GRID_SIGNALS, msgspec.json.encode(body))


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
    jobs = day.world.jobs
    log = _Log(day)
    async with ApiClient(access) as client:
        read, wall = msgspec.json.Decoder(_Object).decode, WallClock()
        watches = [
            asyncio.create_task(Watch(client, path, read, log, wall).run())
            for path in (
                f"/api/v1/namespaces/{day.namespace}/pods",
                f"/apis/batch/v1/namespaces/{day.namespace}/jobs",
            )
        ]
        publishing = asyncio.create_task(_keep_publishing(client, day, publish_every_s))
        cron_job = await client.create(
            f"/apis/batch/v1/namespaces/{day.namespace}/cronjobs",
            msgspec.json.encode(_cron_job(day)),
        )
        uid = msgspec.json.decode(cron_job)["metadata"]["uid"]
        last_s = float(np.max(jobs.deadline_s[np.isfinite(jobs.deadline_s)], initial=0.0))
        try:
            await _create_all(client, day, log, uid)
            until_s = last_s + patience_s * day.pace.rate
            while log.open and day.now_s() < until_s:
                on_progress(len(log.runs) - len(log.open), len(log.runs))
                await asyncio.sleep(0.5)
        finally:
            for task in (*watches, publishing):
                task.cancel()
            await asyncio.gather(*watches, publishing, return_exceptions=True)
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


async def _create_all(client: ApiClient, day: Day, log: "_Log", cron_uid: str) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def create(place: int) -> None:
        path, body = item_object(day, place, cron_uid)
        async with gate:
            while True:
                try:
                    await client.create(path, msgspec.json.encode(body))
                    break
                except ApiUnavailable as fault:
                    if fault.status == 409:
                        break
                    if fault.status is not None and fault.status < 500 and fault.status != 429:
                        raise
                await asyncio.sleep(_RETRY_S)
        log.runs[place].created_s = day.now_s()

    async with asyncio.TaskGroup() as group:
        for place, arrival_s in enumerate(day.world.jobs.arrival_s.tolist()):
            await asyncio.sleep(max(0.0, (arrival_s - day.now_s()) / day.pace.rate))
            group.create_task(create(place))


def item_object(day: Day, place: int, cron_uid: str = "") -> tuple[str, dict[str, Any]]:
    """Return the API path and the object with which one of the world's jobs is created."""
    jobs, kind = day.world.jobs, KINDS[place % len(KINDS)]
    speed = float(day.world.nodes.speed[0])
    runtime_s = float(jobs.runtime_s[place]) / speed
    annotations: dict[str, Any] = {
        labels.RUNTIME: f"{max(float(jobs.estimate_s[place]) / speed, 1.0):.0f}s"
    }
    if np.isfinite(jobs.deadline_s[place]):
        slack_s = float(jobs.deadline_s[place]) - float(jobs.arrival_s[place])
        annotations[labels.DEADLINE] = f"{slack_s:.0f}s"
    wall = {TESTBED_RUNTIME: f"{runtime_s / day.pace.rate:.3f}s"}
    name = f"{kind}-{place}"
    spec = _pod_spec(day, place)
    mark: dict[str, Any] = {_ITEM: str(place)}
    if kind == POD:
        meta: dict[str, Any] = {"name": name, "labels": mark, "annotations": annotations | wall}
        return f"/api/v1/namespaces/{day.namespace}/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec,
        }  # fmt: skip
    meta = {"name": name, "labels": mark, "annotations": annotations}
    if kind == CRON_RUN and cron_uid:
        meta["ownerReferences"] = [{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": _CRON_JOB, "uid": cron_uid,
            "controller": True, "blockOwnerDeletion": True,
        }]  # fmt: skip
    template = {"metadata": {"labels": mark, "annotations": wall}, "spec": spec}
    return f"/apis/batch/v1/namespaces/{day.namespace}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
        "spec": {"template": template, "backoffLimit": 0},
    }  # fmt: skip


def _pod_spec(day: Day, place: int) -> dict[str, Any]:
    jobs = day.world.jobs
    requests = {
        labels.CPU: f"{max(1, round(float(jobs.cpu_cores[place]) * 1000))}m",
        labels.MEMORY: str(round(float(jobs.memory_bytes[place]))),
    }
    return {
        "schedulerName": day.scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "main", "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": requests},
        }],
    }  # fmt: skip


def _cron_job(day: Day) -> dict[str, Any]:
    """Return the CronJob that owns runs; suspended, since its controller uses the wall clock."""
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": _CRON_JOB},
        "spec": {
            "schedule": "0 0 1 1 *", "suspend": True,
            "jobTemplate": {"spec": {"template": {"spec": _pod_spec(day, 0)}}},
        },
    }  # fmt: skip


def placements_of(day: Day, runs: Sequence[ItemRun]) -> Placements:
    """Return where and when each job ran, as input for bills."""
    rows = {name: row for row, name in enumerate(day.world.node_names)}
    jobs = day.world.jobs
    ran = [run for run in runs if run.started_s is not None and run.ended_s is not None]
    places = np.array([run.place for run in ran], dtype=np.int64)
    return Placements(
        node=np.array([rows[run.node.removesuffix("-0")] for run in ran], dtype=np.int64),
        start_s=np.array([run.started_s for run in ran], dtype=np.float64),
        end_s=np.array([run.ended_s for run in ran], dtype=np.float64),
        cpu_cores=jobs.cpu_cores[places],
        gpus=jobs.gpus[places],
    )


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct):
    nodeName: str = ""
    suspend: bool = False


class _Status(msgspec.Struct):
    phase: str = ""


class _Object(msgspec.Struct):
    """The fields that we read of a pod or a Job."""

    metadata: _Meta
    spec: _Spec
    status: _Status


class _Log:
    """Records when the watch first reports each change."""

    def __init__(self, day: Day) -> None:
        count = day.world.jobs.arrival_s.size
        self.runs = [ItemRun(place, KINDS[place % len(KINDS)]) for place in range(count)]
        self.open = set(range(count))
        self._day = day

    def list_began(self) -> None:
        """Do nothing: a full list only repeats existing objects."""

    def list_ended(self) -> None:
        """Do nothing: an object missing from a list keeps its last state."""

    def upsert(self, item: _Object) -> None:
        """Record its release, its pod's start and node, and its end."""
        place = (item.metadata.labels or {}).get(_ITEM)
        if place is None:
            return
        run, now_s = self.runs[int(place)], self._day.now_s()
        annotations = item.metadata.annotations or {}
        if (
            labels.RELEASE_REASON in annotations
            and run.released_s is None
            and not item.spec.suspend
        ):
            run.released_s, run.release_reason = now_s, annotations[labels.RELEASE_REASON]
            if labels.PLANNED_START in annotations:
                run.planned_s = (
                    parse_timestamp(annotations[labels.PLANNED_START]) - self._day.start_s
                )
        if item.spec.nodeName and run.started_s is None:
            run.started_s, run.node = now_s, item.spec.nodeName
        if item.status.phase == "Succeeded" and run.ended_s is None:
            run.ended_s = now_s
            self.open.discard(run.place)

    def remove(self, item: _Object) -> None:
        """Do nothing: a deleted object keeps its last state."""


def late(day: Day, runs: Sequence[ItemRun], grace_wall_s: float = 1.0) -> Iterator[ItemRun]:
    """Yield runs that ended more than `grace_wall_s` wall seconds after their deadline."""
    for run in runs:
        due_s = float(day.world.jobs.deadline_s[run.place]) + grace_wall_s * day.pace.rate
        if run.ended_s is not None and run.ended_s > due_s:
            yield run
