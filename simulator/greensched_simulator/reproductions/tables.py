"""A published figure beside ours."""

import math
from typing import NamedTuple

NOT_PUBLISHED = math.nan  # of a figure that stands beside another so that this one is understood


class ComparedLine(NamedTuple):
    """One figure; equal where they differ by no more than the tolerance."""

    case: str
    figure: str
    published: float
    ours: float
    tolerance: float

    @property
    def is_published(self) -> bool:
        """Tell whether there is a published figure to compare with."""
        return not math.isnan(self.published)

    @property
    def difference(self) -> float:
        """Return ours less the published one."""
        return self.ours - self.published

    @property
    def is_equal(self) -> bool:
        """Tell whether ours is the published figure, within the tolerance, if there is one."""
        return not self.is_published or abs(self.difference) <= self.tolerance
