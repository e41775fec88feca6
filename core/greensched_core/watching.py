"""Keeps one kind of objects current: lists them in pages, watches, resumes, lists again.

The loop runs until cancelled. A watch that the server closes resumes from the last seen
resourceVersion. After an expired watch (410) it lists again. It retries an unreachable server with
a growing, jittered pause; meanwhile the sink keeps the last good state.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import structlog

from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, ResourceExpired
from greensched_core.kubernetes_api import ApiClient

log = structlog.get_logger()

Object_contra = TypeVar("Object_contra", contravariant=True)
Object = TypeVar("Object")

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
_SHORT_WATCH_S = 1.0  # a watch that ends sooner is not reopened at once
_EVENTS_A_TURN = 50  # then other tasks run, so that a burst delays no request for long


class Sink(Protocol[Object_contra]):
    """Receives the objects of a watch; called from one task only."""

    def list_began(self) -> None:
        """Begin a full list."""
        ...

    def upsert(self, item: Object_contra) -> None:
        """Take in an object that is new or has changed."""
        ...

    def list_ended(self) -> None:
        """End the full list: drop the objects that were not in it."""
        ...

    def remove(self, item: Object_contra) -> None:
        """Drop a deleted object."""
        ...


class SharedSink(Generic[Object]):
    """A sink that passes all objects to several sinks, so that one watch serves them."""

    def __init__(self, *parts: tuple[Callable[[Object], Any], Sink[Any]]) -> None:
        """`parts` are sinks, each with the function that converts an object for it."""
        self._parts = parts

    def list_began(self) -> None:
        """Begin a full list."""
        for _, sink in self._parts:
            sink.list_began()

    def upsert(self, item: Object) -> None:
        """Pass on a new or changed object; raise the first error once all sinks were called."""
        self._each(lambda read, sink: sink.upsert(read(item)))

    def list_ended(self) -> None:
        """End the full list."""
        for _, sink in self._parts:
            sink.list_ended()

    def remove(self, item: Object) -> None:
        """Pass on a deleted object; raise as `upsert` does."""
        self._each(lambda read, sink: sink.remove(read(item)))

    def _each(self, call: Callable[[Callable[[Object], Any], Sink[Any]], None]) -> None:
        faults = []
        for read, sink in self._parts:
            try:
                call(read, sink)
            except Exception as fault:  # noqa: BLE001 - another sink may be able to read it
                faults.append(fault)
        if faults:
            raise faults[0]


def unread(raw: bytes | msgspec.Raw) -> bytes | msgspec.Raw:
    """Return an object undecoded; each sink of a `SharedSink` decodes the fields it needs."""
    return raw


def as_it_is(item: Object) -> Object:
    """Return the decoded object, for a sink of a `SharedSink` that takes it unchanged."""
    return item


@dataclass
class WatchHealth:
    """The state of a watch, for readiness, metrics and the staleness rule."""

    synced: bool = False  # listed at least once
    lost_at: float | None = 0.0  # monotonic seconds when the watch was lost; None: it is live
    lists: int = 0
    undecodable: int = 0
    status: int | None = None  # HTTP status of the last refused list or watch
    moved_at: float = 0.0  # monotonic seconds of the last activity

    def age_s(self, clock: Clock) -> float:
        """Return for how many seconds the state may be out of date; 0 while watching."""
        lost_at = self.lost_at  # read once: another thread may set it meanwhile
        return 0.0 if lost_at is None else clock.monotonic() - lost_at


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class _VersionMeta(msgspec.Struct):
    resourceVersion: str = ""


class _Version(msgspec.Struct):
    metadata: _VersionMeta


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_status = msgspec.json.Decoder(_Status).decode


class Watch(Generic[Object]):
    """Follows the objects at one path into a sink."""

    def __init__(
        self,
        client: ApiClient,
        path: str,
        decode: Callable[[bytes | msgspec.Raw], Object],
        sink: Sink[Object],
        clock: Clock,
        *,
        field_selector: str = "",
    ) -> None:
        self.path = path
        self._selector = field_selector
        self.health = WatchHealth(lost_at=clock.monotonic())
        self._client = client
        self._decode = decode
        self._sink = sink
        self._clock = clock
        self._version = ""
        self._opened_at: float | None = None  # monotonic seconds
        self._logged_reason = ""  # the last logged reason for a lost watch

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        pause_s = _FIRST_PAUSE_S
        while True:
            self._opened_at = None
            self._moved()
            ended_by_server = False
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                ended_by_server = True
            except ResourceExpired as expired:
                self._version = ""
                log.info("watch expired, listing again", path=self.path, reason=str(expired))
            except ApiUnavailable as fault:
                self.health.status = fault.status
                self._say_lost(str(fault), pause_s)
            if self._lasted():
                pause_s = _FIRST_PAUSE_S
                if ended_by_server:
                    continue
            self._lost()
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _say_lost(self, reason: str, pause_s: float) -> None:
        # Warn once, not every ten seconds.
        log_at = log.debug if reason == self._logged_reason else log.warning
        log_at("watch lost", path=self.path, reason=reason, retry_in_s=pause_s)
        self._logged_reason = reason

    def _lasted(self) -> bool:
        if self._opened_at is None:
            return False
        return self._clock.monotonic() - self._opened_at >= _SHORT_WATCH_S

    async def _list(self) -> None:
        version = ""
        self._sink.list_began()
        async for page in self._client.pages(self.path, field_selector=self._selector):
            version = page.metadata.resourceVersion
            self._moved()
            for turn in range(0, len(page.items), _EVENTS_A_TURN):
                for raw in page.items[turn : turn + _EVENTS_A_TURN]:
                    self._deliver(self._sink.upsert, raw)
                await asyncio.sleep(0)
        self._sink.list_ended()
        self._version = version
        self.health.synced = True
        self.health.lists += 1

    async def _watch(self) -> None:
        async with self._client.watch(
            self.path, self._version, field_selector=self._selector
        ) as events:
            self.health.lost_at = self.health.status = None
            self._logged_reason = ""
            self._opened_at = self._clock.monotonic()
            seen = 0
            async for line in events:
                self._take(line)
                self._moved()
                seen += 1
                if seen % _EVENTS_A_TURN == 0:
                    await asyncio.sleep(0)

    def _take(self, line: bytes) -> None:
        try:
            event = _decode_event(line)
            if event.type == "ERROR":
                status = _decode_status(event.object)
                kind = ResourceExpired if status.code == 410 else ApiUnavailable
                raise kind(f"watch {self.path}: {status.message}", status.code)
            self._version = _decode_version(event.object).metadata.resourceVersion
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:
            self._undecodable(fault)
            return
        if event.type in ("ADDED", "MODIFIED"):
            self._deliver(self._sink.upsert, event.object)
        elif event.type == "DELETED":
            self._deliver(self._sink.remove, event.object)

    def _deliver(self, handle: Callable[[Object], None], raw: msgspec.Raw) -> None:
        try:
            handle(self._decode(raw))
        except msgspec.DecodeError as fault:
            self._undecodable(fault)
        except Exception:  # one bad object must not hide the others
            self.health.undecodable += 1
            log.exception("object skipped", path=self.path)

    def _undecodable(self, fault: Exception) -> None:
        self.health.undecodable += 1
        log.warning(
            "an object is skipped: it does not have the expected fields",
            path=self.path,
            reason=str(fault),
        )

    def _moved(self) -> None:
        self.health.moved_at = self._clock.monotonic()

    def _lost(self) -> None:
        if self.health.lost_at is None:
            self.health.lost_at = self._clock.monotonic()
