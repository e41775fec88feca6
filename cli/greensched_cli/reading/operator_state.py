"""The state of an installed operator, and advice on its faults; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from greensched_cli.reading.held_work import HeldWork
from greensched_core.custom_resources.policy_lookup import DEFAULT_NAME
from greensched_core.durations import format_duration
from greensched_operator.controller.default_policy import POLICY_REFUSED
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, Mode
from greensched_operator.objects.watched import EMERGENCY
from greensched_operator.runtime.heartbeat import HEARD_WITHIN_S
from greensched_operator.runtime.settings import OperatorSettings

HEARTBEAT = str(OperatorSettings.model_fields["heartbeat_lease"].default)
SIGNAL_FRESH_S = float(OperatorSettings.model_fields["signal_fresh_s"].default)
OVERDUE_S = 60.0  # after the latest start; the releaser acts a third of that after it
_MOST_NAMED = 3


class ClusterPart(StrEnum):
    """A part of a cluster's state; reading each part needs a separate right."""

    JOBS = "Jobs"
    PODS = "pods"
    WORKLOADS = "Workloads of Kueue"
    CRON_JOBS = "CronJobs"
    POLICIES = "GreenPolicies"
    LEASE = "the operator's Lease"
    RELEASER = "the releaser's pods"
    HEARTBEAT = "the operator's signs of life"
    WEBHOOK = "webhook configurations"
    EMERGENCY_RELEASE = "the emergency release"
    SIGNALS = "GridSignals"


@dataclass(frozen=True, slots=True)
class Leader:
    """The leading operator, from its Lease."""

    holder: str  # "" if the last leader gave the Lease up
    silent_s: float | None  # since the last renewal; None: it was never renewed
    lasts_s: float  # a longer silence means that the leader is dead

    @property
    def is_alive(self) -> bool:
        """Return whether an operator leads."""
        return bool(self.holder) and self.silent_s is not None and self.silent_s <= self.lasts_s


@dataclass(frozen=True, slots=True)
class WebhookState:
    """One MutatingWebhookConfiguration of ours."""

    name: str
    is_trusted: bool  # it has a caBundle, so the API server trusts the webhook's certificate


@dataclass(frozen=True, slots=True)
class Signal:
    """One GridSignal and the age of its values; None if it holds none."""

    zone: str
    source: str
    age_s: float | None
    fallbacks: tuple[str, ...] = ()  # "carbon (Unreachable)" if its first provider fails

    @property
    def is_fresh(self) -> bool:
        """Return whether its values are fresh enough for planning."""
        return self.age_s is not None and self.age_s <= SIGNAL_FRESH_S


@dataclass(frozen=True, slots=True)
class OperatorState:
    """The state of an operator; `unread` holds the parts that could not be read, and why."""

    namespace: str
    is_certain: bool  # the namespace was given, or holds the Lease
    leader: Leader | None
    releasers: tuple[int, int]  # ready, all
    heartbeat_age_s: float | None  # since the last heartbeat; None: there was none
    webhooks: tuple[WebhookState, ...]
    is_emergency_release: bool
    signals: tuple[Signal, ...]
    unread: Mapping[ClusterPart, str]

    def knows(self, part: ClusterPart) -> bool:
        """Return whether a part was read."""
        return part not in self.unread


def advice(
    state: OperatorState,
    held: Sequence[HeldWork],
    policies: Mapping[str, GreenPolicy],
    refusals: Mapping[str, str],
    now_s: float,
) -> list[str]:
    """Return a sentence for each fault, with its remedy; the most urgent first.

    `policies` are those in force in the namespaces shown; `refusals` map the title of each policy
    that is not followed as written to the reason.
    """
    return [
        *_overdue(held, now_s),
        *_emergency(state),
        *_leader(state, bool(held)),
        *_releaser(state),
        *_heartbeat(state),
        *_webhook(state),
        *_signals(state),
        *(f"{title} is not followed as it is written: {why}" for title, why in refusals.items()),
        *_no_policy(state, policies),
        *_policies(state, policies),
    ]


def _overdue(held: Sequence[HeldWork], now_s: float) -> Iterator[str]:
    late = [each for each in held if each.is_overdue(now_s, OVERDUE_S)]
    if late:
        yield (
            f"Past the latest start, and neither operator nor releaser has started it: "
            f"{_named([f'{each.work.namespace}/{each.name}' for each in late])}. "
            f"Start it now: greensched release {_targets(late)}"
        )


def _emergency(state: OperatorState) -> Iterator[str]:
    if state.is_emergency_release:
        yield (
            "The emergency release is on: nothing is held, and held work is started. Hold work "
            f"again: greensched release --emergency-release off --install-namespace "
            f"{state.namespace}"
        )


def _leader(state: OperatorState, is_work_held: bool) -> Iterator[str]:
    if not state.knows(ClusterPart.LEASE) or (state.leader and state.leader.is_alive):
        return
    if state.leader is None:
        text = f"No operator has ever led in namespace {state.namespace}: is it installed there "
        text += "(else name its --install-namespace)? "
    elif not state.leader.holder:
        text = "No operator leads: the last one has given its Lease up. "
    else:
        silent = _age(state.leader.silent_s)
        text = (
            f"The operator is dead: {state.leader.holder} has not renewed its Lease for {silent}. "
        )
    text += f"See kubectl -n {state.namespace} describe pods -l {_LABELS}"
    if is_work_held:
        text += ". The releaser starts held work at its latest start; greensched release, now"
    yield text


_LABELS = "app.kubernetes.io/part-of=greensched"


def _releaser(state: OperatorState) -> Iterator[str]:
    ready, known = state.releasers
    if state.knows(ClusterPart.RELEASER) and not ready:
        why = f"none of its {known} pods is ready" if known else "it has no pod"
        yield (
            f"No releaser runs in namespace {state.namespace}: {why}. While no operator leads, "
            f"nothing is started at its latest start. See kubectl -n {state.namespace} describe "
            f"pods -l {_LABELS},app.kubernetes.io/component=releaser"
        )


def _heartbeat(state: OperatorState) -> Iterator[str]:
    age_s = state.heartbeat_age_s
    if not state.knows(ClusterPart.HEARTBEAT) or (age_s is not None and age_s < HEARD_WITHIN_S):
        return
    silent = "ever given a sign of life"
    if age_s is not None:
        silent = f"given a sign of life for {_age(age_s)}"
    yield (
        f"Neither leader nor releaser has {silent}, so the webhook holds no new work: it "
        f"runs at once. Each writes one on Lease {HEARTBEAT} in namespace {state.namespace} while "
        "it can read and start held work; otherwise its log says why: kubectl "
        f"-n {state.namespace} logs --tail=-1 --prefix -l {_LABELS} | grep 'sign of life'"
    )


def _webhook(state: OperatorState) -> Iterator[str]:
    if not state.knows(ClusterPart.WEBHOOK):
        return
    if not state.webhooks:
        yield (
            "No webhook of GreenSched is configured: new work is not held, and runs at once. "
            "Install or upgrade the chart with its operator"
        )
    for each in state.webhooks:
        if not each.is_trusted:
            yield (
                f"MutatingWebhookConfiguration {each.name} has no caBundle: the API server does "
                "not trust the webhook, and new work runs at once. A leading operator writes it "
                "within ten seconds"
            )


def _signals(state: OperatorState) -> Iterator[str]:
    if not state.knows(ClusterPart.SIGNALS):
        return
    if not state.signals:
        yield (
            "There is no GridSignal: plans use the static table, where no hour is better than "
            "another, so work is not delayed for long. Publish one, or configure a provider"
        )
    empty = [each.zone for each in state.signals if each.age_s is None]
    stale = [
        f"{each.zone} ({_age(each.age_s)})"
        for each in state.signals
        if each.age_s is not None and not each.is_fresh
    ]
    fallen = [f"{each.zone} {fallback}" for each in state.signals for fallback in each.fallbacks]
    if fallen:
        yield (
            f"GridSignals whose first provider fails: {_named(fallen)}. The next one in the list "
            "serves; without a forecast, as in the static table, no work waits. See kubectl "
            "describe gridsignals"
        )
    if empty:
        yield (
            f"GridSignals without values: {_named(empty)}. Plans for nodes in these zones use the "
            "static table. See kubectl describe gridsignals"
        )
    if stale:
        yield (
            f"GridSignals older than {format_duration(SIGNAL_FRESH_S)}: {_named(stale)}. Plans "
            "use these old values. See kubectl describe gridsignals"
        )


def _no_policy(state: OperatorState, policies: Mapping[str, GreenPolicy]) -> Iterator[str]:
    if state.knows(ClusterPart.POLICIES) and BUILT_IN in policies.values():
        yield (
            f"There is no GreenPolicy named {DEFAULT_NAME} in namespace {state.namespace}, so the "
            "built-in policy applies. The controller creates the chart's; if it could not, an "
            f"event says why: kubectl -n {state.namespace} get events "
            f"--field-selector reason={POLICY_REFUSED}"
        )


def _policies(state: OperatorState, policies: Mapping[str, GreenPolicy]) -> Iterator[str]:
    if not state.knows(ClusterPart.POLICIES):
        return
    if any(policy.mode == Mode.ENFORCE for policy in policies.values()):
        return  # some of several namespaces may be meant to hold nothing
    for mode, meaning in _NOT_HOLDING.items():
        where = sorted(name for name, policy in policies.items() if policy.mode == mode)
        if where:
            titles = _named(sorted({policies[name].title for name in where}))
            yield (
                f"New work that names no other policy is not held in {_named(where)}: {titles} has "
                f"mode {mode}, {meaning}. To hold work: spec.mode enforce in a GreenPolicy named "
                "default"
            )


_NOT_HOLDING = {
    Mode.SHADOW: "which only reports what it would do",
    Mode.OFF: "which does nothing",
}


def emergency_release_commands(namespace: str) -> tuple[str, str]:
    """Return the kubectl commands that turn the emergency release on and off."""
    what = f"configmap {EMERGENCY}"
    return f"kubectl -n {namespace} create {what}", f"kubectl -n {namespace} delete {what}"


def _targets(late: Sequence[HeldWork]) -> str:
    """Return the arguments of `greensched release` for late work."""
    namespaces = {each.work.namespace for each in late}
    if len(namespaces) > 1:
        return "-A"
    (namespace,) = namespaces
    if len(late) > _MOST_NAMED:
        return f"--all -n {namespace}"
    return f"{' '.join(each.name for each in late)} -n {namespace}"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _age(seconds: float | None) -> str:
    return "ever" if seconds is None else format_duration(round(max(seconds, 0.0)))
