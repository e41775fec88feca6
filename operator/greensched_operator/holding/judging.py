"""Judges one held workload, independently of others: it starts now, or may wait for a plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from greensched_core import labels
from greensched_core.quoting import quoted
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.hold_requests import HoldRequest, read_hold_request, read_runtime_s
from greensched_operator.holding.holding import (
    HoldTerms,
    NotHeld,
    Unheld,
    expected_runtime,
    hold_terms,
)
from greensched_operator.holding.pause_terms import (
    RESUME_MARGIN_S,
    may_pause,
    progress_of,
    resume_terms,
    with_pauses,
)
from greensched_operator.objects.cron_jobs import CronJob, with_cron_job
from greensched_operator.objects.green_policy import GreenPolicy, Mode, Resolved
from greensched_operator.objects.job_power_profile import JobPowerProfile
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work

_REASONS = {
    Unheld.NO_REQUEST: ReleaseReason.OPT_OUT,
    Unheld.RUN_NOW: ReleaseReason.RUN_NOW,
    Unheld.BAD_ANNOTATION: ReleaseReason.OPT_OUT,
    Unheld.NO_SLACK: ReleaseReason.LATEST_START,
    Unheld.POLICY_OFF: ReleaseReason.POLICY,
    Unheld.EMERGENCY: ReleaseReason.EMERGENCY,
}


@dataclass(frozen=True, slots=True)
class HoldRules:
    """The rules for all workloads at one time."""

    policy_for: Callable[[str, str], Resolved]  # namespace, and the policy's name or ""
    cron_job: Callable[[str, str], CronJob | None]  # namespace, name
    is_emergency_release: bool = False
    # By namespace and a JobPowerProfile's name or "".
    profile: Callable[[str, str], JobPowerProfile | None] = lambda namespace, name: None
    default_resume_s: float = RESUME_MARGIN_S  # start-up of a resumed run without a profile
    # Of the nodes that may get work with so many GPUs, relative to a reference node.
    slowest_speed: Callable[[float], float] = lambda gpus: 1.0

    def resume_s(self, profile: JobPowerProfile | None) -> float:
        """Return the start-up time of a resumed run with a JobPowerProfile, or without one."""
        return self.default_resume_s if profile is None else profile.resume_s

    def profile_runtime_s(self, namespace: str, name: str) -> float | None:
        """Return the runtime by a JobPowerProfile, in seconds; None if there is none."""
        profile = self.profile(namespace, name)
        return None if profile is None else profile.runtime_s


@dataclass(frozen=True, slots=True)
class ReleaseNow:
    """A workload to start now, and why."""

    work: Work
    reason: ReleaseReason
    text: str
    decision: Mapping[str, object] | None = None  # if planning chose to start it now


@dataclass(frozen=True, slots=True)
class MayWait:
    """A workload that may wait: its terms and its policy."""

    work: Work
    terms: HoldTerms
    policy: GreenPolicy
    policy_fault: str = ""  # why the policy it names does not apply


def arrived_s(work: Work) -> float:
    """Return when a workload was created: the webhook's time, else the API server's."""
    held_s = work.marks.held_s
    return work.created_s or 0.0 if held_s is None else held_s


def terms_of(
    work: Work, rules: HoldRules, seen_s: float = float("inf")
) -> tuple[HoldTerms | NotHeld, Resolved]:
    """Return a workload's hold terms by its current annotations, and its policy.

    `seen_s` is an upper limit of the arrival time, in case the webhook's clock was fast.
    """
    hold_request, cron_job = hold_request_of(work, rules, seen_s)
    resolved = rules.policy_for(work.namespace, hold_request.policy)
    profile = rules.profile(work.namespace, hold_request.power_profile)
    resume_s, progress = rules.resume_s(profile), progress_of(work)
    policy, speed = resolved.policy, rules.slowest_speed(work.gpus)
    if work.is_paused:
        terms = resume_terms(work, hold_request, policy, cron_job, progress, resume_s, speed)
    else:
        terms = hold_terms(hold_request, policy, cron_job, speed)
        if isinstance(terms, HoldTerms) and may_pause(work, hold_request):
            terms = with_pauses(terms, resume_s)
    if profile is not None and isinstance(terms, HoldTerms):
        terms = replace(terms, pod_power_w=profile.mean_power_w(progress.done_s))
    return terms, resolved


def hold_request_of(
    work: Work, rules: HoldRules, seen_s: float = float("inf")
) -> tuple[HoldRequest, CronJob | None]:
    """Return the hold request of a workload and its CronJob, and that CronJob if there is one.

    `seen_s` is an upper limit of the arrival time, in case the webhook's clock was fast.
    """
    return hold_request_at(work, rules, min(arrived_s(work), seen_s))


def hold_request_at(
    work: Work, rules: HoldRules, at_s: float
) -> tuple[HoldRequest, CronJob | None]:
    """Return the hold request of a workload that arrives at a time, as `hold_request_of`."""
    annotations, cron_job = with_cron_job(work, work.namespace, rules.cron_job)
    request = read_hold_request(annotations, at_s, work.scheduled_s)
    if request.power_profile:
        found_s = rules.profile_runtime_s(work.namespace, request.power_profile)
        request = replace(request, profile_runtime_s=found_s)
    return request, cron_job


def left_to_run_s(work: Work, rules: HoldRules, speed: float = 1.0) -> float:
    """Return the expected remaining runtime of running work, in seconds, as planning uses it.

    `speed` is its node's. Work done before a pause is subtracted.
    """
    annotations, cron_job = with_cron_job(work, work.namespace, rules.cron_job)
    policy = rules.policy_for(work.namespace, annotations.get(labels.POLICY, "")).policy
    name = annotations.get(labels.POWER_PROFILE, "")
    hold_request = HoldRequest(  # reading a whole request takes four times as long
        0.0,
        runtime_s=read_runtime_s(annotations),
        profile_runtime_s=rules.profile_runtime_s(work.namespace, name),
    )
    expected = expected_runtime(hold_request, policy, cron_job)
    return max(expected.runtime_s - progress_of(work).done_s, 0.0) / speed


def judge(work: Work, rules: HoldRules, now_s: float) -> ReleaseNow | MayWait:
    """Return whether held work starts now or may wait, at `now_s`."""
    if rules.is_emergency_release:
        return ReleaseNow(work, ReleaseReason.EMERGENCY, "the cluster's emergency release is on")
    terms, resolved = terms_of(work, rules, now_s)
    if isinstance(terms, NotHeld):
        return ReleaseNow(work, _REASONS[terms.reason], terms.text)
    if resolved.policy.mode != Mode.ENFORCE:
        return ReleaseNow(
            work,
            ReleaseReason.POLICY,
            f"{resolved.policy.title} has mode {resolved.policy.mode}, which holds nothing",
        )
    if now_s >= terms.latest_start_s:
        return at_its_latest(work, terms)
    return MayWait(work, terms, resolved.policy, resolved.fault or "")


def profile_fault(work: Work, rules: HoldRules) -> str:
    """Return why the JobPowerProfile that a workload names does not count; "" if it does."""
    annotations, _ = with_cron_job(work, work.namespace, rules.cron_job)
    name = annotations.get(labels.POWER_PROFILE, "")
    if not name or rules.profile(work.namespace, name) is not None:
        return ""
    return (
        f"the JobPowerProfile {quoted(name)} is missing in namespace {work.namespace}, or its "
        "condition Accepted says what is wrong with it; so the plan takes the power of the cores "
        "and GPUs requested"
    )


def at_its_latest(work: Work, terms: HoldTerms) -> ReleaseNow:
    """Return the release of work whose latest start has come."""
    latest = f"{format_timestamp(round(terms.latest_start_s))} ({terms.bound})"
    return ReleaseNow(work, ReleaseReason.LATEST_START, f"its latest start has come: {latest}")
