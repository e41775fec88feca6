"""Starts what is past its latest start, whatever has become of the operator.

It knows nothing of plans, forecasts and policies: it reads `latest-start` off the objects, and acts
on that alone. What it cannot read there counts as past.
"""

import asyncio
import socket
from collections.abc import Iterator

import msgspec
import structlog

from greensched_core import labels
from greensched_core.api_paths import JOBS, PODS, UNBOUND
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.lateness import say_when_late
from greensched_core.serving import server
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.watching import Watch
from greensched_operator.kueue.releasing import HeldWorkloads
from greensched_operator.objects import watched
from greensched_operator.objects.held import HeldObject
from greensched_operator.objects.queue_gate import GATED_BY, KUEUE_QUEUE, is_ours_in
from greensched_operator.objects.release_patch import (
    ReleaseReason,
    media_type,
    object_path,
    release_patch,
)
from greensched_operator.objects.workloads import SchedulingGate, WorkKind
from greensched_operator.runtime.heartbeat import Heartbeat
from greensched_operator.runtime.metrics import ReleaserMetrics
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.runtime.processes import Tasks, run_servers
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.runtime.sight import Sight
from greensched_operator.webhook.webhook_app import health_app

log = structlog.get_logger()

LOOKS_EVERY_S = 1.0
_MOST_TOLD = 5
_AT_ONCE = 8  # patches in flight: what is late goes first, and the API server is not flooded


class _Annotations(msgspec.Struct):
    latest_start: str | None = msgspec.field(default=None, name=labels.LATEST_START)
    hold_until: str | None = msgspec.field(default=None, name=labels.HOLD_UNTIL)
    held_at: str | None = msgspec.field(default=None, name=labels.HELD_AT)
    released_at: str | None = msgspec.field(default=None, name=labels.RELEASED_AT)
    gated_by: str = msgspec.field(default="", name=GATED_BY)


class _Labels(msgspec.Struct):
    queue: str | None = msgspec.field(default=None, name=KUEUE_QUEUE)


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: _Labels | None = None
    annotations: _Annotations | None = None


class _Spec(msgspec.Struct):
    suspend: bool | None = None
    schedulingGates: list[SchedulingGate] | None = None


class Stopped(msgspec.Struct):
    """A Job or pod, read as far as a releaser must."""

    metadata: _Meta
    spec: _Spec

    @property
    def is_gated(self) -> bool:
        """Return whether our gate is on it."""
        gates = self.spec.schedulingGates or ()
        return bool(self.queue_gates) or any(gate.name == labels.GATE for gate in gates)

    @property
    def queue_gates(self) -> str | None:
        """Return what keeps Kueue from a Job of its queues; see queue_gate.py."""
        queue, said = self.metadata.labels, self.metadata.annotations
        if queue is None or queue.queue is None:
            return None
        return said.gated_by if said and is_ours_in(said.gated_by) else ""

    @property
    def until_s(self) -> float | None:
        """Return until when we hold it, None where we do not.

        A typo holds nothing for ever, nor does a hold whose end was taken off: nobody but we
        removes our gate, and what was held by us and not released is stopped by us.
        """
        said = self.metadata.annotations or _Annotations()
        is_suspended = self.spec.suspend and self.queue_gates is None  # else Kueue sees to that
        if not (self.is_gated or is_suspended):
            return None
        latest = said.hold_until if said.latest_start is None else said.latest_start
        if latest is not None:
            return _time_or_past(latest)
        is_left = said.held_at is not None and said.released_at is None
        return float("-inf") if self.is_gated or is_left else None


decode_stopped = msgspec.json.Decoder(Stopped).decode


def held_object(kind: WorkKind, item: Stopped) -> HeldObject | None:
    """Return what a releaser keeps of an object; None where we do not hold it."""
    meta, until_s = item.metadata, item.until_s
    if until_s is None:
        return None
    return HeldObject(kind, meta.namespace, meta.name, meta.uid, until_s, item.queue_gates)


class HeldObjects:
    """Keeps what is held, of one kind; all else is forgotten at once."""

    def __init__(self, kind: WorkKind) -> None:
        self._kind = kind
        self._held: dict[str, HeldObject] = {}
        self._listed: set[str] = set()

    def __iter__(self) -> Iterator[HeldObject]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    def list_began(self) -> None:
        """A full list follows."""
        self._listed = set()

    def upsert(self, item: Stopped) -> None:
        """An object is there or has changed."""
        uid = item.metadata.uid
        held = held_object(self._kind, item)
        if held is None:
            self._held.pop(uid, None)
            return
        self._listed.add(uid)
        self._held[uid] = held

    def list_ended(self) -> None:
        """Whatever was not in the list is gone."""
        for uid in self._held.keys() - self._listed:
            del self._held[uid]

    def remove(self, item: Stopped) -> None:
        """An object is gone."""
        self._held.pop(item.metadata.uid, None)


def _time_or_past(text: str) -> float:
    try:
        return parse_timestamp(text)
    except BadInput:
        return float("-inf")


class Releaser:
    """All parts of the releaser, wired; nothing starts before `run`."""

    def __init__(self, settings: OperatorSettings, client: ApiClient, clock: Clock) -> None:
        self._settings = settings
        self._client = client
        self._clock = clock
        self.metrics = ReleaserMetrics()
        self.jobs, self.pods = HeldObjects(WorkKind.JOB), HeldObjects(WorkKind.POD)
        self.workloads = HeldWorkloads(client)
        self._emergency = watched.Objects[watched.SwitchObject]()
        self._watches = (
            Watch(client, JOBS, decode_stopped, self.jobs, clock),
            Watch(client, PODS, decode_stopped, self.pods, clock, field_selector=UNBOUND),
        )
        self._switch = Watch(
            client,
            f"/api/v1/namespaces/{settings.namespace}/configmaps",
            watched.decode_switch,
            self._emergency,
            clock,
            field_selector=f"metadata.name={watched.EMERGENCY}",
        )
        self.sight = Sight([*self._watches], settings.lease_duration_s, clock)
        identity = settings.identity or socket.gethostname()
        lease = OwnLease(client, settings.namespace, settings.heartbeat_lease, identity)
        self._heartbeat = Heartbeat(lease, self.sight.sees)
        self.tasks = Tasks()

    def due(self) -> list[tuple[HeldObject, ReleaseReason]]:
        """Return what is to be started now, the most overdue first."""
        held = sorted((*self.jobs, *self.pods, *self.workloads), key=lambda each: each.until_s)
        if len(self._emergency):
            return [(each, ReleaseReason.EMERGENCY) for each in held]
        past_s = self._clock.now() - self._settings.releaser_grace_s
        return [(each, ReleaseReason.RELEASER) for each in held if each.until_s <= past_s]

    async def release_due(self) -> None:
        """Start all that is due; what the API server refuses is tried again at the next look."""
        self.metrics.held.set(len(self.jobs) + len(self.pods) + sum(1 for _ in self.workloads))
        slots = asyncio.Semaphore(_AT_ONCE)

        async def release(held: HeldObject, reason: ReleaseReason) -> str:
            async with slots:
                return await self._release(held, reason)

        told = await asyncio.gather(*(release(*each) for each in self.due()))
        if faults := [fault for fault in told if fault]:  # thousands while nobody answers: one line
            log.warning(
                "due workloads could not be started; trying again",
                workloads=len(faults),
                first=faults[:_MOST_TOLD],
            )

    async def _release(self, held: HeldObject, reason: ReleaseReason) -> str:
        """Start one; return "", or why it could not be."""
        path = object_path(held.kind, held.namespace, held.name)
        body = release_patch(held.kind, held.uid, reason, self._clock.now(), held.queue_gates)
        try:
            if held.kind == WorkKind.WORKLOAD:
                await self.workloads.release(held, body)
            else:
                await self._client.patch(path, body, media_type(held.kind, held.queue_gates))
        except ApiUnavailable as fault:
            is_gone = fault.status in (404, 409)  # or another of its name
            return "" if is_gone else f"{held.title}: {fault}"
        self.metrics.released.labels(held.kind).inc()
        log.info("started", path=path, reason=reason)
        return ""

    async def _keep_looking(self) -> None:
        while True:
            await self.release_due()
            await asyncio.sleep(LOOKS_EVERY_S)

    def ready(self) -> str:
        """Return "" while it sees what is held, and the emergency release."""
        watches = (*self._watches, self._switch)
        missing = [each.path for each in watches if not each.health.synced]
        return f"waits for {', '.join(missing)}" if missing else self.sight.unseen()

    def alive(self) -> str:
        """Return "" while all that should run does; an API server that is away ends nothing."""
        return self.tasks.alive() or self.sight.stuck()

    async def run(self, stop: asyncio.Event) -> None:
        """Release until `stop` is set."""
        app = health_app(self.metrics.registry, self.alive, self.ready)
        self.sight.begin(self.metrics.watch_age)
        self.sight.follow(self._switch)  # who does not see it starts work in time all the same
        self.tasks.start({each.path: each.run() for each in (*self._watches, self._switch)})
        if self._settings.kueue:
            self.tasks.start({"kueue": self.workloads.run(self.sight.follow)})
        beating = self._heartbeat.run(self.metrics.heartbeat)
        self.tasks.start({"releases": self._keep_looking(), "heartbeat": beating})
        settings = self._settings
        health = server(app, settings.health_host, settings.health_port)
        saying = asyncio.create_task(say_when_late(self.ready, self._client, settings))
        try:
            await run_servers([health], stop, self.tasks.failed)
        finally:
            saying.cancel()
            await self.tasks.stop()
        self.tasks.raise_failed()
