"""Kinds of some fields of a GreenPolicy: weights, amounts of a budget, and a bundle."""

from dataclasses import dataclass

from greensched_core.errors import BadInput
from greensched_operator.objects.custom_fields import (
    FieldKind,
    SchemaRule,
    custom_field,
    group,
    number,
    text,
)
from greensched_policies.encoding.weights import Weights

MOST_WEIGHT = 1e6  # above it, rounding would lose the other weights
MOST_AMOUNT = 1e15  # of a budget, in kWh and kg: more than all of humanity uses

_WEIGHT = number(
    MOST_WEIGHT,
    f"ratio, 0 to {MOST_WEIGHT:.0f}",
    SchemaRule("self >= 0.0", "a weight cannot be negative; 0 leaves its part out"),
    SchemaRule(
        f"self <= {MOST_WEIGHT:.1f}",
        f"a weight must be at most {MOST_WEIGHT:.0f}; only the ratio matters, so scale all weights "
        "down",
    ),
)


@dataclass(frozen=True, slots=True)
class WeightFields:
    """How much each counts in the choice of a start."""

    cost: float = custom_field(
        "cost", _WEIGHT, "Weight of energy, as money at the grid's price.", default=1
    )
    carbon: float = custom_field("carbon", _WEIGHT, "Weight of carbon.", default=1)
    performance: float = custom_field(
        "performance", _WEIGHT, "Weight of waiting and of slowness.", default=0.1
    )


def _weights(found: WeightFields, where: str) -> Weights:
    weights = Weights(found.cost, found.carbon, found.performance)
    if not any(weights):
        raise BadInput(f"{where}: all are zero, so all starts would be equal; set one above 0")
    return weights


WEIGHTS = group(
    WeightFields,
    _weights,
    SchemaRule(
        "!has(self.cost) || self.cost > 0.0 || !has(self.carbon) || self.carbon > 0.0 "
        "|| !has(self.performance) || self.performance > 0.0",
        "weights are all zero, so all starts would be equal; set at least one above 0",
    ),
)


def amount(unit: str) -> FieldKind[float]:
    """Return the kind of a budget's amounts."""
    message = "a budget cannot be negative; leave it out to set no limit"
    return number(MOST_AMOUNT, unit, SchemaRule("self >= 0.0", message))


@dataclass(frozen=True, slots=True)
class BundleFields:
    """The place of the model for whenPolicy onnx."""

    config_map: str = custom_field(
        "configMapName",
        text(
            253,
            "name",
            SchemaRule(
                "self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",
                "configMapName must be the name of a ConfigMap, lower case letters, digits, '-' "
                "and '.'",
            ),
        ),
        "The ConfigMap in the operator's namespace with the bundle. A model runs within the "
        "operator, so only users who may write in that namespace can add one.",
        needed="configMapName is missing",
    )


def _bundle(found: BundleFields, where: str) -> str:
    if not found.config_map:
        raise BadInput(f"{where}: configMapName is missing")
    return found.config_map


BUNDLE = group(
    BundleFields,
    _bundle,
    SchemaRule(
        "has(self.configMapName)",
        "a bundle needs configMapName, the ConfigMap in the operator's namespace that holds it",
    ),
)
