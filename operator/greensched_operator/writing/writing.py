"""What we write on Jobs and pods, and the events about them: bodies, and the edge that sends them.

A plan goes to the status subresource, which takes the condition and the annotations in one write.
"""

from collections.abc import Callable, Mapping

import msgspec
import structlog

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.durations import format_duration
from greensched_core.errors import ApiUnavailable
from greensched_core.events import Regarded, event_body
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
from greensched_operator.planning.start_planning import Planned
from greensched_operator.runtime.metrics import ControllerMetrics
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()

COMPONENT = OperatorSettings.component
_API_VERSIONS = {WorkKind.JOB: "batch/v1", WorkKind.POD: "v1"}
_ANOTHER = "UID in precondition"  # of a 409: another of its name is there


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
    """Return the strategic merge patch, for the status subresource, that tells a planned start.

    An arrival that lies ahead of `now_s`, from a webhook whose clock is fast, is set right, so that
    durations from it stay what they are. `wall_s` is the machine's time, which conditions carry.
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
    if work.kind == WorkKind.WORKLOAD:  # its check follows from them
        return msgspec.json.encode({"metadata": metadata})
    return msgspec.json.encode({"metadata": metadata, **_planned(work, start_s, text, wall_s)})


def announced_patch(work: Work, start_s: float, text: str, wall_s: float) -> bytes:
    """Return the same patch with the condition alone: the annotations are there already."""
    status = _planned(work, start_s, text, wall_s)
    return msgspec.json.encode({"metadata": {"uid": work.uid}, **status})


def settled_patch(work: Work, reason: ReleaseReason, text: str, wall_s: float) -> bytes:
    """Return the strategic merge patch, for the status subresource, that tells why a wait is over.

    Without it the condition would go on telling of a start that is planned.
    """
    status = _status(work, False, reason.replace("-", " ").title().replace(" ", ""), text, wall_s)
    return msgspec.json.encode({"metadata": {"uid": work.uid}, **status})


def _planned(work: Work, start_s: float, text: str, wall_s: float) -> dict[str, object]:
    told = f"start planned for {format_timestamp(round(start_s))}: {text}"
    return _status(work, True, "WaitsForBetterPower", told, wall_s)


def _status(
    work: Work, is_planned: bool, reason: str, text: str, wall_s: float
) -> dict[str, object]:
    condition = {
        "type": labels.START_PLANNED,
        "status": str(is_planned),
        "reason": reason,
        "message": text,
    }
    if not (is_planned and work.tells_plan):  # else the time that stands there is merged in
        condition["lastTransitionTime"] = format_timestamp(int(wall_s))
    return {"status": {"conditions": [condition]}}


def pause_patch(planned: Planned, progress: JobProgress, text: str) -> bytes:
    """Return the strategic merge patch that suspends a running Job, and marks it as held by us.

    One write, so that there is no moment in which nobody would resume it. The API server refuses it
    (409) where the Job has changed meanwhile.
    """
    work, terms = planned.waiting.work, planned.waiting.terms
    annotations = {
        labels.LATEST_START: format_timestamp(int(terms.latest_start_s)),
        labels.HOLD_REASON: text,
        labels.DECISION: msgspec.json.encode(decision_of(planned)).decode(),
        labels.PLANNED_START: format_timestamp(round(planned.start_s)),
        # Without it, nobody could tell whose stop it was once a user took the others off.
        labels.HELD_AT: format_timestamp(round(arrived_s(work), 3)),
        labels.RELEASED_AT: None,
        labels.RELEASE_REASON: None,
        **progress.annotations(),
    }
    meta = {"uid": work.uid, "resourceVersion": work.version, "annotations": annotations}
    return msgspec.json.encode({"metadata": meta, "spec": {"suspend": True}})


def decision_of(planned: Planned) -> dict[str, object]:
    """Return what a plan stands on, as it is written on a workload."""
    chosen, terms = planned.chosen, planned.waiting.terms
    runtime = format_duration(terms.runtime_s)
    return {
        "why": chosen.why,
        "saving": round(chosen.saving, 4),
        "zone": planned.zone,
        "carbonGramsPerKwh": [chosen.run.carbon_g_per_kwh, chosen.run_now.carbon_g_per_kwh],
        "pricePerMwh": [chosen.run.price_per_mwh, chosen.run_now.price_per_mwh],
        "runtime": f"{runtime} ({terms.runtime_from})",
        "policy": planned.waiting.policy.title,
    }


def regarded(work: Work) -> Regarded:
    """Return what events about a workload are written on: of a Workload of Kueue's its Job."""
    work = work.runs_as
    return Regarded(_API_VERSIONS[work.kind], work.kind, work.namespace, work.name, work.uid)


class Writer:
    """Sends them; what is refused is counted, and a level-triggered caller tries again."""

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
        """`may_write` is asked before each write; `gone` is told the uid of what is not there."""
        self._may_write = may_write
        self._gone = gone
        self._client = client
        self._clock = clock
        self._wall = wall
        self._metrics = metrics
        self.kueue_path = ""  # of its API; known before the first Workload is

    def _path(self, work: Work) -> str:
        return object_path(work.kind, work.namespace, work.name, self.kueue_path)

    async def release(self, work: Work, reason: ReleaseReason) -> bool:
        """Start a workload; tell whether it runs now, or is gone."""
        body = release_patch(work.kind, work.uid, reason, self._clock.now(), work.queue_gates)
        path = self._path(work)
        how = media_type(work.kind, work.queue_gates)
        return await self._sent("release", path, body, how, work)

    async def unmark(self, work: Work) -> bool:
        """Take our mark off work that others have started; tell whether it is off."""
        body, how = unmark_patch(work, self._clock.now()), media_type(work.kind, work.queue_gates)
        return await self._sent("unmark", self._path(work), body, how, work)

    async def plan(
        self,
        work: Work,
        start_s: float,
        latest_start_s: float,
        text: str,
        decision: Mapping[str, object],
    ) -> bool:
        """Write a planned start on a workload; tell whether it is there, or the workload gone."""
        body = plan_patch(
            work, start_s=start_s, latest_start_s=latest_start_s, text=text, decision=decision,
            now_s=self._clock.now(), wall_s=self._wall.now(),
        )  # fmt: skip
        path = self._path(work)
        if work.kind != WorkKind.WORKLOAD:
            path += "/status"
        return await self._sent("plan", path, body, media_type(work.kind), work)

    async def announce(self, work: Work, start_s: float, text: str) -> bool:
        """Write on paused work when it is resumed; tell whether that is there, or it gone."""
        body = announced_patch(work, start_s, text, self._wall.now())
        return await self._sent_status(work, body)

    async def settle(self, work: Work, reason: ReleaseReason, text: str) -> bool:
        """Write on started work why its wait is over; tell whether that is there, or it gone."""
        body = settled_patch(work, reason, text, self._wall.now())
        return await self._sent_status(work, body)

    async def pause(self, planned: Planned, progress: JobProgress, text: str) -> bool:
        """Suspend a running Job; tell whether it is."""
        work, body = planned.waiting.work, pause_patch(planned, progress, text)
        path = object_path(work.kind, work.namespace, work.name)
        return await self._sent(
            "pause", path, body, STRATEGIC_MERGE_PATCH, work, is_done_when_gone=False
        )

    async def _sent_status(self, work: Work, body: bytes) -> bool:
        path = self._path(work) + "/status"
        return await self._sent("condition", path, body, media_type(work.kind), work)

    async def tell(self, work: Work, reason: str, note: str, *, is_warning: bool = False) -> bool:
        """Create an event about a workload, unless there is one that says the same."""
        at_s, about = self._wall.now(), regarded(work)
        body = event_body(about, reason, note, at_s, component=COMPONENT, is_warning=is_warning)
        return await self._sent("event", f"/api/v1/namespaces/{work.namespace}/events", body)

    async def remember_runtimes(self, namespace: str, cron_job: str, runtimes: str) -> bool:
        """Write on a CronJob how long its last runs took."""
        body = msgspec.json.encode({"metadata": {"annotations": {labels.RUNTIMES: runtimes}}})
        path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{cron_job}"
        return await self._sent("runtimes", path, body, STRATEGIC_MERGE_PATCH)

    async def _sent(
        self,
        kind: str,
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
                    self._gone(work.uid)  # no event may tell: it went while the watch was away
                return is_done_when_gone
            if fault.status == 409 and not media_type:  # said before
                return True
            self._metrics.failed.labels(kind).inc()
            log.warning("not written", kind=kind, path=path, reason=str(fault)[:500])
            return False
        return True
