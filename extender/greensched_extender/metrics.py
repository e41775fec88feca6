"""Every metric of the extender; labels are aggregate, never a pod or a node."""

from collections.abc import Callable
from enum import StrEnum
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from greensched_core.connections import Refusal
from greensched_core.signals.grid import GridFault
from greensched_core.signals.steps import SignalKind, Step
from greensched_extender.zone_outcome import ZoneOutcome
from greensched_policies.learned.guard import FallbackReason

_PREFIX = "greensched_extender"
# From the time of a pod without opt-in to above kube-scheduler's limit of 200 ms per call.
_BUCKETS_S = (
    *(0.0001, 0.00025, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0),
)

VERBS = ("filter", "prioritize", "bind")


class RequestOutcome(StrEnum):
    """How a request ended."""

    OK = "ok"
    NOT_OPTED_IN = "not_opted_in"  # a pod of another scheduler: no preference, all pass
    DISABLED = "disabled"  # the verb is off
    ABSTAINED = "abstained"  # equal scores or all pass: data was missing or too old
    BAD_REQUEST = "bad_request"  # 400
    TOO_LARGE = "too_large"  # 413
    CROWDED_OUT = "crowded_out"  # 503: too many large bodies at once; this one took longest
    REFUSED = "refused"  # the API server refused the binding
    FAILED = "failed"  # an internal error; the answer was still safe


class Fallback(StrEnum):
    """What was missing or failed, and what the extender answered instead."""

    UNKNOWN_NODE = "unknown_node"  # a name that is not in the snapshot: neutral score
    UNREADABLE_NODE = "unreadable_node"  # no capacity could be read: neutral score
    NO_CANDIDATE = "no_candidate"  # none of the names is known: equal scores
    NOT_SYNCED = "not_synced"  # the first lists are not done: equal scores
    STALE = "stale"  # no live watch for too long: equal scores
    NO_CARBON = "no_carbon"  # a candidate's zone has no carbon intensity
    NO_PRICE = "no_price"  # a candidate's zone has no price
    UNREADABLE_POD = "unreadable_pod"  # a quantity or annotation of the pod counts as absent
    NO_POLICIES = "no_policies"  # GreenPolicies are not listed yet, or cannot be: settings' weights
    UNKNOWN_POLICY = "unknown_policy"  # the pod names one that does not exist: the next applies
    NO_BUNDLE = "no_bundle"  # the policy's is missing or refused: the extender's own policy answers
    UNREADABLE_POLICY = "unreadable_policy"  # its last good version counts, else the settings
    EXCEPTION = "exception"  # an internal error: equal scores, or all nodes pass


class PolicyFault(StrEnum):
    """What of a GreenPolicy could not be read."""

    SPEC = "spec"
    WEIGHTS = "weights"


class BundleLoad(StrEnum):
    """Outcome of reading a bundle."""

    LOADED = "loaded"
    REFUSED = "refused"


RULE_FAILED = "rule_failed"  # in guard_fallbacks: the rule failed too, so all candidates are equal

STAGES = {
    "names": (Fallback.UNKNOWN_NODE, Fallback.UNREADABLE_NODE, Fallback.NO_CANDIDATE),
    "snapshot": (Fallback.NOT_SYNCED, Fallback.STALE),
    "signal": (Fallback.NO_CARBON, Fallback.NO_PRICE),
    "pod": (Fallback.UNREADABLE_POD,),
    "policy": (
        Fallback.NO_POLICIES,
        Fallback.UNKNOWN_POLICY,
        Fallback.UNREADABLE_POLICY,
        Fallback.NO_BUNDLE,
    ),
    "handler": (Fallback.EXCEPTION,),
}
_STAGE_OF = {reason: stage for stage, reasons in STAGES.items() for reason in reasons}


class ExtenderMetrics:
    """All collectors, in a separate registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._reached: dict[Counter, float] = {}
        self._define_requests()
        self._define_bindings()
        self._define_snapshot()
        self._define_policy()

    def _define_requests(self) -> None:
        requests = self._counter("requests", "Requests by verb and outcome.", "verb", "outcome")
        handler = Histogram(
            f"{_PREFIX}_handler_seconds",
            "Time inside the handler, from the whole body read to the reply ready.",
            ["verb"],
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        fallbacks = self._counter(
            "fallbacks",
            "Fallbacks in answers because data was missing, by stage and reason.",
            "stage",
            "reason",
        )
        self._requests = {
            (verb, outcome): requests.labels(verb, outcome)
            for verb in VERBS
            for outcome in RequestOutcome
        }
        self._handler = {verb: handler.labels(verb) for verb in VERBS}
        self._fallbacks = {
            reason: fallbacks.labels(stage, reason) for reason, stage in _STAGE_OF.items()
        }
        self.candidates = Histogram(
            f"{_PREFIX}_candidates",
            "Nodes offered in a prioritize request.",
            buckets=(1, 10, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000),
            registry=self.registry,
        )
        refused = self._counter(
            "refused_connections",
            "Connections closed because they exceeded a limit, by limit.",
            "reason",
        )
        self._refused = {reason: refused.labels(reason) for reason in Refusal}
        self.refused_nodes = self._counter(
            "refused_nodes", "Nodes that filter refused because of their power budget."
        )

    def _define_bindings(self) -> None:
        bindings = self._counter(
            "bindings",
            "Pods of ours that were bound, by whether this replica had scored them. Each replica"
            " sees all bindings.",
            "scored",
        )
        self._bindings = {True: bindings.labels("yes"), False: bindings.labels("no")}

    def _define_snapshot(self) -> None:
        self.snapshot_age = self._gauge(
            "snapshot_age_seconds", "Time without a live watch of nodes or pods; 0 while watching."
        )
        self.nodes = self._gauge("nodes", "Nodes in the snapshot.")
        self.unreadable_nodes = self._gauge(
            "unreadable_nodes", "Nodes whose capacity could not be read."
        )
        self.faulty_nodes = self._gauge(
            "faulty_nodes", "Nodes with a label, annotation or quantity that could not be read."
        )
        self.pods = self._gauge("pods", "Bound pods in the snapshot.")
        self.provisional_pods = self._gauge(
            "provisional_pods", "Pods counted on their expected node, not yet seen bound."
        )
        self.provisional_expired = self._counter(
            "provisional_expired",
            "Pods counted on their expected node that were not seen bound in time.",
        )
        self.watch_lists = self._counter(
            "watch_lists",
            "Times that all objects were listed; each after the first means that the watch had to "
            "start again.",
            "resource",
        )
        self.watch_synced = self._gauge(
            "watch_synced", "1 once the first list is done.", "resource"
        )
        self.watch_age = self._gauge(
            "watch_age_seconds", "Time without a live watch; 0 while watching.", "resource"
        )
        self.undecodable_objects = self._counter(
            "undecodable_objects", "Objects that could not be decoded.", "resource"
        )

    def _define_policy(self) -> None:
        self.model_info = self._gauge(
            "model_info",
            "1 for the policy in use; `runs_in` says what computes its net: the compiled `kernel`,"
            " or `onnxruntime`.",
            "policy",
            "bundle",
            "sha256",
            "runs_in",
        )
        self.guard_fallbacks = self._counter(
            "guard_fallbacks",
            "Answers of the model that were late or replaced by a rule, by reason.",
            "reason",
        )
        self.bundle_loads = self._counter(
            "bundle_loads", "Attempts to load a policy bundle, by outcome.", "outcome"
        )
        self.policy_faults = self._counter(
            "policy_faults", "Versions of GreenPolicies that could not be read, by part.", "part"
        )
        zones = self._counter(
            "planned_zones",
            "Pods scored whose start was planned in a zone, by what became of it.",
            "outcome",
        )
        self._planned_zones = {outcome: zones.labels(outcome) for outcome in ZoneOutcome}
        self._define_signals()
        self.task_failures = self._counter(
            "task_failures",
            "Failed background tasks, by task; requests were still answered.",
            "task",
        )
        self._start_at_zero()

    def _define_signals(self) -> None:
        self.signal_age = self._gauge(
            "signal_age_seconds", "Age of a zone's newest value.", "zone", "kind"
        )
        self.signal_steps = self._counter(
            "signal_steps",
            "Zone look-ups by the step of the fallback chain that answered.",
            "kind",
            "step",
        )
        self.signal_faults = self._counter(
            "signal_faults", "Values in GridSignals that could not be used, by reason.", "reason"
        )
        self.measured_nodes = self._gauge("measured_nodes", "Nodes whose watts are measured.")
        self.prometheus_failures = self._counter(
            "prometheus_failures", "Queries to Prometheus that failed."
        )

    def _start_at_zero(self) -> None:
        """Create every label value before its first count, so that alerts see the increase."""
        for task in ("bundle", "prometheus"):
            self.task_failures.labels(task)
        for reason in (*FallbackReason, RULE_FAILED):
            self.guard_fallbacks.labels(reason)
        for outcome in BundleLoad:
            self.bundle_loads.labels(outcome)
        for fault in GridFault:
            self.signal_faults.labels(fault)
        for part in PolicyFault:
            self.policy_faults.labels(part)
        for kind in get_args(SignalKind):
            for step in Step:
                self.signal_steps.labels(kind, step)

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", documentation, labels, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", documentation, labels, registry=self.registry)

    def refuse(self, why: Refusal) -> None:
        """Count a connection that was closed because it exceeded a limit."""
        self._refused[why].inc()

    def count_binding(self, was_scored: bool) -> None:
        """Count a pod of ours that was bound, by whether this replica had scored it."""
        self._bindings[was_scored].inc()

    def request(self, verb: str, outcome: RequestOutcome, seconds: float) -> None:
        """Count a request and the time in its handler."""
        self._requests[verb, outcome].inc()
        self._handler[verb].observe(seconds)

    def fallback(self, reason: Fallback, times: int = 1) -> None:
        """Count a fallback by its reason."""
        self._fallbacks[reason].inc(times)

    def planned_zone(self, outcome: ZoneOutcome) -> None:
        """Count a pod whose start was planned in a zone, by what became of it."""
        self._planned_zones[outcome].inc()

    def count_steps(self, kind: SignalKind, step: Step, times: int) -> None:
        """Count look-ups of zones that a step of the fallback chain answered."""
        self.signal_steps.labels(kind, step).inc(times)

    def reach(self, counter: Counter, total: float) -> None:
        """Raise a counter to a total that is kept elsewhere."""
        counter.inc(total - self._reached.get(counter, 0.0))
        self._reached[counter] = total

    def expose(self, collect: Callable[[], None]) -> bytes:
        """Return the text exposition after `collect` has set the gauges."""
        collect()
        return generate_latest(self.registry)
