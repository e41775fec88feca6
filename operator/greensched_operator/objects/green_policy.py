"""GreenPolicy: whether, for what and how long work waits; and which policy a workload follows.

A policy that cannot be read holds nothing: the built-in defaults (mode shadow) replace it, with
error messages.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from greensched_core.custom_resources.fields import (
    FieldDefinition,
    SchemaRule,
    as_read,
    custom_field,
    duration,
    fields_of,
    flag,
    group,
    percent,
    reader_of,
    word,
)
from greensched_core.custom_resources.policy_lookup import PolicyOrigin, find_policy
from greensched_core.errors import BadInput
from greensched_core.quoting import near, quoted
from greensched_operator.objects.policy_fields import CARBON_LIMIT, amount_field
from greensched_operator.objects.quiet_hours import QUIET_HOURS, QuietHours, TimeSpan
from greensched_operator.objects.resource_fields import decoded_object, read_meta
from greensched_policies.encoding.weight_fields import WEIGHTS
from greensched_policies.encoding.weights import Weights
from greensched_policies.learned.model_fields import BUNDLE, ONNX, WHEN_POLICY

PoliciesByName = Mapping[tuple[str, str], "GreenPolicy"]  # by namespace and name


class Mode(StrEnum):
    """How work that may wait is treated; placement does not depend on it."""

    OFF = "off"
    SHADOW = "shadow"  # nothing is held; what would be held is reported
    ENFORCE = "enforce"


class BudgetPeriod(StrEnum):
    """The time after which a budget begins anew, by UTC; weeks begin on Monday."""

    DAY = "Day"
    WEEK = "Week"
    MONTH = "Month"

    def span(self, now: float) -> TimeSpan:
        """Return the period that contains a time, in seconds since the Unix epoch."""
        day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is BudgetPeriod.DAY:
            begin, end = day, day + timedelta(days=1)
        elif self is BudgetPeriod.WEEK:
            begin = day - timedelta(days=day.weekday())
            end = begin + timedelta(days=7)
        else:
            begin = day.replace(day=1)
            end = (begin + timedelta(days=31)).replace(day=1)
        return TimeSpan(begin.timestamp(), end.timestamp())


@dataclass(frozen=True, slots=True)
class Budget:
    """What the work of one namespace may consume in a period; None means no limit."""

    period: BudgetPeriod = custom_field(
        "period",
        word(BudgetPeriod),
        "Time after which the budget begins again, by UTC; weeks begin on Monday.",
        needed=f"period is missing, one of {', '.join(BudgetPeriod)}",
    )
    energy_kwh: float | None = custom_field(
        "energyKwh",
        amount_field("kWh"),
        "Energy that work may take in a period.",
        unset=None,
        absent="no limit",
    )
    carbon_kg: float | None = custom_field(
        "carbonKg",
        amount_field("kg CO2e"),
        "Carbon that work may take in a period.",
        unset=None,
        absent="no limit",
    )

    @property
    def most_kwh(self) -> float:
        """Return the energy that work may take in a period; infinity: no limit."""
        return math.inf if self.energy_kwh is None else self.energy_kwh

    @property
    def most_kg(self) -> float:
        """Return the carbon that work may take in a period; infinity: no limit."""
        return math.inf if self.carbon_kg is None else self.carbon_kg


def _budget(found: Budget, where: str) -> Budget:
    if found.energy_kwh is None and found.carbon_kg is None:
        raise BadInput(f"{where}: it needs energyKwh or carbonKg")
    return found


@dataclass(frozen=True, slots=True)
class PauseLimits:
    """The shortest run before a suspension, and the shortest suspension, of checkpointable work."""

    minimum_run_s: float = custom_field(
        "minimumRun",
        duration(),
        "Shortest time that work runs before a suspension.",
        default="15m",
    )
    minimum_pause_s: float = custom_field(
        "minimumPause",
        duration(),
        "Shortest suspension, unless the deadline demands an earlier start.",
        default="15m",
    )


@dataclass(frozen=True, slots=True)
class GreenPolicy:
    """A policy that workloads follow; the built-in one has no name.

    If the object could not be read, `faults` says why and all fields have their defaults.
    """

    namespace: str = ""
    name: str = ""
    generation: int = 0
    faults: tuple[str, ...] = ()
    mode: Mode = custom_field(
        "mode",
        word(Mode),
        "`enforce` holds work; `shadow` holds nothing and reports what would be held and saved; "
        '`"off"` does neither. YAML reads a bare `off` as false, which is refused: write it in '
        "quotes.",
        default="shadow",
    )
    weights: Weights = custom_field(
        "weights",
        WEIGHTS,
        "What counts how much when a start and a node are chosen. Only the ratio of the weights "
        "matters; at least one must be above zero.",
        default={},
    )
    default_delay_s: float | None = custom_field(
        "defaultDelay",
        duration(),
        "How long work with neither deadline nor max-delay may wait. If absent, such work is never "
        "held.",
        unset=None,
        absent="absent",
    )
    longest_hold_s: float = custom_field(
        "longestHold",
        duration(),
        "Longest time that work is held; it then starts even far before its deadline. `0s` holds "
        "nothing.",
        default="24h",
    )
    default_runtime_s: float = custom_field(
        "defaultRuntime",
        duration("defaultRuntime must be above zero; work that takes no time cannot be planned"),
        "Expected runtime of work that has no runtime annotation, no past runs and no power "
        "profile.",
        default="1h",
    )
    on_time_target: float = custom_field(
        "onTimeTargetPercent",
        percent(
            "runs",
            99.99,
            "onTimeTargetPercent must be from 50 to 99.99; no wait is free of risk",
            least=50.0,
        ),
        "How many of the runs that are held until their latest start must end before their "
        "deadline. A higher one makes that latest start earlier, and a risky start dearer.",
        default=99.5,
    )
    runtime_error: float = custom_field(
        "runtimeErrorPercent",
        percent("the runtime", 300.0, "runtimeErrorPercent must be from 0 to 300"),
        "How far runtimes usually lie from the expected one: the standard deviation of their "
        "logarithm. It is learned from past runs of a CronJob.",
        default=20,
    )
    start_delay_s: float = custom_field(
        "startDelay",
        duration(),
        "Time that the plan keeps before the runtime, for scheduling, pulling images and starting.",
        default="5m",
    )
    waits_for_room: bool = custom_field(
        "waitForRoom",
        flag(),
        "Whether work for which the cluster has no room now is held until there is room, at most "
        "to its latest start. Set it to false where an autoscaler adds nodes for pending pods.",
        default=True,
    )
    max_held_share: float = custom_field(
        "maxHeldSharePercent",
        percent("the cluster's CPU cores"),
        "Limit on what all held work may request together; work above it starts immediately, even "
        "in quiet hours or beyond its budget.",
        default=100,
    )
    least_saving: float = custom_field(
        "leastSavingPercent",
        percent("the weighted cost"),
        "Least saving for which work waits; otherwise it starts immediately.",
        default=2,
    )
    carbon_price_per_g: float = custom_field(
        "carbonLimit",
        CARBON_LIMIT,
        "What a wait may cost in carbon. `not-above-now`: a later start is forecast to emit no "
        "more than a start now. A whole price per tonne of CO2e, in the currency of the zone's "
        "price: it may emit more if it saves at least that much money. `none`: the weights alone "
        "decide.",
        default="not-above-now",
    )
    quiet_hours: QuietHours = custom_field(
        "quietHours",
        QUIET_HOURS,
        "Times at which no held work starts, unless its deadline requires it. Work that "
        "`maxHeldSharePercent` does not let wait starts in them too.",
        unset=QuietHours(),
        absent="none",
    )
    budget: Budget | None = custom_field(
        "budget",
        group(
            Budget,
            _budget,
            SchemaRule("has(self.period)", "a budget needs its period, one of Day, Week and Month"),
            SchemaRule(
                "has(self.energyKwh) || has(self.carbonKg)",
                "a budget needs energyKwh or carbonKg, or both",
            ),
        ),
        "What the work of each namespace under this policy may take in a period: energy, carbon "
        "or both. Work above it waits as long as its deadline allows, then starts all the same: a "
        "budget delays work, and limits nothing. A tight one may emit more.",
        unset=None,
        absent="none",
    )
    pause: PauseLimits = custom_field(
        "pause",
        group(PauseLimits, as_read),
        "Limits for checkpointable work, which may be suspended and resumed.",
        default={},
    )
    when_policy: str = custom_field(
        "whenPolicy",
        WHEN_POLICY,
        f"The rule that chooses the start, or `{ONNX}` for a model.",
        default="planned-window",
    )
    bundle_config_map: str | None = custom_field(
        "bundle",
        BUNDLE,
        f"The model of `whenPolicy: {ONNX}`.",
        unset=None,
        absent="the shipped one",
    )

    @property
    def title(self) -> str:
        """Return its name for messages."""
        return f"GreenPolicy {self.namespace}/{self.name}" if self.name else "the built-in policy"


BUILT_IN = GreenPolicy()
_ATTRIBUTES = reader_of(fields_of(GreenPolicy))
SPEC = FieldDefinition(
    "spec",
    group(
        GreenPolicy,
        as_read,
        SchemaRule(
            f"!has(self.bundle) || (has(self.whenPolicy) && self.whenPolicy == '{ONNX}')",
            f"bundle is read only with whenPolicy: {ONNX}; set whenPolicy: {ONNX} or remove bundle",
            ".bundle",
        ),
    ),
    "Every field is optional. By default nothing is held; what would be held is reported.",
    default={},
)


def parse(raw: object) -> GreenPolicy:
    """Read a GreenPolicy, JSON or decoded already; `faults` has its errors, nothing is raised."""
    try:
        whole = decoded_object(raw)
    except BadInput as fault:
        return GreenPolicy(faults=(f"a GreenPolicy must be a JSON object: {fault}",))
    meta = read_meta(whole)
    try:
        spec = whole.get("spec")
        found = _ATTRIBUTES({} if spec is None else spec, "spec")
    except BadInput as fault:
        return GreenPolicy(meta.namespace, meta.name, meta.generation, faults=(str(fault),))
    return GreenPolicy(meta.namespace, meta.name, meta.generation, **found)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The policy that a workload follows, its origin, and a message if another one was meant."""

    policy: GreenPolicy
    origin: PolicyOrigin
    fault: str | None = None


def resolve(
    policies: PoliciesByName, namespace: str, name: str | None, operator_namespace: str
) -> Resolved:
    """Return the policy of a workload in a namespace, which may name one; never raises.

    It is the one that `find_policy` finds, else the built-in one.
    """
    found = find_policy(policies, namespace, name, operator_namespace)
    policy = found.policy or BUILT_IN
    fault = fault_of(policy)
    if not found.is_named_missing:
        return Resolved(policy, found.origin, fault)
    wanted, places = (name or "").strip(), sorted({namespace, operator_namespace})
    close = near(wanted, {known for place, known in list(policies) if place in places})
    missing = (
        f"there is no GreenPolicy {quoted(wanted)} in namespace {' or '.join(places)}{close}: "
        f"{policy.title} applies instead"
    )
    return Resolved(policy, found.origin, f"{missing}; {fault}" if fault else missing)


def fault_of(policy: GreenPolicy) -> str | None:
    """Return why a policy cannot be followed; None if it can."""
    if not policy.faults:
        return None
    return f"{policy.title} cannot be followed, so nothing is held: {'; '.join(policy.faults)}"
