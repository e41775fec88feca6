"""Compares a published figure with ours."""

import math
from typing import NamedTuple

NOT_PUBLISHED = math.nan  # of a figure that is shown only to explain another


class ComparedLine(NamedTuple):
    """One figure, published and ours; equal if they differ by no more than the tolerance."""

    case: str
    figure: str
    published: float
    ours: float
    tolerance: float

    @property
    def is_published(self) -> bool:
        """Return whether there is a published figure."""
        return not math.isnan(self.published)

    @property
    def difference(self) -> float:
        """Return our figure minus the published one."""
        return self.ours - self.published

    @property
    def is_equal(self) -> bool:
        """Return whether ours is within the tolerance; True without a published figure."""
        return not self.is_published or abs(self.difference) <= self.tolerance
