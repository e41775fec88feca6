"""Handles kopf's events of Jobs."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.kueue.kueue_controller import KueueController
from greensched_operator.objects.workloads import Meta, convert_job
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.writing.metrics import ControllerMetrics

log = structlog.get_logger()

_LISTED_EVERY_S = 3600.0  # wall seconds
_AFTER_LIST_S = 5.0  # the time in which kopf passes on what it listed


class JobEvents:
    """Takes in Jobs from kopf's events, which kopf's thread passes to our event loop."""

    def __init__(
        self,
        works: HeldWorks,
        wake: Callable[[], None],
        metrics: ControllerMetrics,
        kueue: KueueController,
    ) -> None:
        self._works = works
        self._kueue = kueue
        self._wake = wake
        self._metrics = metrics
        self._known: set[str] = set()  # uids
        self.listed_anew = asyncio.Event()  # by kopf, which reports no deletions in such a gap

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
        """Forget deleted Jobs each hour and after a gap: kopf does not report deletions in it."""
        while True:
            with suppress(TimeoutError):  # `wait_for` of Python 3.11 may lose a cancellation
                async with asyncio.timeout(_LISTED_EVERY_S):
                    await self.listed_anew.wait()
            await asyncio.sleep(_AFTER_LIST_S)
            self.listed_anew.clear()
            await self.forget_unlisted(client)

    async def forget_unlisted(self, client: ApiClient) -> None:
        """Forget the Jobs that were known before a new list and are not in it."""
        known, listed = set(self._known), set[str]()
        try:
            async for page in client.pages("/apis/batch/v1/jobs"):
                listed |= {_decode_listed(raw).metadata.uid for raw in page.items}
        except (ApiUnavailable, msgspec.DecodeError) as fault:
            log.warning("Jobs could not be listed", reason=str(fault))
            return
        for uid in known - listed:
            self._drop(uid)


class _Listed(msgspec.Struct):
    metadata: Meta


_decode_listed = msgspec.json.Decoder(_Listed).decode
