"""The weights as users write them, with their limits: a GreenPolicy's field `spec.weights`."""

from dataclasses import dataclass

from greensched_core.custom_resources.fields import SchemaRule, custom_field, group, number
from greensched_core.errors import BadInput
from greensched_policies.encoding.weights import Weights

MOST_WEIGHT = 1e6  # above it, rounding would lose the other weights

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
    """How much each counts in the choice of a start, and of a node."""

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
