"""Kinds of some fields of a GreenPolicy: carbon limit and budget amounts."""

from greensched_core.custom_resources.fields import FieldKind, SchemaRule, number, plain
from greensched_core.errors import BadInput
from greensched_core.quoting import quoted
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, NOT_ABOVE_NOW

MOST_PRICE = 1_000_000  # of a tonne of CO2e, in the currency of the zone's price
MOST_AMOUNT = 1e15  # of a budget, in kWh and kg: more than all of humanity uses

_GRAMS_PER_TONNE = 1e6
_LIMIT_PRICES = {"not-above-now": NOT_ABOVE_NOW, "none": NO_CARBON_LIMIT}
_LIMIT_WORDS = " or ".join(_LIMIT_PRICES)


def _carbon_limit(raw: object, where: str) -> float:
    """Return the money that a gram above a start now must save."""
    if isinstance(raw, str):
        if raw not in _LIMIT_PRICES:
            raise BadInput(
                f"{where}: {quoted(raw)} is not {_LIMIT_WORDS}, nor a whole price per tonne "
                "without quotes"
            )
        return _LIMIT_PRICES[raw]
    if isinstance(raw, float) and not raw.is_integer():
        raise BadInput(f"{where}: {raw:g} must be a whole price per tonne")
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


def amount_field(unit: str) -> FieldKind[float]:
    """Return the kind of a budget's amounts."""
    message = "a budget cannot be negative; leave it out to set no limit"
    return number(MOST_AMOUNT, unit, SchemaRule("self >= 0.0", message))
