"""How much each of the three aims matters; no arrays, so that everybody can name them."""

from typing import NamedTuple


class Weights(NamedTuple):
    """How much energy (as money), carbon and performance matter; not negative."""

    energy: float
    carbon: float
    performance: float
