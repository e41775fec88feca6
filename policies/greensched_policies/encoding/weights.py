"""How much each of the three aims matters; no arrays, so that everybody can name them."""

from typing import NamedTuple


class Weights(NamedTuple):
    """How much money, carbon and performance matter; not negative."""

    cost: float
    carbon: float
    performance: float
