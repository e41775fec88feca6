"""Decides which Jobs may be paused while they run, and when they must resume: pure.

Annotations store a Job's progress when it is suspended. Its remaining runtime plus its start-up
time then count as its runtime. From then on a paused Job counts as held work.
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
    longest_run_s,
    margin_s,
    next_run_bound,
)
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import GreenPolicy
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work, WorkKind
from greensched_policies.planning.resuming import left_work_s, restarts_left, resumed_run_s

RESUME_MARGIN_S = 60.0  # without a JobPowerProfile: the image is there, a model is loaded again
_BY_HAND = (ReleaseReason.OTHERS, ReleaseReason.OPT_OUT, ReleaseReason.RUN_NOW)


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a Job that may be suspended; by our clock, in seconds."""

    done_s: float = 0.0  # the part of its runtime that all run segments so far have done
    pauses: int = 0
    paused_at_s: float = 0.0  # the last pause, since the epoch

    def annotations(self) -> dict[str, str]:
        """Return the annotations that store the progress on a Job."""
        return {
            labels.WORK_DONE: f"{int(self.done_s)}s",
            labels.PAUSES: str(self.pauses),
            labels.PAUSED_AT: format_timestamp(round(self.paused_at_s, 3)),
        }


def progress_of(work: Work) -> JobProgress:
    """Return the progress in a Job's annotations; one that cannot be read counts as no progress."""
    annotations = work.annotations
    if labels.PAUSED_AT not in annotations:
        return JobProgress()
    try:
        done_s = parse_duration(annotations.get(labels.WORK_DONE, "0s"))
    except BadInput:
        done_s = 0.0
    pauses = annotations.get(labels.PAUSES, "")
    return JobProgress(
        done_s, int(pauses) if pauses.isdecimal() else 1, _time(annotations[labels.PAUSED_AT])
    )


def _time(text: str) -> float:
    try:
        return parse_timestamp(text)
    except BadInput:
        return 0.0  # long ago: it may be resumed immediately


def may_pause(work: Work, hold_request: HoldRequest) -> bool:
    """Return whether a Job asks for pauses and only we control its suspension.

    A Job is not paused again after a user resumed it or removed our mark. Without a deadline there
    is no limit for its pauses, so it is not paused either.
    """
    return (
        work.kind == WorkKind.JOB
        and work.is_ours
        and (work.is_stopped or not work.is_marked)  # else a start by others is not yet reported
        and not work.gang
        and hold_request.is_checkpointable
        and hold_request.deadline_s is not None
        and not hold_request.faults
        and not hold_request.run_now
        and work.annotations.get(labels.RELEASE_REASON) not in _BY_HAND
    )


def with_pauses(terms: HoldTerms, resume_s: float) -> HoldTerms:
    """Return the terms of work that may be paused, with a start-up of `resume_s` per pause.

    All restarts together take no longer than the work, as in the simulator.
    """
    most = restarts_left(terms.runtime_s, resume_s, 0.0)
    return replace(terms, restart_s=resume_s, most_restarts=most)


def resume_terms(
    work: Work,
    hold_request: HoldRequest,
    policy: GreenPolicy,
    cron_job: CronJob | None,
    progress: JobProgress,
    resume_s: float,
    slowest_speed: float = 1.0,
) -> HoldTerms | NotHeld:
    """Return the terms of a Job that is suspended at `progress.paused_at_s`.

    Its start-up, its remaining runtime and the margin of its whole runtime end before the deadline,
    on the slowest node too.
    """
    if not may_pause(work, hold_request) or hold_request.deadline_s is None:
        text = "its annotations have changed and no longer allow a pause"
        return NotHeld(Unheld.RUN_NOW if hold_request.run_now else Unheld.NO_REQUEST, text)
    whole_s, runtime_from, error = expected_runtime(hold_request, policy, cron_job)
    left_s = left_work_s(whole_s, progress.done_s, resume_s)
    longest_s = longest_run_s(whole_s, runtime_from, slowest_speed)
    takes_s = resumed_run_s(left_s, whole_s, longest_s, margin_s(policy, longest_s, error))
    bounds = [
        (hold_request.deadline_s - takes_s, StartLimit.DEADLINE),
        (progress.paused_at_s + policy.longest_hold_s, StartLimit.LONGEST_HOLD),
        *next_run_bound(hold_request, cron_job, takes_s),
    ]
    latest_s, bound = min(bounds)
    from_s = min(progress.paused_at_s + least_pause_s(work, policy), latest_s)
    terms = HoldTerms(
        from_s, latest_s, bound, hold_request.deadline_s, max(left_s, 1.0), runtime_from, error
    )
    most = restarts_left(whole_s, resume_s, progress.pauses)
    return replace(terms, restart_s=resume_s, most_restarts=most)


def least_pause_s(work: Work, policy: GreenPolicy) -> float:
    """Return the shortest pause of a Job, in seconds: its pods need their grace period to end."""
    return max(policy.pause.minimum_pause_s, work.grace_s)
