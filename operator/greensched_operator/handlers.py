"""kopf's edge: events of Jobs, and nothing else, in a thread and an event loop of its own.

When kopf ends it cancels whatever else its loop runs, so it gets no loop of ours.
Only `on.event` (docs/decisions/0009): timers, daemons and indexes add finalizers, with which a
deletion hangs while the operator is dead.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf
import msgspec
import structlog

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiAccess, ApiClient, streaming_session
from greensched_operator.held_works import HeldWorks
from greensched_operator.kueue_keeper import KueueKeeper
from greensched_operator.metrics import ControllerMetrics
from greensched_operator.workloads import Meta, convert_job

log = structlog.get_logger()

_LISTED_EVERY_S = 3600.0  # wall seconds
_TOKEN_REREAD = timedelta(minutes=5)  # the kubelet rotates a bound token at 80 % of its hour


class JobEvents:
    """Takes in Jobs as kopf's events tell of them, from kopf's thread into our loop."""

    def __init__(
        self,
        works: HeldWorks,
        wake: Callable[[], None],
        metrics: ControllerMetrics,
        kueue: KueueKeeper,
    ) -> None:
        self._works = works
        self._kueue = kueue
        self._wake = wake
        self._metrics = metrics
        self._known: set[str] = set()  # uids

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        body = event["object"]
        uid = str(body["metadata"].get("uid", ""))
        if event["type"] == "DELETED":
            self._drop(uid)
            return
        self._known.add(uid)
        try:
            job = convert_job(body)
            self._works.put(job)
        except BadInput as fault:
            self._metrics.unreadable.inc()
            log.warning("Job skipped", name=body["metadata"].get("name"), reason=str(fault))
            return
        if job.queue_gates is not None:
            self._kueue.put_job(job)
        self._wake()

    def _drop(self, uid: str) -> None:
        self._known.discard(uid)
        self._works.drop(uid)
        self._kueue.drop_job(uid)

    async def forget_gone(self, client: ApiClient) -> None:
        """Forget each hour what is gone: of a deletion in a gap of its watch kopf does not tell."""
        while True:
            await asyncio.sleep(_LISTED_EVERY_S)
            await self.forget_unlisted(client)

    async def forget_unlisted(self, client: ApiClient) -> None:
        """Forget Jobs that were known, and are in no list that began after that."""
        known, listed = set(self._known), set[str]()
        try:
            async for page in client.pages("/apis/batch/v1/jobs"):
                listed |= {_decode_listed(raw).metadata.uid for raw in page.items}
        except (ApiUnavailable, msgspec.DecodeError) as fault:
            log.warning("Jobs not listed", reason=str(fault))
            return
        for uid in known - listed:
            self._drop(uid)


class _Listed(msgspec.Struct):
    metadata: Meta


_decode_listed = msgspec.json.Decoder(_Listed).decode


def operator_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: no peering, no events of its own, nothing written to objects."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 290
    settings.watching.connect_timeout = 30
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)  # it tells of each event
    settings.queueing.idle_timeout = 1.0  # a worker for each object that has just changed
    return settings


async def run_kopf(events: JobEvents, access: ApiAccess, identity: str) -> None:
    """Run kopf until cancelled; raises what ends it.

    `identity` names this replica. Without it kopf asks the system for its user's name, and the uid
    that images run as has none.
    """
    stop = threading.Event()
    loop = asyncio.get_running_loop()
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        """Log in as the rest of us does; a token is read anew before it is old.

        kopf's own session leaves sockets open where the loop ends before their leave over TLS.
        """
        session = streaming_session(access)
        if token := access.bearer_token():
            session.headers["Authorization"] = f"Bearer {token}"
        return kopf.AiohttpSession(
            server=access.base_url,
            aiohttp_session=session,
            expiration=datetime.now(UTC) + _TOKEN_REREAD if token else None,
        )

    @kopf.on.event("batch", "v1", "jobs", registry=registry)
    async def job_changed(event: kopf.RawEvent, **_: Any) -> None:
        """Hand a Job on as it is now."""
        loop.call_soon_threadsafe(events.take, event)

    async def work() -> None:
        await kopf.operator(
            registry=registry,
            settings=operator_settings(),
            clusterwide=True,
            identity=identity,  # type: ignore[arg-type]  # a NewType of str that kopf exports nowhere
            stop_flag=stop,
        )

    working = asyncio.create_task(asyncio.to_thread(asyncio.run, work()))
    try:
        await asyncio.shield(working)
    finally:
        stop.set()
        await asyncio.wait([working])
