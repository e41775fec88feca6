"""Metrics of the operator's processes; labels are aggregate, never a workload."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from greensched_core.connections import Refusal

_PREFIX = "greensched"
_ADMISSION_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
_LATENESS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


def _watch_age(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        f"{_PREFIX}_operator_watch_age_seconds",
        "Seconds for which what the process sees of a resource may be old; 0 while it watches.",
        ["resource"],
        registry=registry,
    )


def _heartbeat(registry: CollectorRegistry) -> Gauge:
    return Gauge(
        f"{_PREFIX}_operator_heartbeat",
        "1 while this replica's last sign of life, not 60 seconds old, lets the webhook hold work.",
        registry=registry,
    )


class WebhookMetrics:
    """What the webhook counts."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.reviews = Counter(
            f"{_PREFIX}_webhook_reviews",
            "Workloads looked at as they were created, by what became of them.",
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
            "Connections that were closed beyond a limit, by which.",
            ["reason"],
            registry=self.registry,
        )
        for reason in Refusal:
            self._refused.labels(reason)

    def refused(self, why: Refusal) -> None:
        """Count a connection that was closed beyond a limit."""
        self._refused.labels(why).inc()


class ControllerMetrics:
    """What the controller counts; only the leader's move."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.leading = self._gauge("operator_leading", "1 while this replica leads.")
        self.heartbeat = _heartbeat(self.registry)
        self.watch_age = _watch_age(self.registry)
        self.held = self._gauge("held_workloads", "Workloads that are held now.", "namespace")
        self.held_cores = self._gauge("held_cpu_cores", "CPU cores that held work asks for.")
        self.released = self._counter("released", "Workloads started, by reason.", "reason")
        self.pauses = self._counter("pauses", "Running Jobs to suspend, by outcome.", "outcome")
        self.resumed = self._counter("resumed", "Paused Jobs started again, by reason.", "reason")
        self.unheld = self._counter("not_held", "Workloads that were not held, by why.", "reason")
        self.plans = self._counter("plan_changes", "Planned starts that were written.")
        self.replan_s = Histogram(
            f"{_PREFIX}_replan_seconds", "Time that one planning of all took.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0), registry=self.registry,
        )  # fmt: skip
        self.lateness_s = Histogram(
            f"{_PREFIX}_release_lateness_seconds",
            "Seconds from a planned start to the moment the API server had started the work.",
            buckets=_LATENESS_S, registry=self.registry,
        )  # fmt: skip
        self.writes = self._counter("api_writes", "Writes to the API server, by kind.", "kind")
        self.failed = self._counter("api_failures", "Writes it refused, by kind.", "kind")
        self.fallbacks = self._counter("planning_fallbacks", "What was made up for.", "reason")
        self.unreadable = self._counter("unreadable_workloads", "Objects that were not read.")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, labels, registry=self.registry)


class ReleaserMetrics:
    """What the releaser counts."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.heartbeat = _heartbeat(self.registry)
        self.watch_age = _watch_age(self.registry)
        self.held = Gauge(
            f"{_PREFIX}_releaser_held_workloads", "Held work that it sees.", registry=self.registry
        )
        self.released = Counter(
            f"{_PREFIX}_releaser_released",
            "Workloads that were past their latest start, and that it started.",
            ["kind"],
            registry=self.registry,
        )
