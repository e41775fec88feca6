"""Metrics that several processes of the operator show under the same name."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

_PREFIX = "greensched_operator"


def watch_age(registry: CollectorRegistry) -> Gauge:
    """Return the age of each watch of a process."""
    return Gauge(
        f"{_PREFIX}_watch_age_seconds",
        "Seconds for which the watch of a resource may have missed changes; 0 while it watches. "
        "Controller, webhook and releaser share the name.",
        ["resource"],
        registry=registry,
    )


def heartbeat(registry: CollectorRegistry) -> Gauge:
    """Return the sign of life of a process that starts held work."""
    return Gauge(
        f"{_PREFIX}_heartbeat",
        "1 while this replica's last sign of life is less than 60 seconds old, so that the webhook "
        "may hold work. Controller and releaser share the name: one of them is enough.",
        registry=registry,
    )


def from_zero(counter: Counter, values: Iterable[str]) -> Counter:
    """Return a counter whose series of these values of its label begin at 0.

    Alerts then see the first rise, and docs/metrics.md lists the values.
    """
    for value in values:
        counter.labels(value)
    return counter
