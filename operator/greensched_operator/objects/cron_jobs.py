"""CronJobs: when each runs next and how long its past runs took, on a reference node."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_core.quoting import quoted
from greensched_operator.objects.own_annotations import ours
from greensched_operator.objects.workloads import Meta, Work
from greensched_policies.planning.lateness import median_runtime_s

MOST_RUNTIMES = 32  # only the last count, so that a daily run that grows is followed in a month
# Schedules without five fields in robfig/cron, which Kubernetes uses (pkg.go.dev/github.com/robfig/
# cron/v3, "Predefined schedules").
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class _JobTemplate(msgspec.Struct):
    metadata: Meta = msgspec.field(default_factory=Meta)


class _CronJobSpec(msgspec.Struct):
    schedule: str = ""
    timeZone: str | None = None
    concurrencyPolicy: str = ""
    jobTemplate: _JobTemplate = msgspec.field(default_factory=_JobTemplate)


class CronJobObject(msgspec.Struct):
    """A CronJob as the API server writes it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _CronJobSpec = msgspec.field(default_factory=_CronJobSpec)


@dataclass(frozen=True, slots=True)
class CronJob:
    """The part of a CronJob that its runs inherit."""

    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]  # ours only
    schedule: str
    time_zone: str  # "" for the controller manager's, which is assumed to be UTC
    runtimes_s: tuple[float, ...]  # of its last runs on a reference node, the newest last
    may_overlap: bool = True  # else a due run deletes the previous one or waits for it

    @property
    def learned_runtime_s(self) -> float | None:
        """Return the median of past runtimes; None before the first run has ended."""
        return median_runtime_s(self.runtimes_s) if self.runtimes_s else None

    def next_run_s(self, after_s: float) -> float | None:
        """Return when it runs next, in seconds since the epoch; None if that is not known."""
        try:
            zone = ZoneInfo(self.time_zone) if self.time_zone else UTC
            after = datetime.fromtimestamp(after_s, zone)
            return next(CronSim(_five_fields(self.schedule), after)).timestamp()
        except (CronSimError, StopIteration, KeyError, ValueError, OSError):
            return None  # the API server accepted it, so Kubernetes knows more than we do


def read_cron_job(raw: object) -> CronJob:
    """Return the CronJob in JSON bytes or decoded JSON; raises BadInput for any other object."""
    try:
        if isinstance(raw, bytes | msgspec.Raw):
            found = msgspec.json.decode(raw, type=CronJobObject)
        else:
            found = msgspec.convert(raw, CronJobObject)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"not a CronJob: {fault}") from fault
    annotations = found.metadata.annotations or {}
    return CronJob(
        found.metadata.namespace,
        found.metadata.name,
        found.metadata.uid,
        ours(annotations),
        found.spec.schedule,
        found.spec.timeZone or "",
        _runtimes(annotations.get(labels.RUNTIMES)),
        found.spec.concurrencyPolicy not in ("Forbid", "Replace"),
    )


def with_runtime(runtimes_s: Sequence[float], runtime_s: float) -> str:
    """Return the annotation with one more runtime, as JSON; the oldest one is dropped."""
    kept = [*runtimes_s, runtime_s][-MOST_RUNTIMES:]
    return json.dumps([round(each) if each >= 10 else round(each, 2) for each in kept])


def _five_fields(schedule: str) -> str:
    text = _NAMED.get(schedule.strip().lower(), schedule.strip())
    if text.startswith(("TZ=", "CRON_TZ=")):
        raise ValueError(f"{quoted(schedule)} names a time zone")  # Kubernetes refuses it today
    return text.replace("?", "*")


def _runtimes(text: str | None) -> tuple[float, ...]:
    """Return the runtimes of past runs; text that GreenSched cannot have written counts as none."""
    if text is None:
        return ()
    try:
        values = msgspec.json.decode(text, type=list[float])
    except msgspec.DecodeError:
        return ()
    return tuple(each for each in values if 0.0 < each < math.inf)[-MOST_RUNTIMES:]


def with_cron_job(
    work: Work, namespace: str, named: Callable[[str, str], CronJob | None]
) -> tuple[dict[str, str], CronJob | None]:
    """Return a workload's annotations, completed by those of its CronJob; and that CronJob.

    `named` returns the CronJob of a namespace and name.
    """
    cron_job = None
    if work.owner is not None and work.owner.kind == "CronJob":
        cron_job = named(namespace, work.owner.name)
    return {**(cron_job.annotations if cron_job else {}), **work.annotations}, cron_job
