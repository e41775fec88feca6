"""A published figure beside ours."""

from typing import NamedTuple


class Line(NamedTuple):
    """One figure; equal where they differ by no more than the tolerance."""

    case: str
    figure: str
    published: float
    ours: float
    tolerance: float

    @property
    def difference(self) -> float:
        """Return ours less the published one."""
        return self.ours - self.published

    @property
    def is_equal(self) -> bool:
        """Tell whether ours is the published figure, within the tolerance."""
        return abs(self.difference) <= self.tolerance
