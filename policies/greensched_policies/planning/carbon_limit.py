"""The carbon that a wait may cost: by default a later start emits no more than a start now.

Money and carbon often fall at different hours. Without a limit a rule that weighs both waits for
dirtier power wherever it is cheap enough. A start now counts as the first start with room, when
work that is not held runs. `docs/decisions/0015-never-dirtier-unasked.md` has the measurements.
"""

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.weights import CarbonLimit

_ROUNDING = 1e-6  # of the grams of a run: means over a run differ in their last digits


def is_within(carbon_g: float, saved: float, now_g: float, limit: CarbonLimit) -> bool:
    """Return whether the limit allows a run that emits `carbon_g` and saves money against now."""
    most_g = min(now_g, limit.at_arrival_g)
    if carbon_g <= most_g * (1.0 + _ROUNDING):
        return True
    return limit.price_per_g * (carbon_g - most_g) <= saved


def beyond_limit(
    carbon_g: Floats, cost: Floats, has_room: npt.NDArray[np.bool_], limit: CarbonLimit
) -> npt.NDArray[np.bool_]:
    """Return which starts, [S] from now on, the limit excludes; never all of them.

    `carbon_g` and `cost`, in the currency of the limit, are those of the run from each start. A
    start now is excluded only if it emits more than one on arrival had, and some start with room
    does not.
    """
    soonest = int(has_room.argmax())
    grams, money = carbon_g.copy(), cost.copy()
    grams[0], money[0] = carbon_g[soonest], cost[soonest]
    most_g, at_arrival_g = float(grams[0]), limit.at_arrival_g
    if at_arrival_g < most_g and (has_room & ~_is_above(grams, at_arrival_g)).any():
        most_g = at_arrival_g
    is_above = _is_above(grams, most_g)
    extra_g = np.where(is_above, grams - most_g, 1.0)  # infinity times 0 is no number
    is_beyond: npt.NDArray[np.bool_] = is_above & (limit.price_per_g * extra_g > money[0] - money)
    return is_beyond


def _is_above(carbon_g: Floats, most_g: float) -> npt.NDArray[np.bool_]:
    is_above: npt.NDArray[np.bool_] = carbon_g > most_g * (1.0 + _ROUNDING)
    return is_above
