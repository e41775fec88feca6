"""Keeps a picture of one kind of objects current: list in pages, watch, resume, list again.

The loop never ends by itself. A watch that the server closes is resumed from the last seen
resourceVersion; one that expired (410) is listed again; an unreachable server is asked again with
a growing, jittered pause. The sink always holds the last good picture meanwhile.
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
_SHORT_WATCH_S = 1.0  # one that ends sooner is not opened again at once
_EVENTS_A_TURN = 50  # then the loop lets others run, so that a burst delays no request for long


class Sink(Protocol[Object_contra]):
    """Takes what the watch brings; called from one task only."""

    def list_began(self) -> None:
        """A full list follows."""
        ...

    def upsert(self, item: Object_contra) -> None:
        """An object is there or has changed."""
        ...

    def list_ended(self) -> None:
        """The full list is complete: whatever was not in it is gone."""
        ...

    def remove(self, item: Object_contra) -> None:
        """An object is gone."""
        ...


class SharedSink(Generic[Object]):
    """A sink that hands all on to several, so that one watch serves them."""

    def __init__(self, *parts: tuple[Callable[[Object], Any], Sink[Any]]) -> None:
        """`parts` are sinks, each with what makes of an object what it takes."""
        self._parts = parts

    def list_began(self) -> None:
        """A full list follows."""
        for _, sink in self._parts:
            sink.list_began()

    def upsert(self, item: Object) -> None:
        """An object is there or has changed; raises the first fault once all have been served."""
        self._each(lambda read, sink: sink.upsert(read(item)))

    def list_ended(self) -> None:
        """The full list is complete."""
        for _, sink in self._parts:
            sink.list_ended()

    def remove(self, item: Object) -> None:
        """An object is gone; raises as `upsert` does."""
        self._each(lambda read, sink: sink.remove(read(item)))

    def _each(self, give: Callable[[Callable[[Object], Any], Sink[Any]], None]) -> None:
        faults = []
        for read, sink in self._parts:
            try:
                give(read, sink)
            except Exception as fault:  # noqa: BLE001 - what one cannot read, another may
                faults.append(fault)
        if faults:
            raise faults[0]


def unread(raw: bytes | msgspec.Raw) -> bytes | msgspec.Raw:
    """Return an object as it came: the sinks of a `SharedSink` read it, each as far as it needs."""
    return raw


def as_it_is(item: Object) -> Object:
    """Return what the watch has read, for a sink of a `SharedSink` that takes just that."""
    return item


@dataclass
class WatchHealth:
    """How a watch is doing; read by readiness, metrics and the staleness rule."""

    synced: bool = False  # listed at least once
    lost_at: float | None = 0.0  # monotonic seconds since when there is no live watch
    lists: int = 0
    undecodable: int = 0
    status: int | None = None  # HTTP status that the last try to list or watch was refused with
    moved_at: float = 0.0  # monotonic seconds of the last thing that was done or heard

    def age_s(self, clock: Clock) -> float:
        """Return for how many seconds the picture may have been out of date; 0 while watching."""
        lost_at = self.lost_at  # a watch in another thread may come back in between
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
        self._said = ""  # why the watch was lost, as logged last

    async def run(self) -> None:
        """Follow until cancelled."""
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
        say = log.debug if reason == self._said else log.warning  # once, not every ten seconds
        say("watch lost", path=self.path, reason=reason, retry_in_s=pause_s)
        self._said = reason

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
                    self._give(self._sink.upsert, raw)
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
            self._said = ""
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
            self._give(self._sink.upsert, event.object)
        elif event.type == "DELETED":
            self._give(self._sink.remove, event.object)

    def _give(self, take: Callable[[Object], None], raw: msgspec.Raw) -> None:
        try:
            take(self._decode(raw))
        except msgspec.DecodeError as fault:
            self._undecodable(fault)
        except Exception:  # one odd object never hides the others, whatever is odd about it
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
