"""The weights of the three aims; without arrays, so that code without numpy can use them."""

from typing import NamedTuple


class Weights(NamedTuple):
    """The weights of money, carbon and performance; not negative."""

    cost: float
    carbon: float
    performance: float
