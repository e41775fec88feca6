"""Builds and sends what we write on Jobs and pods, and the events about them.

A plan goes to the status subresource, which takes the condition and the annotations in one write.
"""

from collections.abc import Callable, Mapping

import msgspec
import structlog

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.events import EventSubject, event_body
from greensched_core.kubernetes_api import STRATEGIC_MERGE_PATCH, ApiClient
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.judging import arrived_s
from greensched_operator.holding.pause_terms import JobProgress
from greensched_operator.objects.release_patch import (
    ReleaseReason,
    media_type,
    object_path,
    release_patch,
    unmark_patch,
)
from greensched_operator.objects.workloads import Work, WorkKind
from greensched_operator.planning.plan_annotations import pause_annotations
from greensched_operator.planning.situation import Planned
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.writing.metrics import ControllerMetrics, WriteKind

log = structlog.get_logger()

COMPONENT = OperatorSettings.component
_API_VERSIONS = {WorkKind.JOB: "batch/v1", WorkKind.POD: "v1"}
_ANOTHER = "UID in precondition"  # in a 409: another object has its name now


def plan_patch(
    work: Work,
    *,
    start_s: float,
    latest_start_s: float,
    text: str,
    decision: Mapping[str, object],
    now_s: float,
    wall_s: float,
) -> bytes:
    """Return the strategic merge patch, for the status subresource, that announces a planned start.

    An arrival after `now_s`, from a webhook whose clock is fast, is set to `now_s`, so that later
    plans count durations from the same time. `wall_s` is the machine's time, used in conditions.
    """
    annotations = {
        labels.PLANNED_START: format_timestamp(round(start_s)),
        labels.LATEST_START: format_timestamp(round(latest_start_s)),
        labels.HOLD_REASON: text,
        labels.DECISION: msgspec.json.encode(decision).decode(),
    }
    if arrived_s(work) > now_s:
        annotations[labels.HELD_AT] = format_timestamp(round(now_s, 3))
    metadata = {"uid": work.uid, "annotations": annotations}
    if work.kind == WorkKind.WORKLOAD:  # its AdmissionCheck follows from the annotations
        return msgspec.json.encode({"metadata": metadata})
    return msgspec.json.encode({"metadata": metadata, **_planned(work, start_s, text, wall_s)})


def announced_patch(work: Work, start_s: float, text: str, wall_s: float) -> bytes:
    """Return `plan_patch` with the condition alone: the annotations are already written."""
    status = _planned(work, start_s, text, wall_s)
    return msgspec.json.encode({"metadata": {"uid": work.uid}, **status})


def settled_patch(work: Work, reason: ReleaseReason, text: str, wall_s: float) -> bytes:
    """Return the strategic merge patch, for the status subresource, that says why a wait is over.

    Without it the condition would still announce a planned start.
    """
    status = _status(work, False, reason.replace("-", " ").title().replace(" ", ""), text, wall_s)
    return msgspec.json.encode({"metadata": {"uid": work.uid}, **status})


def _planned(work: Work, start_s: float, text: str, wall_s: float) -> dict[str, object]:
    message = f"start planned for {format_timestamp(round(start_s))}: {text}"
    return _status(work, True, "WaitsForBetterPower", message, wall_s)


def _status(
    work: Work, is_planned: bool, reason: str, text: str, wall_s: float
) -> dict[str, object]:
    condition = {
        "type": labels.START_PLANNED,
        "status": str(is_planned),
        "reason": reason,
        "message": text,
    }
    if not (is_planned and work.has_plan_condition):  # else the patch keeps the earlier time
        condition["lastTransitionTime"] = format_timestamp(int(wall_s))
    return {"status": {"conditions": [condition]}}


def pause_patch(planned: Planned, progress: JobProgress, text: str) -> bytes:
    """Return the strategic merge patch that suspends a running Job and marks it as held by us.

    A single write, so that a suspended Job always has a mark by which it is resumed. The API server
    refuses it (409) if the Job has changed meanwhile.
    """
    work = planned.waiting.work
    annotations = {
        labels.HOLD_REASON: text,
        labels.RELEASED_AT: None,
        labels.RELEASE_REASON: None,
        **pause_annotations(planned, progress),
    }
    meta = {"uid": work.uid, "resourceVersion": work.version, "annotations": annotations}
    return msgspec.json.encode({"metadata": meta, "spec": {"suspend": True}})


def regarded(work: Work) -> EventSubject:
    """Return the object that events are about: the workload, or the Job of a Kueue Workload."""
    work = work.runs_as
    return EventSubject(_API_VERSIONS[work.kind], work.kind, work.namespace, work.name, work.uid)


class Writer:
    """Sends writes; counts refused ones, which level-triggered callers send again."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        wall: Clock,
        metrics: ControllerMetrics,
        *,
        may_write: Callable[[], bool] = lambda: True,
        gone: Callable[[str], None] = lambda uid: None,
    ) -> None:
        """Call `may_write` before each write, and `gone` with the uid of a missing object."""
        self._may_write = may_write
        self._gone = gone
        self._client = client
        self._clock = clock
        self._wall = wall
        self._metrics = metrics
        self.kueue_path = ""  # of Kueue's API; set before the first Workload is known

    def _path(self, work: Work) -> str:
        return object_path(work.kind, work.namespace, work.name, self.kueue_path)

    async def release(
        self, work: Work, reason: ReleaseReason, decision: Mapping[str, object] | None = None
    ) -> bool:
        """Start a workload, with the basis of its plan; return whether it is started or gone."""
        more = {} if decision is None else {labels.DECISION: msgspec.json.encode(decision).decode()}
        now_s, gates = self._clock.now(), work.queue_gates
        body = release_patch(work.kind, work.uid, reason, now_s, gates, more=more)
        path = self._path(work)
        how = media_type(work.kind, work.queue_gates)
        return await self._sent(WriteKind.RELEASE, path, body, how, work)

    async def unmark(self, work: Work) -> bool:
        """Remove our mark from work that others have started; return whether it is removed."""
        body, how = unmark_patch(work, self._clock.now()), media_type(work.kind, work.queue_gates)
        return await self._sent(WriteKind.UNMARK, self._path(work), body, how, work)

    async def plan(
        self,
        work: Work,
        start_s: float,
        latest_start_s: float,
        text: str,
        decision: Mapping[str, object],
    ) -> bool:
        """Write a planned start on a workload; return whether it is written, or the work gone."""
        body = plan_patch(
            work, start_s=start_s, latest_start_s=latest_start_s, text=text, decision=decision,
            now_s=self._clock.now(), wall_s=self._wall.now(),
        )  # fmt: skip
        path = self._path(work)
        if work.kind != WorkKind.WORKLOAD:
            path += "/status"
        return await self._sent(WriteKind.PLAN, path, body, media_type(work.kind), work)

    async def announce(self, work: Work, start_s: float, text: str) -> bool:
        """Write when paused work is resumed; return whether it is written, or the work gone."""
        body = announced_patch(work, start_s, text, self._wall.now())
        return await self._sent_status(work, body)

    async def settle(self, work: Work, reason: ReleaseReason, text: str) -> bool:
        """Write why a wait is over; return whether it is written, or the work gone."""
        body = settled_patch(work, reason, text, self._wall.now())
        return await self._sent_status(work, body)

    async def pause(self, planned: Planned, progress: JobProgress, text: str) -> bool:
        """Suspend a running Job; return whether it is suspended."""
        work, body = planned.waiting.work, pause_patch(planned, progress, text)
        path = object_path(work.kind, work.namespace, work.name)
        return await self._sent(
            WriteKind.PAUSE, path, body, STRATEGIC_MERGE_PATCH, work, is_done_when_gone=False
        )

    async def _sent_status(self, work: Work, body: bytes) -> bool:
        path = self._path(work) + "/status"
        return await self._sent(WriteKind.CONDITION, path, body, media_type(work.kind), work)

    async def create_event(
        self, work: Work, reason: str, note: str, *, is_warning: bool = False
    ) -> bool:
        """Create an event about a workload, unless an equal one exists."""
        at_s, about = self._wall.now(), regarded(work)
        body = event_body(about, reason, note, at_s, component=COMPONENT, is_warning=is_warning)
        return await self._sent(
            WriteKind.EVENT, f"/api/v1/namespaces/{work.namespace}/events", body
        )

    async def remember_runtimes(self, namespace: str, cron_job: str, runtimes: str) -> bool:
        """Write on a CronJob how long its last runs would have taken on a reference node."""
        annotations = {labels.RUNTIMES: runtimes, labels.DURATIONS_OF_010: None}
        body = msgspec.json.encode({"metadata": {"annotations": annotations}})
        path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{cron_job}"
        return await self._sent(WriteKind.RUNTIMES, path, body, STRATEGIC_MERGE_PATCH)

    async def _sent(
        self,
        kind: WriteKind,
        path: str,
        body: bytes,
        media_type: str = "",
        work: Work | None = None,
        *,
        is_done_when_gone: bool = True,
    ) -> bool:
        if not self._may_write():
            self._metrics.failed.labels(kind).inc()
            return False
        self._metrics.writes.labels(kind).inc()
        try:
            if media_type:
                await self._client.patch(path, body, media_type)
            else:
                await self._client.create(path, body)
        except ApiUnavailable as fault:
            if fault.status == 404 or (fault.status == 409 and _ANOTHER in str(fault)):
                if work is not None:
                    self._gone(work.uid)  # the watch may never report a deletion during its gap
                return is_done_when_gone
            if fault.status == 409 and not media_type:  # the event exists
                return True
            self._metrics.failed.labels(kind).inc()
            log.warning("an API write failed", kind=kind, path=path, reason=str(fault)[:500])
            return False
        return True
