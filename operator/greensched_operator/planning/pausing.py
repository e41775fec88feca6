"""Chooses which running Jobs are suspended now, and until when: pure, given the plan of all else.

`greensched_policies.planning.slot_planning` chooses the slots in which a Job runs at the least
cost. A Job that does not run in the current slot is suspended until the first slot in which it
does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from greensched_operator.holding.holding import NotHeld, hold_terms
from greensched_operator.holding.judging import HoldRules, MayWait, hold_request_of
from greensched_operator.holding.pause_terms import (
    JobProgress,
    least_pause_s,
    progress_of,
    resume_terms,
)
from greensched_operator.objects.green_policy import Mode
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import RunningPod
from greensched_operator.planning.outlooks import slot_begin
from greensched_operator.planning.situation import Planned, Situation, jitter_of
from greensched_operator.planning.start_planning import core_plan, interruptible, needs_of
from greensched_policies.costs.quiet_spans import may_start
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.held_start import fits_share
from greensched_policies.planning.planning import Thresholds
from greensched_policies.planning.resuming import done_work_s
from greensched_policies.planning.slot_planning import plan_slots

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class JobRunSegment:
    """A running Job: its zone, and how long all of its pods have run."""

    work: Work
    ran_s: float  # since it was started or resumed, by our clock
    zone: str
    pods: tuple[RunningPod, ...] = ()  # the Job's pods; it may reuse their cores


@dataclass(frozen=True, slots=True)
class Pause:
    """A Job to suspend now."""

    planned: Planned  # its plan while suspended; the planned start is when to resume it
    progress: JobProgress


def choose_pauses(
    run_segments: Sequence[JobRunSegment],
    rules: HoldRules,
    situation: Situation,
    held_cores: float,
) -> list[Pause]:
    """Return the Jobs to suspend now; Jobs with the earliest latest start are decided first.

    A Job is not suspended if it has run too briefly, if the pause saves less than its policy
    requires, or if the pause would be shorter than the policy's minimum. Held work, which already
    requests `held_cores`, stays within the policy's share of the cluster's cores.
    """
    if rules.is_emergency_release:
        return []
    looked_at = (_looked_at(each, rules, situation) for each in run_segments)
    candidates = [each for each in looked_at if each is not None]
    if not candidates:
        return []
    plan, found = core_plan(situation), list[Pause]()
    cluster_cores = sum(zone.cpu_cores for zone in situation.zones)
    for run_segment, waiting, progress in sorted(candidates, key=_latest_s):
        cores = waiting.work.cpu_cores
        if not fits_share(held_cores + cores, waiting.policy.max_held_share * cluster_cores):
            continue
        planned = _suspended(run_segment, waiting, plan, situation)
        if planned is not None:
            held_cores += cores
            found.append(Pause(planned, progress))
    return found


Candidate = tuple[JobRunSegment, MayWait, JobProgress]


def _latest_s(candidate: Candidate) -> float:
    return candidate[1].terms.latest_start_s


def _looked_at(
    run_segment: JobRunSegment, rules: HoldRules, situation: Situation
) -> Candidate | None:
    """Return `_candidate` of a Job; a Job that raises an unexpected exception keeps running."""
    try:
        return _candidate(run_segment, rules, situation)
    except Exception:
        work = run_segment.work
        log.exception(
            "a running workload could not be judged; it runs on",
            work=f"{work.namespace}/{work.name}",
        )
        return None


def _candidate(
    run_segment: JobRunSegment, rules: HoldRules, situation: Situation
) -> Candidate | None:
    """Return a Job with its terms while suspended; None if it may not be suspended now."""
    work, now_s = run_segment.work, situation.now_s
    hold_request, cron_job = hold_request_of(work, rules)
    policy = rules.policy_for(work.namespace, hold_request.policy).policy
    if policy.mode != Mode.ENFORCE or run_segment.ran_s < policy.pause.minimum_run_s:
        return None
    slowest = rules.slowest_speed(work.gpus)
    terms = hold_terms(hold_request, policy, cron_job, slowest)
    if isinstance(terms, NotHeld):
        return None
    profile = rules.profile(work.namespace, hold_request.power_profile)
    resume_s, so_far = rules.resume_s(profile), progress_of(work)
    starting_s = resume_s if so_far.pauses else 0.0  # no work is done while it restarts
    speed = _speed(run_segment.zone, work, situation)
    done_s = done_work_s(so_far.done_s, run_segment.ran_s, speed, starting_s)
    saved_s = done_s if profile is None else profile.saved_s(done_s)
    progress = JobProgress(saved_s, so_far.pauses + 1, now_s)
    terms = resume_terms(work, hold_request, policy, cron_job, progress, resume_s, slowest)
    if isinstance(terms, NotHeld) or terms.latest_start_s < now_s + least_pause_s(work, policy):
        return None
    terms = replace(
        terms,
        pod_power_w=None if profile is None else profile.mean_power_w(saved_s),
        restart_s=resume_s + done_s - saved_s,  # work that no checkpoint has saved is repeated
        most_restarts=terms.most_restarts + 1.0,  # the pause that is decided here is one of them
    )
    return run_segment, MayWait(work, terms, policy), progress


def _speed(name: str, work: Work, situation: Situation) -> float:
    """Return how many seconds of its expected runtime a workload does in a second of a zone."""
    speeds = zip(situation.zones, situation.speeds(work), strict=True)
    return next((speed for zone, speed in speeds if zone.name == name and speed), 1.0)


def _suspended(
    run_segment: JobRunSegment, waiting: MayWait, plan: CorePlan, situation: Situation
) -> Planned | None:
    """Return the plan of a Job that is better suspended, and keep its cores in `plan`; or None."""
    names = [zone.name for zone in situation.zones]
    if run_segment.zone not in names:
        return None
    zone, terms, outlook = names.index(run_segment.zone), waiting.terms, situation.outlooks.outlook
    begin_s, restart_s = slot_begin(situation.now_s), terms.restart_s or 0.0
    own = [
        (max(pod.until_s, begin_s + outlook.slot_s), pod.cpu_cores, pod.gpus, pod.memory_bytes)
        for pod in run_segment.pods
    ]
    for until_s, *needs in own:
        plan.keep(zone, situation.now_s, until_s, *(-each for each in needs))
    # If it keeps running, it does not restart.
    running = replace(terms, runtime_s=max(terms.runtime_s - restart_s, 1.0))
    work = replace(
        interruptible(replace(waiting, terms=running), situation),
        latest_s=terms.latest_start_s + restart_s,
        from_s=terms.start_from_s,  # its budget was spent when it first started
        running_in=zone,
        kept_start_s=None,
    )
    thresholds = Thresholds(least_saving=waiting.policy.least_saving)
    answer = plan_slots(outlook, plan, work, begin_s, thresholds=thresholds)
    start_s = begin_s if answer is None else answer.chosen.start_s
    if answer is None or start_s <= situation.now_s or not _may_resume(start_s, waiting, situation):
        for until_s, *needs in own:
            plan.keep(zone, situation.now_s, until_s, *needs)
        return None
    for run_segment_s in answer.run_segments:
        plan.keep(zone, *run_segment_s, *needs_of(waiting.work))
    resume_s = min(start_s + jitter_of(waiting, situation.jitter_s), terms.latest_start_s)
    resume_s = waiting.policy.quiet_hours.next_allowed(resume_s)
    return Planned(
        waiting, min(resume_s, terms.latest_start_s), answer.chosen, run_segment.zone,
        run_segment.zone, is_now=False, at_arrival_g=answer.chosen.run_now.carbon_g,
        run_segments=answer.run_segments,
    )  # fmt: skip


def _may_resume(start_s: float, waiting: MayWait, situation: Situation) -> bool:
    """Return whether work would be resumed in time, and in no quiet hours of its policy."""
    quiet = waiting.policy.quiet_hours.spans_ahead(situation.now_s)
    if not may_start(start_s, situation.outlooks.outlook.slot_s, start_s, *quiet):
        return False
    return waiting.terms.start_from_s <= start_s <= waiting.terms.latest_start_s
