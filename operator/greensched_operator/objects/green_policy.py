"""GreenPolicy: whether work waits, for what and how long; and which policy a workload follows.

A policy that cannot be followed as it is written holds nothing: the built-in defaults, mode shadow,
stand for it, with what is wrong in words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from greensched_core.errors import BadInput
from greensched_core.quoting import near, quoted
from greensched_operator.objects.quiet_fields import read_quiet_hours
from greensched_operator.objects.quiet_hours import QuietHours, Span
from greensched_operator.objects.resource_fields import (
    BudgetFields,
    BundleFields,
    MarginFields,
    PauseFields,
    PolicyFields,
    WeightFields,
    decoded_object,
    read_duration,
    read_meta,
    read_part,
    within,
)
from greensched_policies.encoding.observation import Weights
from greensched_policies.rules.catalogue import WHEN_RULES

DEFAULT_NAME = "default"  # of the policy that a namespace, or the cluster, follows
ONNX = "onnx"

MOST_WEIGHT = 1e6  # beyond that the others are lost in rounding
MOST_AMOUNT = 1e15  # of a budget, kWh and kg: more than the Earth turns over

Policies = Mapping[tuple[str, str], "GreenPolicy"]  # by namespace and name
Word = TypeVar("Word", bound=StrEnum)


class Mode(StrEnum):
    """What is done with work that may wait; it says nothing of where work is placed."""

    OFF = "off"
    SHADOW = "shadow"  # nothing is held; what would be is reported
    ENFORCE = "enforce"


class Period(StrEnum):
    """After which a budget begins anew, by UTC; weeks begin on Monday."""

    DAY = "Day"
    WEEK = "Week"
    MONTH = "Month"

    def span(self, now: float) -> Span:
        """Return the period that an instant lies in, seconds since the Unix epoch."""
        day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Period.DAY:
            begin, end = day, day + timedelta(days=1)
        elif self is Period.WEEK:
            begin = day - timedelta(days=day.weekday())
            end = begin + timedelta(days=7)
        else:
            begin = day.replace(day=1)
            end = (begin + timedelta(days=31)).replace(day=1)
        return Span(begin.timestamp(), end.timestamp())


@dataclass(frozen=True, slots=True)
class SafetyMargin:
    """Spare time between the expected end and the deadline; the greater of the two holds."""

    least_s: float = 300.0
    share_of_runtime: float = 0.1

    def seconds(self, runtime_s: float) -> float:
        """Return the spare time of a run of that length."""
        return max(self.least_s, self.share_of_runtime * runtime_s)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the work of one namespace may take in a period; None is without limit."""

    period: Period
    energy_kwh: float | None = None
    carbon_kg: float | None = None


@dataclass(frozen=True, slots=True)
class PauseLimits:
    """How long checkpointable work runs before it is suspended, and is suspended, at least."""

    minimum_run_s: float = 900.0
    minimum_pause_s: float = 900.0


@dataclass(frozen=True, slots=True)
class GreenPolicy:
    """A policy as it is followed; without a name the one that is built in.

    `faults` tells what of the object could not be read; then all else is the built-in default.
    """

    namespace: str = ""
    name: str = ""
    generation: int = 0
    faults: tuple[str, ...] = ()
    mode: Mode = Mode.SHADOW
    weights: Weights = field(default=Weights(energy=1.0, carbon=1.0, performance=0.1))
    default_delay_s: float | None = None  # None: without deadline and max-delay nothing is held
    longest_hold_s: float = 86_400.0
    default_runtime_s: float = 3_600.0
    safety_margin: SafetyMargin = field(default=SafetyMargin())
    max_held_share: float = 0.5  # of the cluster's cores
    least_saving: float = 0.02  # share of the weighted cost
    quiet_hours: QuietHours = field(default=QuietHours())
    budget: Budget | None = None
    pause: PauseLimits = field(default=PauseLimits())
    when_policy: str = "planned-window"
    bundle_config_map: str | None = None  # in the operator's namespace; None: the shipped bundle

    @property
    def title(self) -> str:
        """Return how a sentence names it."""
        return f"GreenPolicy {self.namespace}/{self.name}" if self.name else "the built-in policy"


BUILT_IN = GreenPolicy()


def parse(raw: object) -> GreenPolicy:
    """Read a GreenPolicy (JSON, or decoded) and say in `faults` what is wrong; never raises."""
    try:
        whole = decoded_object(raw)
    except BadInput as fault:
        return GreenPolicy(faults=(f"a GreenPolicy must be a JSON object: {fault}",))
    meta = read_meta(whole)
    try:
        spec = read_part(whole, "spec", PolicyFields)
        return _followed(spec, meta.namespace, meta.name, meta.generation)
    except BadInput as fault:
        return GreenPolicy(meta.namespace, meta.name, meta.generation, faults=(str(fault),))


def _followed(spec: PolicyFields, namespace: str, name: str, generation: int) -> GreenPolicy:
    """Return the policy of a spec; raise BadInput for the first field that cannot be followed."""
    default, delay = BUILT_IN, spec.defaultDelay
    bundle = spec.bundle or BundleFields()
    if spec.bundle and not bundle.configMapName:
        raise BadInput("spec.bundle: configMapName is missing")
    return GreenPolicy(
        namespace=namespace,
        name=name,
        generation=generation,
        mode=default.mode if spec.mode is None else _word(Mode, spec.mode, "mode"),
        weights=_weights(spec.weights or WeightFields()),
        default_delay_s=None if delay is None else read_duration(delay, "spec.defaultDelay"),
        longest_hold_s=_seconds(spec.longestHold, default.longest_hold_s, "longestHold"),
        default_runtime_s=_seconds(
            spec.defaultRuntime, default.default_runtime_s, "defaultRuntime", above_zero=True
        ),
        safety_margin=_margin(spec.safetyMargin or MarginFields()),
        max_held_share=_share(
            spec.maxHeldSharePercent, default.max_held_share, "maxHeldSharePercent"
        ),
        least_saving=_share(spec.leastSavingPercent, default.least_saving, "leastSavingPercent"),
        quiet_hours=read_quiet_hours(spec.quietHours or [], "spec.quietHours"),
        budget=None if spec.budget is None else _budget(spec.budget),
        pause=_pause(spec.pause or PauseFields()),
        when_policy=_when_policy(spec.whenPolicy),
        bundle_config_map=bundle.configMapName,
    )


def _seconds(text: str | None, default: float, field: str, *, above_zero: bool = False) -> float:
    if text is None:
        return default
    return read_duration(text, f"spec.{field}", above_zero=above_zero)


def _share(percent: float | None, default: float, field: str, most: float = 100.0) -> float:
    return default if percent is None else within(percent, most, f"spec.{field}") / 100.0


def _word(kind: type[Word], text: str, field: str) -> Word:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(kind)
        raise BadInput(f"spec.{field}: {quoted(text)} is none of {known}") from None


def _weights(spec: WeightFields) -> Weights:
    default = BUILT_IN.weights
    given = (spec.energy, spec.carbon, spec.performance)
    weights = Weights(
        *(
            usual if one is None else within(one, MOST_WEIGHT, f"spec.weights.{name}")
            for name, one, usual in zip(Weights._fields, given, default, strict=True)
        )
    )
    if not any(weights):
        raise BadInput("spec.weights: all are zero: nothing would tell a good start from a bad one")
    return weights


def _margin(spec: MarginFields) -> SafetyMargin:
    default, share = BUILT_IN.safety_margin, spec.shareOfRuntimePercent
    return SafetyMargin(
        _seconds(spec.duration, default.least_s, "safetyMargin.duration"),
        _share(share, default.share_of_runtime, "safetyMargin.shareOfRuntimePercent", 1000.0),
    )


def _budget(spec: BudgetFields) -> Budget:
    if spec.period is None:
        raise BadInput(f"spec.budget: period is missing, one of {', '.join(Period)}")
    if spec.energyKwh is None and spec.carbonKg is None:
        raise BadInput("spec.budget: it needs energyKwh or carbonKg")
    energy, carbon = (
        None if amount is None else within(amount, MOST_AMOUNT, f"spec.budget.{name}")
        for name, amount in (("energyKwh", spec.energyKwh), ("carbonKg", spec.carbonKg))
    )
    return Budget(_word(Period, spec.period, "budget.period"), energy, carbon)


def _pause(spec: PauseFields) -> PauseLimits:
    default = BUILT_IN.pause
    return PauseLimits(
        _seconds(spec.minimumRun, default.minimum_run_s, "pause.minimumRun"),
        _seconds(spec.minimumPause, default.minimum_pause_s, "pause.minimumPause"),
    )


def _when_policy(name: str | None) -> str:
    if name is None:
        return BUILT_IN.when_policy
    if name not in (known := (ONNX, *WHEN_RULES)):
        raise BadInput(f"spec.whenPolicy: {quoted(name)} is none of {', '.join(known)}")
    return name


class Origin(StrEnum):
    """Why a workload follows a policy."""

    NAMED = "annotation"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"
    BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The policy that a workload follows, why, and a sentence where that isn't what was meant."""

    policy: GreenPolicy
    origin: Origin
    fault: str | None = None


def resolve(
    policies: Policies, namespace: str, name: str | None, operator_namespace: str
) -> Resolved:
    """Return the policy of a workload of a namespace that names one, or none; never raises.

    The named one is looked up in the workload's namespace, then in the operator's; where there is
    none, or none is named: the one named `default` of the one, then of the other, then what is
    built in.
    """
    wanted = (name or "").strip()
    for place in (namespace, operator_namespace):
        if wanted and (found := policies.get((place, wanted))):
            return Resolved(found, Origin.NAMED, _fault_of(found))
    resolved = _default(policies, namespace, operator_namespace)
    if not wanted:
        return resolved
    places = sorted({namespace, operator_namespace})
    close = near(wanted, {known for place, known in list(policies) if place in places})
    missing = (
        f"there is no GreenPolicy {quoted(wanted)} in namespace {' or '.join(places)}{close}: "
        f"{resolved.policy.title} holds instead"
    )
    fault = f"{missing}; {resolved.fault}" if resolved.fault else missing
    return Resolved(resolved.policy, resolved.origin, fault)


def _default(policies: Policies, namespace: str, operator_namespace: str) -> Resolved:
    for place in (namespace, operator_namespace):
        if found := policies.get((place, DEFAULT_NAME)):
            origin = Origin.CLUSTER if place == operator_namespace else Origin.NAMESPACE
            return Resolved(found, origin, _fault_of(found))
    return Resolved(BUILT_IN, Origin.BUILT_IN)


def _fault_of(policy: GreenPolicy) -> str | None:
    if not policy.faults:
        return None
    return f"{policy.title} cannot be followed, so nothing is held: {'; '.join(policy.faults)}"
