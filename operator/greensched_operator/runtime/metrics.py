"""Metrics of the operator's processes; labels are aggregate, never a workload."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from greensched_core.connections import Refusal

_PREFIX = "greensched"
_ADMISSION_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
_LATENESS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


def _watch_age(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        f"{_PREFIX}_operator_watch_age_seconds",
        "Seconds for which the watch of a resource may have missed changes; 0 while it watches.",
        ["resource"],
        registry=registry,
    )


def _heartbeat(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        f"{_PREFIX}_operator_heartbeat",
        "1 while this replica's last sign of life is less than 60 seconds old, so that the webhook "
        "may hold work. Controller and releaser share the name: one of them is enough.",
        registry=registry,
    )


class WebhookMetrics:
    """Metrics of the webhook."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.reviews = Counter(
            f"{_PREFIX}_webhook_reviews",
            "Workloads reviewed at creation, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            f"{_PREFIX}_webhook_seconds",
            "Time from a review's last byte to its answer.",
            buckets=_ADMISSION_S,
            registry=self.registry,
        )
        self.watch_age = _watch_age(self.registry)
        self._refused = Counter(
            f"{_PREFIX}_webhook_refused_connections",
            "Connections closed because they exceeded a limit, by limit.",
            ["reason"],
            registry=self.registry,
        )
        for reason in Refusal:
            self._refused.labels(reason)

    def refused(self, why: Refusal) -> None:
        """Count a connection that was closed because it exceeded a limit."""
        self._refused.labels(why).inc()


class ControllerMetrics:
    """Metrics of the controller; only the leader's change."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.leading = self._gauge("leading", "1 while this replica leads.")
        self.heartbeat = _heartbeat(self.registry)
        self.watch_age = _watch_age(self.registry)
        self.held = self._gauge("held_workloads", "Workloads held now.", "namespace")
        self.held_cores = self._gauge("held_cpu_cores", "CPU cores that held work asks for.")
        self.released = self._counter("released", "Workloads started, by reason.", "reason")
        self.pauses = self._counter(
            "pauses", "Running Jobs chosen for a pause, by outcome.", "outcome"
        )
        self.resumed = self._counter("resumed", "Paused Jobs started again, by reason.", "reason")
        self.unheld = self._counter(
            "not_held", "Workloads that were not held, by reason.", "reason"
        )
        self.plans = self._counter("plan_changes", "Planned starts written to the API server.")
        self.replan_s = Histogram(
            f"{_PREFIX}_operator_replan_seconds", "Seconds to plan all held work once.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0), registry=self.registry,
        )  # fmt: skip
        self.lateness_s = Histogram(
            f"{_PREFIX}_operator_release_lateness_seconds",
            "Seconds from a planned start to the moment the API server had started the work.",
            buckets=_LATENESS_S, registry=self.registry,
        )  # fmt: skip
        self.writes = self._counter("api_writes", "Writes to the API server, by kind.", "kind")
        self.failed = self._counter("api_failures", "API writes that failed, by kind.", "kind")
        self.fallbacks = self._counter(
            "controller_errors", "Controller errors handled by a fallback, by reason.", "reason"
        )
        self.unreadable = self._counter(
            "unreadable_workloads", "Jobs and pods that could not be decoded."
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_operator_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_operator_{name}", text, labels, registry=self.registry)


class ReleaserMetrics:
    """Metrics of the releaser."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.heartbeat = _heartbeat(self.registry)
        self.watch_age = _watch_age(self.registry)
        self.held = Gauge(
            f"{_PREFIX}_releaser_held_workloads",
            "Held workloads that the releaser sees.",
            registry=self.registry,
        )
        self.released = Counter(
            f"{_PREFIX}_releaser_released",
            "Workloads that the releaser started after their latest start, by kind.",
            ["kind"],
            registry=self.registry,
        )
