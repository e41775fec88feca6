"""Metrics of the controller; labels are aggregate, never a workload."""

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from greensched_operator.holding.holding import Unheld
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.runtime.metrics import from_zero, heartbeat, watch_age
from greensched_policies.learned.guard import FallbackReason

_PREFIX = "greensched_operator"
_LATENESS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_NOT_BY_CONTROLLER = {ReleaseReason.RELEASER, ReleaseReason.UNINSTALL, ReleaseReason.OTHERS}


class PauseOutcome(StrEnum):
    """What became of a running Job that may be paused."""

    PUT_OFF = "put-off"  # too many run: a later planning looks at it
    TOO_LATE = "too-late"  # when the pause was to be written, it was no longer worth it
    REFUSED = "refused"  # by the API server
    PAUSED = "paused"


class WriteKind(StrEnum):
    """What the controller writes to the API server."""

    RELEASE = "release"
    UNMARK = "unmark"  # removes the mark of work that others started
    PLAN = "plan"
    PAUSE = "pause"
    CONDITION = "condition"
    EVENT = "event"
    RUNTIMES = "runtimes"  # of a CronJob's last runs


class ControllerError(StrEnum):
    """What failed in the controller, which went on without it."""

    ARRIVAL_FAILED = "arrival-failed"  # a report on new work is lost
    TURN_FAILED = "turn-failed"  # the next turn tries again
    PLANNING_FAILED = "planning-failed"  # the plan of before counts
    PAUSING_FAILED = "pausing-failed"  # running work goes on
    PLACEMENT_NOT_RECORDED = "placement-not-recorded"
    BUDGETS_NOT_RECALLED = "budgets-not-recalled"  # they begin at zero until it succeeds
    BUDGETS_NOT_KEPT = "budgets-not-kept"  # after a failover they begin at an earlier use


class ControllerMetrics:
    """Metrics of the controller; only the leader's change."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.leading = self._gauge("leading", "1 while this replica leads.")
        self.heartbeat = heartbeat(self.registry)
        self.watch_age = watch_age(self.registry)
        self.held = self._gauge("held_workloads", "Workloads held now.", "namespace")
        self.held_cores = self._gauge("held_cpu_cores", "CPU cores that held work asks for.")
        released = self._counter("released", "Workloads started, by reason.", "reason")
        self.released = from_zero(released, _reasons_but(ReleaseReason.RESUMED))
        pauses = self._counter("pauses", "Running Jobs chosen for a pause, by outcome.", "outcome")
        self.pauses = from_zero(pauses, PauseOutcome)
        resumed = self._counter("resumed", "Paused Jobs started again, by reason.", "reason")
        self.resumed = from_zero(resumed, _reasons_but(ReleaseReason.PLANNED_START))
        unheld = self._counter("not_held", "Workloads that were not held, by reason.", "reason")
        self.unheld = from_zero(unheld, Unheld)
        self.plans = self._counter("plan_changes", "Planned starts written to the API server.")
        self.replan_s = Histogram(
            f"{_PREFIX}_replan_seconds", "Seconds to plan all held work once.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0), registry=self.registry,
        )  # fmt: skip
        self.lateness_s = Histogram(
            f"{_PREFIX}_release_lateness_seconds",
            "Seconds from a planned start to the moment the API server had started the work.",
            buckets=_LATENESS_S, registry=self.registry,
        )  # fmt: skip
        writes = self._counter("api_writes", "Writes to the API server, by kind.", "kind")
        self.writes = from_zero(writes, WriteKind)
        failed = self._counter("api_failures", "API writes that failed, by kind.", "kind")
        self.failed = from_zero(failed, WriteKind)
        errors = self._counter(
            "controller_errors", "Controller errors handled by a fallback, by reason.", "reason"
        )
        self.fallbacks = from_zero(errors, (*ControllerError, *FallbackReason))
        self.unreadable = self._counter(
            "unreadable_workloads", "Jobs and pods that could not be decoded."
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, labels, registry=self.registry)


def _reasons_but(other: ReleaseReason) -> list[ReleaseReason]:
    """Return the reasons for which the controller starts work, without another one."""
    return [each for each in ReleaseReason if each not in {*_NOT_BY_CONTROLLER, other}]
