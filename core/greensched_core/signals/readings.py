"""Values with age and source, for everything that is measured or fetched."""

from dataclasses import dataclass

GRAMS_PER_KWH = "g/kWh"
MONEY_PER_MWH = "money/MWh"  # in the currency of the settings
WATTS = "W"
RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value with its age and source, so that a stale value is recognised."""

    value: float
    unit: str
    taken_at: float  # seconds since the Unix epoch
    source: str
    estimated: bool = False

    def age_s(self, now: float) -> float:
        """Return the seconds since the reading was taken; 0 if that is in the future."""
        return max(now - self.taken_at, 0.0)
