"""Starts work that is past its latest start, even if the controller is dead.

It knows no plans, forecasts or policies: it reads only the annotation `latest-start` of objects. A
value that it cannot read counts as past.
"""

import asyncio
import socket
from collections.abc import Iterator

import msgspec
import structlog

from greensched_core import labels
from greensched_core.api_paths import JOBS, PODS, UNBOUND, config_maps_path
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.lateness import say_when_late
from greensched_core.serving import run_servers, server
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
from greensched_operator.release.metrics import ReleaserMetrics
from greensched_operator.runtime.heartbeat import Heartbeat
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.runtime.process_watches import ProcessWatches
from greensched_operator.runtime.processes import Tasks
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.webhook_app import health_app

log = structlog.get_logger()

RELEASER_LOOKS_EVERY_S = 1.0
_MOST_LOGGED = 5
# Patches in flight: the latest go first, and the API server is not flooded. A namespace whose
# patches hang, as with an admission webhook that is away, leaves slots to the others.
_AT_ONCE = 64
_OF_A_NAMESPACE = 8
Due = list[tuple[HeldObject, ReleaseReason]]


class _Annotations(msgspec.Struct):
    latest_start: str | None = msgspec.field(default=None, name=labels.LATEST_START)
    latest_start_of_010: str | None = msgspec.field(default=None, name=labels.LATEST_START_OF_010)
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
    """A Job or pod, with the fields that a releaser needs."""

    metadata: _Meta
    spec: _Spec

    @property
    def is_gated(self) -> bool:
        """Return whether it has our gate."""
        gates = self.spec.schedulingGates or ()
        return bool(self.queue_gates) or any(gate.name == labels.GATE for gate in gates)

    @property
    def queue_gates(self) -> str | None:
        """Return the gates of a Job in a queue, "" without ours; None without a queue."""
        queue, annotations = self.metadata.labels, self.metadata.annotations
        if queue is None or queue.queue is None:
            return None
        return annotations.gated_by if annotations and is_ours_in(annotations.gated_by) else ""

    @property
    def until_s(self) -> float | None:
        """Return until when we hold it, None if we do not.

        A missing or unreadable latest start must not hold work for ever, so it counts as past. Only
        GreenSched removes our gate, and work that it held and did not release is stopped by it.
        """
        annotations = self.metadata.annotations or _Annotations()
        is_suspended = self.spec.suspend and self.queue_gates is None  # else Kueue controls suspend
        if not (self.is_gated or is_suspended):
            return None
        latest = annotations.latest_start
        if latest is None:
            latest = annotations.latest_start_of_010
        if latest is not None:
            return _time_or_past(latest)
        is_left = annotations.held_at is not None and annotations.released_at is None
        return float("-inf") if self.is_gated or is_left else None


decode_stopped = msgspec.json.Decoder(Stopped).decode


def held_object(kind: WorkKind, item: Stopped) -> HeldObject | None:
    """Return the held object that a releaser keeps; None if we do not hold it."""
    meta, until_s = item.metadata, item.until_s
    if until_s is None:
        return None
    return HeldObject(kind, meta.namespace, meta.name, meta.uid, until_s, item.queue_gates)


class HeldObjects:
    """Keeps the held objects of one kind, and nothing of other objects."""

    def __init__(self, kind: WorkKind) -> None:
        self._kind = kind
        self._held: dict[str, HeldObject] = {}
        self._listed: set[str] = set()

    def __iter__(self) -> Iterator[HeldObject]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    def list_began(self) -> None:
        """Begin a full list."""
        self._listed = set()

    def upsert(self, item: Stopped) -> None:
        """Add, update or drop an added or changed object."""
        uid = item.metadata.uid
        held = held_object(self._kind, item)
        if held is None:
            self._held.pop(uid, None)
            return
        self._listed.add(uid)
        self._held[uid] = held

    def list_ended(self) -> None:
        """Remove the objects that the list does not contain."""
        for uid in self._held.keys() - self._listed:
            del self._held[uid]

    def remove(self, item: Stopped) -> None:
        """Remove a deleted object."""
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
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._in_work: set[str] = set()  # namespaces
        self._faults: list[str] = []  # since the last look
        self._emergency = watched.Objects[watched.EmergencyConfigMap]()
        self._watches = (
            Watch(client, JOBS, decode_stopped, self.jobs, clock),
            Watch(client, PODS, decode_stopped, self.pods, clock, field_selector=UNBOUND),
        )
        self._emergency_watch = Watch(
            client,
            config_maps_path(settings.namespace),
            watched.decode_emergency_config_map,
            self._emergency,
            clock,
            field_selector=f"metadata.name={watched.EMERGENCY}",
        )
        self.followed = ProcessWatches([*self._watches], settings.lease_duration_s, clock)
        identity = settings.identity or socket.gethostname()
        lease = OwnLease(client, settings.namespace, settings.heartbeat_lease, identity)
        self._heartbeat = Heartbeat(lease, self.followed.sees)
        self.tasks = Tasks()

    def due(self) -> Due:
        """Return the objects to start now, the most overdue first."""
        held = sorted((*self.jobs, *self.pods, *self.workloads), key=lambda each: each.until_s)
        if len(self._emergency):
            return [(each, ReleaseReason.EMERGENCY) for each in held]
        past_s = self._clock.now() - self._settings.releaser_grace_s
        return [(each, ReleaseReason.RELEASER) for each in held if each.until_s <= past_s]

    def release_due(self, passes: asyncio.TaskGroup) -> None:
        """Begin a pass over the due work of each namespace whose last pass has ended.

        The next pass tries again what the API server refuses.
        """
        self.metrics.held.set(len(self.jobs) + len(self.pods) + sum(1 for _ in self.workloads))
        self._log_faults()
        by_namespace: dict[str, Due] = {}
        for held, reason in self.due():
            if held.namespace not in self._in_work:
                by_namespace.setdefault(held.namespace, []).append((held, reason))
        self._in_work |= by_namespace.keys()
        for namespace, due in by_namespace.items():
            passes.create_task(self._release_in(namespace, due))

    async def _release_in(self, namespace: str, due: Due) -> None:
        slots = asyncio.Semaphore(_OF_A_NAMESPACE)

        async def release(held: HeldObject, reason: ReleaseReason) -> None:
            async with slots, self._slots:
                if fault := await self._release(held, reason):
                    self._faults.append(fault)

        await asyncio.gather(*(release(*each) for each in due))
        self._in_work.discard(namespace)

    def _log_faults(self) -> None:
        faults, self._faults = self._faults, []
        if faults:  # one line, even for thousands
            text, first = "due workloads could not be started; trying again", faults[:_MOST_LOGGED]
            log.warning(text, workloads=len(faults), first=first)

    async def _release(self, held: HeldObject, reason: ReleaseReason) -> str:
        """Start an object; return "", or why it could not be started."""
        path = object_path(held.kind, held.namespace, held.name)
        body = release_patch(held.kind, held.uid, reason, self._clock.now(), held.queue_gates)
        try:
            if held.kind == WorkKind.WORKLOAD:
                await self.workloads.release(held, body)
            else:
                await self._client.patch(path, body, media_type(held.kind, held.queue_gates))
        except ApiUnavailable as fault:
            is_gone = fault.status in (404, 409)  # or another object has its name
            return "" if is_gone else f"{held.title}: {fault}"
        self.metrics.released.labels(held.kind).inc()
        log.info("started", path=path, reason=reason)
        return ""

    async def _keep_looking(self) -> None:
        async with asyncio.TaskGroup() as passes:
            while True:
                self.release_due(passes)
                await asyncio.sleep(RELEASER_LOOKS_EVERY_S)

    def ready(self) -> str:
        """Return "" while the releaser sees held work and the emergency release."""
        watches = (*self._watches, self._emergency_watch)
        missing = [each.path for each in watches if not each.health.synced]
        return f"waits for {', '.join(missing)}" if missing else self.followed.unseen()

    def alive(self) -> str:
        """Return "" while all tasks run; an unreachable API server ends none of them."""
        return self.tasks.alive() or self.followed.stuck()

    async def run(self, stop: asyncio.Event) -> None:
        """Release until `stop` is set."""
        app = health_app(self.metrics.registry, self.alive, self.ready)
        self.followed.begin(self.metrics.watch_age)
        self.followed.follow(self._emergency_watch)  # without it, work still starts in time
        self.tasks.start(
            {each.path: each.run() for each in (*self._watches, self._emergency_watch)}
        )
        if self._settings.kueue:
            self.tasks.start({"kueue": self.workloads.run(self.followed.follow)})
        beating = self._heartbeat.run(self.metrics.heartbeat)
        self.tasks.start({"releases": self._keep_looking(), "heartbeat": beating})
        settings = self._settings
        health = server(app, settings.health_host, settings.health_port)
        late_report = asyncio.create_task(say_when_late(self.ready, self._client, settings))
        try:
            await run_servers([health], stop, self.tasks.failed)
        finally:
            late_report.cancel()
            await self.tasks.stop()
        self.tasks.raise_failed()
