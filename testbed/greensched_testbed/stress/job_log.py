"""Records the progress of the suite's Jobs from watches of Jobs and pods.

Times are read from our own clock when the watch first reports a change, as in `replay`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from greensched_core.clock import Clock
from greensched_testbed.pod_conditions import PodCondition, why_unplaced
from greensched_testbed.replay import ReplayProgress
from greensched_testbed.stress.job_objects import JOB_LABEL
from greensched_testbed.stress.suite import StressJob

End = Literal["", "completed", "failed"]
_ENDS: dict[str, End] = {"Succeeded": "completed", "Failed": "failed"}  # by a pod's phase


@dataclass(frozen=True, slots=True)
class JobRun:
    """One Job's times, in seconds since the epoch; None for what did not happen."""

    job: StressJob
    created_at: float | None = None
    bound_at: float | None = None
    started_at: float | None = None  # when its container started
    finished_at: float | None = None
    end: End = ""
    node: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    why: str = ""  # why it waits or failed, as the cluster reports it
    ended_unbound: bool = False  # its pod failed or is being deleted, and has no node

    @property
    def never_ran(self) -> bool:
        """Whether it failed and no pod of it can have run.

        A failed Job without a start is not enough: the watch of Jobs may be ahead of that of pods.
        """
        return self.end == "failed" and self.ended_unbound and self.bound_at is None

    @property
    def completion_s(self) -> float | None:
        """Seconds from creation to end; None for a Job that did not complete."""
        if self.end != "completed" or self.created_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.created_at

    @property
    def run_s(self) -> float | None:
        """Seconds from start to end; None for a Job that did not complete."""
        if self.end != "completed" or self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at

    @property
    def has_missed(self) -> bool:
        """Whether it had a deadline and did not complete by then."""
        if self.job.deadline_s is None:
            return False
        taken_s = self.completion_s
        return taken_s is None or taken_s > self.job.deadline_s


class _Meta(msgspec.Struct):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    deletionTimestamp: str = ""


class _Spec(msgspec.Struct):
    nodeName: str = ""


class _Waiting(msgspec.Struct):
    reason: str = ""


class _Terminated(msgspec.Struct):
    reason: str = ""
    exitCode: int = 0


class _State(msgspec.Struct):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct):
    state: _State = msgspec.field(default_factory=_State)


class _Status(msgspec.Struct):
    phase: str = ""
    message: str = ""
    conditions: list[PodCondition] = []
    containerStatuses: list[_Container] = []


class Seen(msgspec.Struct):
    """The fields that we read of a Job or a pod."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


decode_seen = msgspec.json.Decoder(Seen).decode


class JobLog:
    """Records when the watches first report each change; the only writer of the runs."""

    def __init__(
        self, jobs: Sequence[StressJob], clock: Clock, on_progress: Callable[[ReplayProgress], None]
    ) -> None:
        self.complete = asyncio.Event()
        self._runs = {job.name: JobRun(job) for job in jobs}
        self._clock = clock
        self._on_progress = on_progress

    def runs(self) -> tuple[JobRun, ...]:
        """Return each Job's run so far, in the suite's order."""
        return tuple(self._runs.values())

    def created(self, name: str) -> None:
        """Record that the API server has accepted a Job."""
        self._note(replace(self._runs[name], created_at=self._clock.now()))

    def list_began(self) -> None:
        """Do nothing: a full list only repeats the objects that exist."""

    def list_ended(self) -> None:
        """Do nothing: an object missing from a list keeps its last state."""

    def remove(self, item: Seen) -> None:
        """Do nothing: a deleted object keeps its last state."""

    def upsert(self, item: Seen) -> None:
        """Record a Job's end, or its pod's node, start and end, when they are new."""
        run = self._runs.get((item.metadata.labels or {}).get(JOB_LABEL, ""))
        if run is None or run.end:
            return
        now = self._clock.now()
        if item.status.phase:
            run = _with_pod(run, item, now)
        end = _end_of(item)
        if end:
            run = replace(run, end=end, finished_at=now)
        self._note(run)

    def _note(self, run: JobRun) -> None:
        if run == self._runs[run.job.name]:
            return
        self._runs[run.job.name] = run
        runs = self._runs.values()
        created, bound, ended = (
            sum(bool(value) for value in values)
            for values in zip(*((r.created_at, r.bound_at, r.end) for r in runs), strict=True)
        )
        self._on_progress(ReplayProgress(len(runs), created, bound, ended))
        if ended == len(runs):
            self.complete.set()


def _with_pod(run: JobRun, pod: Seen, now: float) -> JobRun:
    node = pod.spec.nodeName
    has_started = bool(node) and pod.status.phase in ("Running", "Succeeded", "Failed")
    # The API server binds no pod that is being deleted, so that such a pod never runs.
    ended_unbound = not node and bool(pod.metadata.deletionTimestamp or _end_of(pod))
    return replace(
        run,
        bound_at=now if node and run.bound_at is None else run.bound_at,
        started_at=now if has_started and run.started_at is None else run.started_at,
        node=node or run.node,
        pod_name=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        why=_why(pod.status),
        ended_unbound=ended_unbound,
    )


def _end_of(item: Seen) -> End:
    """Return how a pod ended, or that a Job failed, which covers Jobs whose pod was deleted.

    A Job's completion is read from its pod, which also states the node.
    """
    if item.status.phase:
        return _ENDS.get(item.status.phase, "")
    has_failed = any(
        each.type == "Failed" and each.status == "True" for each in item.status.conditions
    )
    return "failed" if has_failed else ""


def _why(status: _Status) -> str:
    """Return why a pod waits or failed, "" if its status gives no reason."""
    for container in status.containerStatuses:
        state = container.state
        if state.waiting is not None and state.waiting.reason:
            return state.waiting.reason
        if state.terminated is not None and state.terminated.exitCode:
            return f"{state.terminated.reason}, exit code {state.terminated.exitCode}"
    return status.message or why_unplaced(status.conditions)
