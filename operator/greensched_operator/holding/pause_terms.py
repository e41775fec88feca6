"""Which Jobs may be suspended while they run, and until when they must run again: pure.

How far a Job has come is written on it, when it is suspended; what is left of its runtime, and what
starting up again takes, then count as its runtime. A pause counts as held work from there.
"""

from dataclasses import dataclass, replace

from greensched_core import labels
from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.holding.hold_requests import HoldRequest
from greensched_operator.holding.holding import (
    HoldTerms,
    NotHeld,
    StartLimit,
    Unheld,
    expected_runtime,
    margin_s,
    next_run_bound,
)
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import GreenPolicy
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work, WorkKind

RESUME_S = 60.0  # of work without a JobPowerProfile: an image is there, a model is loaded again
_LEAST_S = 1e-9
_BY_HAND = (ReleaseReason.OTHERS, ReleaseReason.OPT_OUT, ReleaseReason.RUN_NOW)


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a Job has come that may be suspended; by our clock, in seconds."""

    done_s: float = 0.0  # of its runtime, in all run segments so far
    pauses: int = 0
    paused_at_s: float = 0.0  # since the epoch, the last time

    def annotations(self) -> dict[str, str]:
        """Return what is written on a Job."""
        return {
            labels.WORK_DONE: f"{int(self.done_s)}s",
            labels.PAUSES: str(self.pauses),
            labels.PAUSED_AT: format_timestamp(round(self.paused_at_s, 3)),
        }


def progress_of(work: Work) -> JobProgress:
    """Return what is written on a Job; what cannot be read counts as no work done."""
    said = work.annotations
    if labels.PAUSED_AT not in said:
        return JobProgress()
    try:
        done_s = parse_duration(said.get(labels.WORK_DONE, "0s"))
    except BadInput:
        done_s = 0.0
    pauses = said.get(labels.PAUSES, "")
    return JobProgress(
        done_s, int(pauses) if pauses.isdecimal() else 1, _time(said[labels.PAUSED_AT])
    )


def _time(text: str) -> float:
    try:
        return parse_timestamp(text)
    except BadInput:
        return 0.0  # long ago: it may be resumed at once


def may_pause(work: Work, hold_request: HoldRequest) -> bool:
    """Tell whether a Job asks to be suspended where that saves, and nobody else sees to that.

    Whoever resumed it by hand, or took our mark off it, is not fought. Without a deadline nobody
    said how long it may take.
    """
    return (
        work.kind == WorkKind.JOB
        and work.is_ours
        and (work.is_stopped or not work.is_marked)  # else another's start of it is not told yet
        and not work.gang
        and hold_request.is_checkpointable
        and hold_request.deadline_s is not None
        and not hold_request.faults
        and not hold_request.run_now
        and work.annotations.get(labels.RELEASE_REASON) not in _BY_HAND
    )


def with_pauses(terms: HoldTerms, resume_s: float) -> HoldTerms:
    """Return the terms of work that may be suspended, each time for that long a start-up.

    All restarts together take no longer than the work, as in the simulator.
    """
    most = terms.runtime_s / max(resume_s, _LEAST_S)
    return replace(terms, restart_s=resume_s, most_restarts=most)


def resume_terms(
    work: Work,
    hold_request: HoldRequest,
    policy: GreenPolicy,
    cron_job: CronJob | None,
    progress: JobProgress,
    resume_s: float,
) -> HoldTerms | NotHeld:
    """Return until when a Job that is suspended at `progress.paused_at_s` may stay so.

    Its start-up, what is left of its runtime and the margin of all of it end before the deadline.
    """
    if not may_pause(work, hold_request) or hold_request.deadline_s is None:
        text = "its annotations have changed and no longer allow a pause"
        return NotHeld(Unheld.RUN_NOW if hold_request.run_now else Unheld.NO_REQUEST, text)
    whole_s, runtime_from = expected_runtime(hold_request, policy, cron_job)
    left_s = max(whole_s - progress.done_s, 0.0) + resume_s
    takes_s = left_s + margin_s(policy, whole_s)
    bounds = [
        (hold_request.deadline_s - takes_s, StartLimit.DEADLINE),
        (progress.paused_at_s + policy.longest_hold_s, StartLimit.LONGEST_HOLD),
        *next_run_bound(hold_request, cron_job, takes_s),
    ]
    latest_s, bound = min(bounds)
    from_s = min(progress.paused_at_s + least_pause_s(work, policy), latest_s)
    terms = HoldTerms(
        from_s, latest_s, bound, hold_request.deadline_s, max(left_s, 1.0), runtime_from
    )
    most = max(whole_s / max(resume_s, _LEAST_S) - progress.pauses, 0.0)
    return replace(terms, restart_s=resume_s, most_restarts=most)


def least_pause_s(work: Work, policy: GreenPolicy) -> float:
    """Return how long a Job is suspended at least: its pods need that long to end, too."""
    return max(policy.pause.minimum_pause_s, work.grace_s)
