"""Kinds of some fields of a GreenPolicy: weights, carbon limit, budget amounts, and a bundle."""

from dataclasses import dataclass

from greensched_core.errors import BadInput
from greensched_core.quoting import quoted
from greensched_operator.objects.custom_fields import (
    FieldKind,
    SchemaRule,
    custom_field,
    group,
    number,
    plain,
    text,
)
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, NOT_ABOVE_NOW, Weights

MOST_WEIGHT = 1e6  # above it, rounding would lose the other weights
MOST_PRICE = 1_000_000  # of a tonne of CO2e, in the currency of the zone's price
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


_GRAMS_PER_TONNE = 1e6
_LIMIT_PRICES = {"not-above-now": NOT_ABOVE_NOW, "none": NO_CARBON_LIMIT}
_LIMIT_WORDS = " or ".join(_LIMIT_PRICES)


def _carbon_limit(raw: object, where: str) -> float:
    """Return the money that a gram above a start now must save."""
    if isinstance(raw, str):
        if raw not in _LIMIT_PRICES:
            raise BadInput(
                f"{where}: {quoted(raw)} is not {_LIMIT_WORDS}, nor a whole price per tonne"
            )
        return _LIMIT_PRICES[raw]
    price = plain(int, raw, where)
    if not 0 <= price <= MOST_PRICE:
        raise BadInput(f"{where}: {price} must be from 0 to {MOST_PRICE}")
    return price / _GRAMS_PER_TONNE


CARBON_LIMIT = FieldKind(
    _carbon_limit,
    {"x-kubernetes-int-or-string": True, "maxLength": 32},
    "`not-above-now`, `none`, price per tonne",
    (
        SchemaRule(
            f"type(self) == int ? self >= 0 && self <= {MOST_PRICE} : self in {[*_LIMIT_PRICES]}",
            f"carbonLimit must be {_LIMIT_WORDS}, or a whole price per tonne of CO2e, from 0 to "
            f"{MOST_PRICE}",
        ),
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
