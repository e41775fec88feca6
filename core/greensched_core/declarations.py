"""What users, and the operator, wrote on a pod's Job, on the pod, or on the CronJob of its Job.

We write nothing into a Job's template for this: see docs/decisions/0011.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_core.objects import PodMeta, PodObject, declared_runtime
from greensched_core.quoting import quoted
from greensched_core.signals.timestamps import parse_timestamp

_LONGEST_RUNTIME = 65  # characters; any longer text is an invalid duration all the same
_LONGEST_NAME = 254  # characters; any longer text is the name of no object
_LONGEST_ZONE = 63  # characters of a label's value
_LONGEST_DECISION = 4096  # characters, ten times what the operator writes; cut off, it is no JSON


class OwnerObject(msgspec.Struct):
    """A Job or CronJob as the API server writes it; only its metadata is decoded."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)


class Declared(NamedTuple):
    """Our annotations that placement reads, as text; None where there is none."""

    runtime: str | None = None
    policy: str | None = None
    decision: str | None = None  # the operator's, on work that was held


NOTHING = Declared()


@dataclass(frozen=True, slots=True)
class _Owner:
    declared: Declared
    cron_job: str  # uid of the CronJob that created it, or ""


class PlannedRun(NamedTuple):
    """The run for which held work was released, by the operator's forecast."""

    zone: str
    start_s: float  # seconds since the epoch
    runtime_s: float  # on the reference core
    deadline_s: float = math.inf  # seconds since the epoch; infinite without one
    runtime_error: float | None = None  # standard deviation of ln(true / expected); None: not said
    on_time_target: float | None = None  # share of runs that must end in time; None: not said


class _Decision(msgspec.Struct, rename="camel"):
    zone: str = ""
    start: str | None = None
    runtime_seconds: float = math.nan
    deadline: str | None = None
    runtime_error: float | None = None
    on_time_target: float | None = None


_decode_decision = msgspec.json.Decoder(_Decision).decode


def read_planned_run(decision: str) -> PlannedRun | None:
    """Return the planned run in the annotation greensched.io/decision; None if it has no zone.

    Raises BadInput for a text that the operator would not write.
    """
    try:
        found = _decode_decision(decision)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise BadInput(f"annotation {labels.DECISION}: {fault}") from None
    if not found.zone or found.start is None:  # no node could take it; or written by 0.1
        return None
    if len(found.zone) > _LONGEST_ZONE:
        raise BadInput(
            f"annotation {labels.DECISION}: zone {quoted(found.zone)} is no label's value"
        )
    runtime_s = found.runtime_seconds
    if not 0.0 < runtime_s < math.inf:
        raise BadInput(f"annotation {labels.DECISION}: runtimeSeconds {runtime_s} is not above 0")
    _check_shares(found.runtime_error, found.on_time_target)
    deadline_s = math.inf if found.deadline is None else parse_timestamp(found.deadline)
    return PlannedRun(
        found.zone, parse_timestamp(found.start), runtime_s, deadline_s, found.runtime_error,
        found.on_time_target,
    )  # fmt: skip


def _check_shares(runtime_error: float | None, on_time_target: float | None) -> None:
    if runtime_error is not None and not 0.0 <= runtime_error < math.inf:
        raise BadInput(f"annotation {labels.DECISION}: runtimeError {runtime_error} is below 0")
    if on_time_target is not None and not 0.0 <= on_time_target < 1.0:
        raise BadInput(
            f"annotation {labels.DECISION}: onTimeTarget {on_time_target} is not from 0 to below 1"
        )


class OwnerDeclarations:
    """What Jobs or CronJobs declare, by uid; a sink for their watch.

    Objects that declare nothing and have no CronJob are not kept.
    """

    def __init__(self) -> None:
        self._owners: dict[str, _Owner] = {}
        self._gone: set[str] = set()  # during a list: uids not seen in it yet

    def __len__(self) -> int:
        return len(self._owners)

    def get(self, uid: str) -> _Owner | None:
        """Return the entry of an object; None if there is none."""
        return self._owners.get(uid)

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone = set(self._owners)

    def upsert(self, item: OwnerObject) -> None:
        """Take in an object that is new or has changed."""
        meta, declared = item.metadata, _limited(_declared(item.metadata))
        maker = meta.maker
        cron_job = maker.uid if maker is not None and maker.kind == "CronJob" else ""
        if declared == NOTHING and not cron_job:
            self.remove(item)
            return
        self._gone.discard(meta.uid)
        self._owners[meta.uid] = _Owner(declared, cron_job)

    def list_ended(self) -> None:
        """Drop the objects that were not in the list."""
        for uid in self._gone:
            self._owners.pop(uid, None)
        self._gone = set()

    def remove(self, item: OwnerObject) -> None:
        """Drop a deleted object."""
        self._owners.pop(item.metadata.uid, None)


class Declarations:
    """Finds what counts for a pod."""

    def __init__(self) -> None:
        self.jobs = OwnerDeclarations()
        self.cron_jobs = OwnerDeclarations()

    def of(self, pod: PodObject) -> Declared:
        """Return what a pod's Job declares, else the pod itself, else the CronJob of its Job.

        Planning of held work uses the same order.
        """
        maker, own = pod.metadata.maker, _declared(pod.metadata)
        job = None if maker is None else self.jobs.get(maker.uid)
        if job is None:
            return own
        maker_of_job = self.cron_jobs.get(job.cron_job)
        first, last = job.declared, NOTHING if maker_of_job is None else maker_of_job.declared
        policies = (each.policy for each in (first, own, last) if each.policy is not None)
        return Declared(
            first.runtime or own.runtime or last.runtime,
            next(policies, None),
            own.decision if first.decision is None else first.decision,
        )


def _declared(meta: PodMeta) -> Declared:
    found = meta.annotations
    if found is None:
        return NOTHING
    return Declared(declared_runtime(meta), found.policy, found.decision)


def _limited(declared: Declared) -> Declared:
    longest = (_LONGEST_RUNTIME, _LONGEST_NAME, _LONGEST_DECISION)
    cut = (
        None if text is None else text[:most] for text, most in zip(declared, longest, strict=True)
    )
    return Declared(*cut)
