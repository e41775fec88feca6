"""The carbon that a wait may cost: by default a later start emits no more than a start now.

Money and carbon often fall at different hours. Without a limit a rule that weighs both waits for
dirtier power wherever it is cheap enough. A start now counts as the first start with room, when
work that is not held runs. `docs/decisions/0015-never-dirtier-unasked.md` has the measurements.
"""

from greensched_policies.encoding.weights import CarbonLimit

_ROUNDING = 1e-6  # of the grams of a run: means over a run differ in their last digits


def is_within(carbon_g: float, saved: float, now_g: float, limit: CarbonLimit) -> bool:
    """Return whether the limit allows a run that emits `carbon_g` and saves money against now."""
    most_g = min(now_g, limit.at_arrival_g)
    if not is_above(carbon_g, most_g):
        return True
    return limit.price_per_g * (carbon_g - most_g) <= saved


def is_above(carbon_g: float, most_g: float) -> bool:
    """Return whether a run emits more, beyond rounding."""
    return carbon_g > most_g * (1.0 + _ROUNDING)
