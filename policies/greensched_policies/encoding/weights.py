"""The weights of the three aims, and the carbon limit; without arrays, for code without numpy."""

import math
from typing import NamedTuple


class Weights(NamedTuple):
    """The weights of money, carbon and performance; not negative."""

    cost: float
    carbon: float
    performance: float


NOT_ABOVE_NOW = math.inf  # no sum of money is worth a gram
NO_CARBON_LIMIT = -math.inf


class CarbonLimit(NamedTuple):
    """How much more carbon than a start now a later start may emit."""

    # Money that each gram above a start now must save; NOT_ABOVE_NOW or NO_CARBON_LIMIT.
    price_per_g: float = NO_CARBON_LIMIT
    # Grams of a run that had started on arrival; infinity: it has just arrived, or is unknown.
    at_arrival_g: float = math.inf


UNLIMITED = CarbonLimit()
