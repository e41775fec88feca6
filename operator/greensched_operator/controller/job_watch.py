"""Runs kopf for events of Jobs, in a separate thread and event loop.

When kopf ends, it cancels everything else in its loop, so it does not get ours.
It uses only `on.event` (docs/decisions/0009): timers, daemons and indexes add finalizers, with
which a deletion hangs while the operator is dead.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import kopf
import structlog

from greensched_core.api_paths import JOBS
from greensched_core.clock import Clock
from greensched_core.kubernetes_api import ApiAccess, streaming_session
from greensched_core.watching import WatchHealth
from greensched_operator.controller.handlers import JobEvents

log = structlog.get_logger()

_TOKEN_REREAD = timedelta(minutes=5)  # the kubelet rotates a bound token at 80 % of its hour
_LONGEST_PAUSE_S = 10.0


class _Endless:
    """Endless pauses between tries: with its default of eight, kopf then gives up a watch."""

    def __iter__(self) -> Iterator[float]:
        pause_s = 0.5
        while True:
            yield pause_s
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


class JobWatch:
    """Runs kopf's watch of Jobs, restarts it when it ends, and keeps its health."""

    path = JOBS

    def __init__(self, events: JobEvents, access: ApiAccess, identity: str, clock: Clock) -> None:
        self._events = events
        self._access = access
        self._identity = identity
        self._clock = clock
        self.health = WatchHealth(lost_at=clock.monotonic())

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                await run_kopf(self._events, self._access, self._identity, self._trace())
                log.error("the watch of Jobs (kopf) ended; starting it again")
            except Exception:  # without a new watch the leader would see no Jobs
                log.exception("the watch of Jobs (kopf) ended; starting it again")
            if self.health.lost_at is None:
                self.health.lost_at = self._clock.monotonic()
            await asyncio.sleep(_LONGEST_PAUSE_S / 10)

    def _trace(self) -> aiohttp.TraceConfig:
        """Return a trace that updates the watch's health from kopf's requests.

        An open watch is alive: kopf ends it after 70 s without event or bookmark. Before, kopf asks
        for the API's resources, for ever if it is refused: such a refusal counts too.
        """
        trace, loop = aiohttp.TraceConfig(), asyncio.get_running_loop()

        async def began(_: object, __: object, request: aiohttp.TraceRequestStartParams) -> None:
            self.health.moved_at = self._clock.monotonic()
            if request.url.path == self.path and self.health.lost_at is None:
                self.health.lost_at = self._clock.monotonic()  # the earlier request has ended

        async def answered(_: object, __: object, request: aiohttp.TraceRequestEndParams) -> None:
            status = request.response.status
            self.health.status = None if status == 200 else status
            if request.url.path != self.path:
                return
            if status == 200 and "watch" in request.url.query:
                self.health.lost_at, self.health.synced = None, True
            elif status == 200:
                loop.call_soon_threadsafe(self._events.listed_anew.set)

        trace.on_request_start.append(began)
        trace.on_request_end.append(answered)
        return trace


def operator_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: no peering, no events by kopf, nothing written to objects."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 290
    settings.watching.connect_timeout = 30
    settings.watching.chunk_size = 500  # all at once, they leave memory in use for good
    settings.networking.error_backoffs = _Endless()
    settings.process.ultimate_exiting_timeout = None  # else kopf kills this process
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)  # below, it logs each event
    settings.queueing.idle_timeout = 1.0  # a worker for each object that has just changed
    return settings


def _handlers(
    events: JobEvents,
    access: ApiAccess,
    loop: asyncio.AbstractEventLoop,
    traces: Sequence[aiohttp.TraceConfig],
) -> kopf.OperatorRegistry:
    """Return the registry of what kopf calls: the login, and the handler, which runs in `loop`."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        """Log in as our other clients do; read a token again before it expires.

        kopf's own session leaves sockets open if the loop ends before their TLS shutdown.
        """
        session = streaming_session(access, *traces)
        if token := access.bearer_token():
            session.headers["Authorization"] = f"Bearer {token}"
        return kopf.AiohttpSession(
            server=access.base_url,
            aiohttp_session=session,
            expiration=datetime.now(UTC) + _TOKEN_REREAD if token else None,
        )

    @kopf.on.event("batch", "v1", "jobs", registry=registry)
    async def job_changed(event: kopf.RawEvent, **_: Any) -> None:
        """Pass a Job's event to our loop."""
        loop.call_soon_threadsafe(events.take, event)

    return registry


async def run_kopf(
    events: JobEvents, access: ApiAccess, identity: str, *traces: aiohttp.TraceConfig
) -> None:
    """Run kopf until cancelled; raises the exception that ends it.

    `identity` names this replica. Without it kopf looks up the system user's name, and the uid
    that our images run as has none.
    """
    stop = threading.Event()
    registry = _handlers(events, access, asyncio.get_running_loop(), traces)

    async def work() -> None:
        name: Any = identity  # kopf's type for it, a str, is not exported
        own = operator_settings()
        try:
            await kopf.operator(
                clusterwide=True, identity=name, registry=registry, settings=own, stop_flag=stop
            )
        finally:
            stop.set()  # a thread of kopf's loop waits for it, and the loop waits for that thread

    working = asyncio.create_task(asyncio.to_thread(asyncio.run, work()))
    try:
        await asyncio.shield(working)
    finally:
        stop.set()
        await asyncio.wait([working])
