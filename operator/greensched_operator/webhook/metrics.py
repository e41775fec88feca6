"""Metrics of the webhook; labels are aggregate, never a workload."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from greensched_core.connections import Refusal
from greensched_operator.holding.holding import Unheld
from greensched_operator.runtime.metrics import from_zero, watch_age
from greensched_operator.webhook.admission import ReviewOutcome

_PREFIX = "greensched_webhook"
_ADMISSION_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class WebhookMetrics:
    """Metrics of the webhook."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        reviews = Counter(
            f"{_PREFIX}_reviews",
            "Workloads reviewed at creation, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self.reviews = from_zero(reviews, (*ReviewOutcome, *Unheld))
        self.seconds = Histogram(
            f"{_PREFIX}_seconds",
            "Time from a review's last byte to its answer.",
            buckets=_ADMISSION_S,
            registry=self.registry,
        )
        self.watch_age = watch_age(self.registry)
        refused = Counter(
            f"{_PREFIX}_refused_connections",
            "Connections closed because they exceeded a limit, by limit.",
            ["reason"],
            registry=self.registry,
        )
        self._refused = from_zero(refused, Refusal)

    def refused(self, why: Refusal) -> None:
        """Count a connection that was closed because it exceeded a limit."""
        self._refused.labels(why).inc()
