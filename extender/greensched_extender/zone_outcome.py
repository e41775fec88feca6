"""What becomes of a planned zone; without arrays, for the command line."""

from dataclasses import dataclass
from enum import StrEnum


class ZoneOutcome(StrEnum):
    """What became of a planned zone."""

    HONOURED = "honoured"
    BETTER_ELSEWHERE = "better_elsewhere"  # by more than a tenth
    NOT_OFFERED = "not_offered"  # no node of that zone is among the candidates
    NO_SIGNAL = "no_signal"  # the zone has no fresh data to compare it by
    OTHER_TIME = "other_time"  # the plan is for another time than now
    UNREADABLE = "unreadable"  # the annotation cannot be read


@dataclass(frozen=True, slots=True)
class PlannedZone:
    """A pod's planned zone, and what became of it."""

    zone: str
    outcome: ZoneOutcome
