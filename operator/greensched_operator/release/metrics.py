"""Metrics of the releaser; labels are aggregate, never a workload."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from greensched_operator.objects.workloads import WorkKind
from greensched_operator.runtime.metrics import from_zero, heartbeat, watch_age

_PREFIX = "greensched_releaser"


class ReleaserMetrics:
    """Metrics of the releaser."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.heartbeat = heartbeat(self.registry)
        self.watch_age = watch_age(self.registry)
        self.held = Gauge(
            f"{_PREFIX}_held_workloads",
            "Held workloads that the releaser sees.",
            registry=self.registry,
        )
        released = Counter(
            f"{_PREFIX}_released",
            "Workloads that the releaser started after their latest start, by kind.",
            ["kind"],
            registry=self.registry,
        )
        self.released = from_zero(released, WorkKind)
