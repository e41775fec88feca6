"""Power curves: watts of a machine by the utilisation of its CPUs."""

import math
from dataclasses import dataclass
from typing import Self

from greensched_core.errors import BadInput
from greensched_core.quoting import quoted

POINTS = 11  # SPECpower_ssj2008 reports watts at 0, 10 … 100 % load

# Median normalised curve of SPECpower_ssj2008 results published 2021–22, load 0 … 100 %
# (cloud-carbon-footprint/ccf-coefficients:SPECpower-2026-03-09.csv; our medians).
SPECPOWER_2021_SHAPE = (0.233, 0.362, 0.421, 0.473, 0.521, 0.568, 0.618, 0.682, 0.766, 0.892, 1.0)


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Watts of a machine without its GPUs at 0, 10 … 100 % CPU utilisation, linear between.

    Raises BadInput unless there are 11 finite, non-negative values of which idle is the least.
    """

    watts: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.watts) != POINTS:
            raise BadInput(f"a power curve needs {POINTS} watts (0, 10 … 100 % load), "
                           f"got {len(self.watts)}")  # fmt: skip
        if any(not math.isfinite(watts) or watts < 0 for watts in self.watts):
            raise BadInput(f"watts of a power curve must be finite and not negative: {self.watts}")
        if min(self.watts) < self.watts[0]:
            raise BadInput(f"a power curve cannot fall below its idle watts: {self.watts}")

    @property
    def idle_w(self) -> float:
        """Watts at no load."""
        return self.watts[0]

    @property
    def peak_w(self) -> float:
        """Watts at full load."""
        return self.watts[-1]

    def at(self, utilisation: float) -> float:
        """Return the watts at a utilisation, which is clipped to 0 … 1."""
        place = min(max(utilisation, 0.0), 1.0) * (POINTS - 1)
        point = min(int(place), POINTS - 2)
        below, above = self.watts[point], self.watts[point + 1]
        return below + (above - below) * (place - point)

    def utilisation_for(self, power_w: float) -> float:
        """Return the least utilisation 0 … 1 at which the curve reaches `power_w` watts."""
        if power_w <= self.watts[0]:
            return 0.0
        for point in range(POINTS - 1):
            below, above = self.watts[point], self.watts[point + 1]
            if below < power_w <= above:
                return (point + (power_w - below) / (above - below)) / (POINTS - 1)
        return 1.0

    @classmethod
    def from_idle_and_peak(cls, idle_w: float, peak_w: float) -> Self:
        """Return the typical curve of 2021–22 servers, scaled to the given watts at both ends."""
        foot, top = SPECPOWER_2021_SHAPE[0], SPECPOWER_2021_SHAPE[-1]
        span_w = peak_w - idle_w
        return cls(
            tuple(
                idle_w + span_w * ((share - foot) / (top - foot)) for share in SPECPOWER_2021_SHAPE
            )
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the curve of 11 comma-separated watts; raise BadInput otherwise."""
        try:
            watts = tuple(float(part) for part in text.split(","))
        except ValueError:
            raise BadInput(
                f"{quoted(text)} is not a power curve; write {POINTS} watts, for 0, 10 … 100 % "
                "load, separated by commas"
            ) from None
        return cls(watts)

    def scaled(self, factor: float) -> Self:
        """Return the curve of a machine `factor` times as large."""
        return type(self)(tuple(watts * factor for watts in self.watts))
