"""Decides whether a workload is held, and its latest start, for both webhook and controller."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.hold_requests import HoldRequest
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import GreenPolicy, Mode
from greensched_operator.objects.workloads import Work, WorkKind
from greensched_policies.planning.lateness import error_of, longest_ratio, spare_s

LEAST_HOLD_S = 60.0  # a shorter hold costs the API server more than it can save
LEAST_MARGIN_S = 30.0  # the releaser waits 20 s (releaser_grace_s) for the controller to act first
PAST_RUNS = "past runs"
_BEFORE_NEXT_RUN_S = 60.0  # a held run starts at least that long before its CronJob's next one


class StartLimit(StrEnum):
    """What determines the latest start."""

    DEADLINE = "deadline"
    START_BY = "max-delay or window"
    DEFAULT_DELAY = "the policy's default delay"
    LONGEST_HOLD = "the policy's longest hold"
    NEXT_RUN = "its CronJob's next run"


class Unheld(StrEnum):
    """Why a workload is not held; a counter has one label value for each."""

    NO_REQUEST = "no-request"  # neither the workload nor its policy says that it may wait
    RUN_NOW = "run-now"
    BAD_ANNOTATION = "bad-annotation"
    NO_SLACK = "no-slack"  # the workload must start now to end in time
    POLICY_OFF = "policy-off"
    EMERGENCY = "emergency-release"
    NOT_OURS = "not-ours"  # something else decides when it starts


class ExpectedRuntime(NamedTuple):
    """A workload's expected runtime on a reference node, in seconds, and what it is based on."""

    runtime_s: float
    source: str  # annotation, PAST_RUNS, power profile or default
    error: float  # standard deviation of the logarithm of true over expected


@dataclass(frozen=True, slots=True)
class HoldTerms:
    """The limits of a hold and their reasons; times are seconds since the epoch."""

    start_from_s: float
    latest_start_s: float  # the workload then ends before its deadline, with a margin
    bound: StartLimit
    deadline_s: float | None
    runtime_s: float  # expected, a duration on a reference node
    runtime_from: str  # annotation, PAST_RUNS, power profile or default
    runtime_error: float = 0.0  # standard deviation of the logarithm of true over expected
    pod_power_w: float | None = None  # of a pod, above idle, by its JobPowerProfile
    restart_s: float | None = None  # the cost of a pause, a duration; None: never suspend it
    most_restarts: float = 0.0

    @property
    def spare_s(self) -> float:
        """Return the last part of the wait, in seconds, that is kept for waiting for a node."""
        return spare_s(self.latest_start_s - self.start_from_s)


@dataclass(frozen=True, slots=True)
class NotHeld:
    """Why a workload is not held: a reason for the counter, and a text for users."""

    reason: Unheld
    text: str


def hold_terms(
    hold_request: HoldRequest,
    policy: GreenPolicy,
    cron_job: CronJob | None = None,
    slowest_speed: float = 1.0,
) -> HoldTerms | NotHeld:
    """Return until when a workload may be held, or why it is not held at all.

    Mode shadow gets the same answer as enforce; only mode `off` never holds. `slowest_speed` is
    that of the slowest node, relative to a reference node: any node may get the workload.
    """
    if policy.mode == Mode.OFF:
        return NotHeld(Unheld.POLICY_OFF, f"{policy.title} has mode off")
    if hold_request.faults:
        return NotHeld(Unheld.BAD_ANNOTATION, "; ".join(hold_request.faults))
    if hold_request.run_now:
        return NotHeld(Unheld.RUN_NOW, "its annotation run-now asks for an immediate start")
    runtime_s, runtime_from, error = expected_runtime(hold_request, policy, cron_job)
    longest_s = longest_run_s(runtime_s, runtime_from, slowest_speed)
    takes_s = longest_s + margin_s(policy, longest_s, error)
    bounds = _bounds(hold_request, policy, cron_job, takes_s)
    if not bounds:
        return NotHeld(
            Unheld.NO_REQUEST, "neither the workload nor its policy says how long it may wait"
        )
    bounds.append((hold_request.arrived_s + policy.longest_hold_s, StartLimit.LONGEST_HOLD))
    latest_s, bound = min(bounds)
    start_from_s = max(hold_request.start_from_s or hold_request.arrived_s, hold_request.arrived_s)
    if start_from_s > latest_s >= hold_request.arrived_s:
        opens, last = format_timestamp(round(start_from_s)), format_timestamp(round(latest_s))
        text = f"its window opens at {opens}, but {bound} requires a start by {last}"
        return NotHeld(Unheld.NO_SLACK, text)
    if latest_s < hold_request.arrived_s + LEAST_HOLD_S:
        slack = format_duration(max(latest_s - hold_request.arrived_s, 0.0))
        text = f"{bound} leaves only {slack} to wait"
        is_alone = cron_job is not None and not cron_job.may_overlap
        if bound is StartLimit.DEADLINE or (bound is StartLimit.NEXT_RUN and is_alone):
            slow = "" if longest_s == runtime_s else ", on the slowest node"
            text += _after(longest_s, f"{runtime_from}{slow}", takes_s - longest_s, policy)
        return NotHeld(Unheld.NO_SLACK, text)
    return HoldTerms(
        start_from_s, latest_s, bound, hold_request.deadline_s, runtime_s, runtime_from, error
    )


def _after(longest_s: float, source: str, more_s: float, policy: GreenPolicy) -> str:
    """Return what work that must end in time needs after a wait."""
    runtime, margin = (format_duration(round(each)) for each in (longest_s, more_s))
    return (
        f", after {runtime} of runtime ({source}) and {margin} for the start and for longer runs, "
        f"so that {100 * policy.on_time_target:.4g} % of them end in time"
    )


def _bounds(
    hold_request: HoldRequest, policy: GreenPolicy, cron_job: CronJob | None, takes_s: float
) -> list[tuple[float, StartLimit]]:
    """Return the latest starts by request or policy; none if neither lets the workload wait.

    `takes_s` is the runtime plus margin.
    """
    bounds: list[tuple[float, StartLimit]] = []
    if hold_request.deadline_s is not None:
        bounds.append((hold_request.deadline_s - takes_s, StartLimit.DEADLINE))
    if hold_request.start_by_s is not None:
        bounds.append((hold_request.start_by_s, StartLimit.START_BY))
    if not bounds and policy.default_delay_s is not None:
        bounds.append((hold_request.arrived_s + policy.default_delay_s, StartLimit.DEFAULT_DELAY))
    return bounds + next_run_bound(hold_request, cron_job, takes_s) if bounds else bounds


def longest_run_s(runtime_s: float, runtime_from: str, slowest_speed: float) -> float:
    """Return the expected runtime on the slowest node, in seconds.

    No runtime is taken to be shorter than declared: where all nodes are faster than a reference
    node, it may have been measured on them. Past runs were.
    """
    own_s = runtime_s / slowest_speed
    return own_s if runtime_from == PAST_RUNS else max(runtime_s, own_s)


def margin_s(policy: GreenPolicy, runtime_s: float, error: float) -> float:
    """Return how long before its deadline work of an expected runtime should end, in seconds.

    It then ends in time as often as the policy asks, though it starts after a delay and its true
    runtime differs: by the runtime's error.
    """
    longer_s = runtime_s * (longest_ratio(policy.on_time_target, error) - 1.0)
    return max(policy.start_delay_s, LEAST_MARGIN_S) + longer_s


def due_s(terms: HoldTerms, policy: GreenPolicy) -> float:
    """Return when a run that begins at its start must end; infinity without a deadline."""
    if terms.deadline_s is None:
        return math.inf
    return terms.deadline_s - max(policy.start_delay_s, LEAST_MARGIN_S)


def next_run_bound(
    hold_request: HoldRequest, cron_job: CronJob | None, takes_s: float
) -> list[tuple[float, StartLimit]]:
    """Return the latest start before the CronJob's next run; nothing if there is none.

    If runs may not overlap, it also ends before the next run: `Replace` would delete it, and
    `Forbid` would skip the next run. `takes_s` is the runtime plus margin.
    """
    if cron_job is None:
        return []
    # The clock of the CronJob's controller may be ahead of the one that set `arrived_s`.
    next_s = cron_job.next_run_s(max(hold_request.arrived_s, hold_request.scheduled_s or 0.0))
    if next_s is None:
        return []
    before_s = _BEFORE_NEXT_RUN_S if cron_job.may_overlap else max(takes_s, _BEFORE_NEXT_RUN_S)
    return [(next_s - before_s, StartLimit.NEXT_RUN)]


def not_ours(work: Work) -> str:
    """Return why a Job's `suspend` must not be used: another controller writes it; else ""."""
    if work.kind != WorkKind.JOB or work.is_ours or work.queue_gates is not None:
        return ""
    by = f"{work.owner.kind} {work.owner.name}" if work.owner else "another controller"
    return f"{by} controls its suspend field; to delay it, submit it through a Kueue queue"


def expected_runtime(
    hold_request: HoldRequest, policy: GreenPolicy, cron_job: CronJob | None
) -> ExpectedRuntime:
    """Return a workload's expected runtime, its source, and its error.

    Past runs show their own error; that of the others is the policy's.
    """
    if hold_request.runtime_s is not None:
        return ExpectedRuntime(hold_request.runtime_s, "annotation", policy.runtime_error)
    learned_s = cron_job.learned_runtime_s if cron_job is not None else None
    if cron_job is not None and learned_s is not None:
        error = error_of(cron_job.runtimes_s, policy.runtime_error)
        return ExpectedRuntime(learned_s, PAST_RUNS, error)
    if hold_request.profile_runtime_s is not None:
        return ExpectedRuntime(
            hold_request.profile_runtime_s, "power profile", policy.runtime_error
        )
    return ExpectedRuntime(policy.default_runtime_s, "default", policy.runtime_error)
