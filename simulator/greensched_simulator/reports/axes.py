"""Axes of plots on which a few outliers would squeeze all other figures together."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats

_FEW = 4  # one figure in four may be an outlier
_SQUEEZED = 0.2  # of the axis; if all others take less, they are squeezed
_ALIKE = 1e-3  # of the axis; figures nearer to each other look the same
_MARGIN, _TICKS_APART = 0.05, 0.12  # of the axis


class Scale(NamedTuple):
    """An axis that is linear around its centre and logarithmic far from it, on both sides."""

    centre: float
    width: float  # of the linear part, on each side

    def places(self, values: npt.ArrayLike) -> Floats:
        """Return the places of figures on the axis."""
        return np.asarray(np.arcsinh((np.asarray(values) - self.centre) / self.width))

    def values(self, places: npt.ArrayLike) -> Floats:
        """Return the figures at places of the axis."""
        return np.asarray(self.centre + self.width * np.sinh(np.asarray(places)))

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the figures at the axis' ends, a little beyond the given ones."""
        low, high = self.places([min(values), max(values)]).tolist()
        beyond = _MARGIN * (high - low)
        first, last = self.values([low - beyond, high + beyond]).tolist()
        return first, last

    def ticks(self, values: Sequence[float]) -> list[float]:
        """Return round numbers between the figures, in order, far enough apart to be read."""
        low, high = min(values), max(values)
        ends = self.places([low, high])
        apart, taken = _TICKS_APART * (ends[1] - ends[0]), list[float]()
        for number in _round_numbers(low, high, self.width / 2.0):
            if np.all(np.abs(self.places(taken) - self.places([number])) >= apart):
                taken.append(number)
        return sorted(taken)


def scale_of(values: Sequence[float]) -> Scale | None:
    """Return the axis that separates most figures; None if a linear one does.

    Figures that look alike count once: no axis separates them.
    """
    span = max(values) - min(values)
    if not span > 0.0:
        return None
    unlike = np.unique(np.round(np.array(values) / (_ALIKE * span))) * _ALIKE * span
    others = unlike.size - max(unlike.size // _FEW, 1)
    widths = unlike[others - 1 :] - unlike[: unlike.size - others + 1]
    first = int(np.argmin(widths))
    width = float(widths[first])
    if not 0.0 < width < _SQUEEZED * span:
        return None
    return Scale(float(unlike[first]) + width / 2.0, width / 2.0)


def _round_numbers(low: float, high: float, finest: float) -> Iterator[float]:
    """Yield round numbers from `low` to `high`, coarse ones first, down to steps of `finest`."""
    decade = int(np.ceil(np.log10(high - low)))
    while 10.0**decade >= finest:
        for step in (float(f"1e{decade}"), float(f"5e{decade - 1}")):
            for number in range(int(np.ceil(low / step)), int(high // step) + 1):
                # Via text, so that a tick reads 0.03, not 0.030000000000000002.
                yield float(f"{number * step:.12g}")
        decade -= 1
