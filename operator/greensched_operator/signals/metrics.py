"""Metrics of the grid signals that the operator fetches; labels are zones and providers."""

from collections.abc import Callable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import FaultReason
from greensched_operator.providers.catalogue import NAMES

_PREFIX = "greensched_operator_signal"
OK = "ok"
# Reasons for a fallback other than a provider's own.
GAP = "gap"  # a slot of a forecast without a value
LAST_GOOD = "last-good"  # no provider answered, so the previous values remain


class SignalMetrics:
    """Collectors in the operator's registry; those with known labels start at 0."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.fetches = Counter(
            f"{_PREFIX}_fetches",
            "Requests to providers, by outcome.",
            ["provider", "outcome"],
            registry=registry,
        )
        self.fallbacks = Counter(
            f"{_PREFIX}_fallbacks",
            "Values that are not the first provider's, by reason: its fault, last good values "
            "because all providers failed, or a forecast slot without a value.",
            ["kind", "reason"],
            registry=registry,
        )
        self.age = Gauge(
            f"{_PREFIX}_age_seconds",
            "Time since a zone's signal was read from its source.",
            ["zone", "kind"],
            registry=registry,
        )
        self.write_failures = Counter(
            f"{_PREFIX}_write_failures",
            "GridSignal status writes that the API server refused.",
            registry=registry,
        )
        for name in NAMES:
            for outcome in (OK, *FaultReason):
                self.fetches.labels(name, outcome)
        for kind in get_args(SignalKind):
            for reason in (*FaultReason, GAP, LAST_GOOD):
                self.fallbacks.labels(kind, reason)

    def follow_age(self, zone: str, kind: SignalKind, age_s: Callable[[], float]) -> None:
        """Show the age that `age_s` returns for a zone whenever metrics are read."""
        self.age.labels(zone, kind).set_function(age_s)

    def forget(self, zone: str) -> None:
        """Remove a zone's ages."""
        for kind in get_args(SignalKind):
            try:
                self.age.remove(zone, kind)
            except KeyError:
                continue  # it never had this signal
