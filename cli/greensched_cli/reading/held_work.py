"""Describes held work from its annotations and the policies that could be read; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from greensched_core import labels
from greensched_core.durations import format_duration
from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.holding.hold_requests import read_hold_request
from greensched_operator.holding.holding import HoldTerms
from greensched_operator.holding.judging import HoldRules, arrived_s, terms_of
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import GreenPolicy, Resolved, resolve
from greensched_operator.objects.workloads import Work, WorkKind


class PlanDecision(msgspec.Struct, frozen=True):
    """The annotation greensched.io/decision, which the operator writes with a plan."""

    why: str = ""
    saving: float | None = None  # share of the weighted cost of starting when it was planned
    carbonChange: float | None = None  # of the whole run, as a share of a run at that time
    costChange: float | None = None
    zone: str = ""
    carbonGramsPerKwh: tuple[float | None, float | None] = (None, None)  # as planned, if run now
    pricePerMwh: tuple[float | None, float | None] = (None, None)
    runtime: str = ""
    policy: str = ""
    lateChance: float | None = None  # that it ends after its deadline


@dataclass(frozen=True, slots=True)
class HeldWork:
    """One held Job or pod; times in seconds since the epoch, None if unknown."""

    work: Work
    held_s: float | None
    planned_s: float | None
    latest_s: float | None
    deadline_s: float | None
    bound: str  # the limit that sets the latest start, "" if unknown
    runtime: str  # with the source of the estimate, "" if unknown
    policy: str
    reason: str  # as the operator or the webhook wrote it
    decision: PlanDecision | None
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return how it is named on the command line."""
        return short_name(self.work)

    def is_overdue(self, now_s: float, grace_s: float = 0.0) -> bool:
        """Return whether its latest start passed `grace_s` ago; true if that is unknown."""
        return self.latest_s is None or now_s - self.latest_s > grace_s


@dataclass(frozen=True, slots=True)
class ReleasedWork:
    """One Job or pod that was held, and was started."""

    work: Work
    at_s: float | None
    reason: str
    held_s: float | None

    @property
    def name(self) -> str:
        """Return how it is named on the command line."""
        return short_name(self.work)


@dataclass(frozen=True, slots=True)
class HoldSurroundings:
    """The policies and CronJobs that decide on holds; empty if they could not be read."""

    policies: Mapping[tuple[str, str], GreenPolicy]
    cron_jobs: Mapping[tuple[str, str], CronJob]
    operator_namespace: str
    knows_policies: bool
    refusals: Mapping[str, str] = field(default_factory=dict)  # policy title: why not followed

    def policy_for(self, namespace: str, name: str = "") -> Resolved:
        """Return the policy of work in a namespace; `name` is the policy it names, if any."""
        return resolve(self.policies, namespace, name, self.operator_namespace)

    @property
    def rules(self) -> HoldRules:
        """Return these as the rules that the operator's functions take."""
        return HoldRules(self.policy_for, lambda *name: self.cron_jobs.get(name))


def short_name(work: Work) -> str:
    """Return `job/NAME`, `pod/NAME`, or `workload/NAME` for a Job in a queue of Kueue."""
    return f"{work.kind.lower()}/{work.name}"


def is_ours_to_start(work: Work) -> bool:
    """Return whether we hold the work, even if our mark was removed.

    A Job that others have suspended is never ours, even if we held it once.
    """
    if not work.is_barred or work.is_finished or work.is_leaving:
        return False
    was_ours = labels.HELD_AT in work.annotations and labels.RELEASED_AT not in work.annotations
    return work.is_marked or work.kind == WorkKind.POD or bool(work.queue_gates) or was_ours


def is_released(work: Work) -> bool:
    """Return whether work was held and started again."""
    return labels.RELEASED_AT in work.annotations and not is_ours_to_start(work)


def read_held(work: Work, around: HoldSurroundings) -> HeldWork:
    """Return the details of held work; anything unreadable becomes one of its faults."""
    annotations, faults = work.annotations, list[str]()
    terms, resolved = terms_of(work, around.rules)
    known = terms if isinstance(terms, HoldTerms) and around.knows_policies else None
    if labels.LATEST_START not in annotations:
        faults.append(f"{labels.LATEST_START} was removed, so the releaser ignores this work")
    hold_request = read_hold_request(annotations, arrived_s(work))
    faults += hold_request.faults
    if around.knows_policies and resolved.fault:
        faults.append(resolved.fault)
    decision = _decision(annotations.get(labels.DECISION), faults)
    runtime = decision.runtime if decision else ""
    if not runtime and known:
        runtime = f"{format_duration(known.runtime_s)} ({known.runtime_from})"
    return HeldWork(
        work=work,
        held_s=_stopped_s(work, faults) or None,
        planned_s=_time(annotations, labels.PLANNED_START, faults),
        latest_s=_time(annotations, labels.LATEST_START, faults),
        deadline_s=known.deadline_s if known else hold_request.deadline_s,
        bound=known.bound if known else "",
        runtime=runtime,
        policy=_policy(decision, resolved, around),
        reason=annotations.get(labels.HOLD_REASON, ""),
        decision=decision,
        faults=tuple(faults),
    )


def _stopped_s(work: Work, faults: list[str]) -> float | None:
    """Return when work began to wait: at its pause, if it ran before."""
    return _time(work.annotations, labels.PAUSED_AT, faults) if work.is_paused else arrived_s(work)


def read_released(work: Work) -> ReleasedWork:
    """Return when and why work was started."""
    annotations = work.annotations
    at_s, held_s = (_time(annotations, name, []) for name in (labels.RELEASED_AT, labels.HELD_AT))
    return ReleasedWork(work, at_s, annotations.get(labels.RELEASE_REASON, ""), held_s)


def _policy(decision: PlanDecision | None, resolved: Resolved, around: HoldSurroundings) -> str:
    if around.knows_policies:
        return resolved.policy.title
    return decision.policy if decision else ""


def _time(annotations: Mapping[str, str], name: str, faults: list[str]) -> float | None:
    text = annotations.get(name)
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except BadInput as fault:
        faults.append(f"{name}: {fault}")
        return None


def _decision(text: str | None, faults: list[str]) -> PlanDecision | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=PlanDecision)
    except (msgspec.DecodeError, UnicodeEncodeError) as fault:
        faults.append(f"{labels.DECISION}: {fault}")
        return None
