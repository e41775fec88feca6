"""Dated values: nothing measured or fetched travels without its age and its source."""

from dataclasses import dataclass

GRAMS_PER_KWH = "g/kWh"
MONEY_PER_MWH = "money/MWh"  # in the currency of the settings
WATTS = "W"
RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value with its age and source, so that nobody mistakes stale for fresh."""

    value: float
    unit: str
    taken_at: float  # seconds since the Unix epoch
    source: str
    estimated: bool = False

    def age_s(self, now: float) -> float:
        """Return the seconds since it was taken; a reading from the future has age 0."""
        return max(now - self.taken_at, 0.0)
