"""A pod's energy during its run, from a meter's points in Prometheus.

A meter sees a run from about its first scrape to its last. The functions return the energy that it
saw, and the share of the run's time that this covers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Scrapes are at most a minute apart, and may be late. A counter that first appears within this time
# of a pod's start began with the pod; a reset happened between two scrapes this close.
LONGEST_GAP_S = 90.0

EnergyPoint = tuple[float, float]  # seconds since the Unix epoch, value; in order of time


@dataclass(frozen=True, slots=True)
class Piece:
    """Energy used between two times."""

    begin_s: float  # seconds since the Unix epoch
    until_s: float
    energy_j: float


def counter_pieces(points: Sequence[EnergyPoint], begin_s: float, until_s: float) -> list[Piece]:
    """Return the energy between the points of a counter of joules that begins at 0 with a run.

    After a reset the counter goes on from 0. Energy of points after the run's end counts until the
    end: Kepler shows an ended pod once more. Spans that the meter did not see are left out.
    """
    pieces: list[Piece] = []
    before: EnergyPoint | None = None
    for at_s, joules in points:
        if not math.isfinite(joules) or joules < 0:
            continue
        since_s, known_j = before or (begin_s, 0.0)
        is_seen = at_s - since_s <= LONGEST_GAP_S
        if before is not None and joules >= known_j:
            taken_j: float | None = joules - known_j
        else:  # the counter begins, or was reset
            taken_j = joules if is_seen else None
        if taken_j is not None:
            begin, until = _within(since_s, at_s, begin_s, until_s)
            pieces.append(Piece(begin, until, taken_j))
        before = at_s, joules
    return pieces


def gauge_pieces(
    points: Sequence[EnergyPoint], begin_s: float, until_s: float, step_s: float
) -> list[Piece]:
    """Return the energy of points in watts, each of which held for the `step_s` before it."""
    pieces = []
    for at_s, watts in points:
        begin, until = _within(at_s - step_s, at_s, begin_s, until_s)
        if math.isfinite(watts) and watts >= 0 and until > begin:
            pieces.append(Piece(begin, until, watts * (until - begin)))
    return pieces


def share_seen(pieces: Iterable[Piece], begin_s: float, until_s: float) -> float:
    """Return the share of a run's time, 0 … 1, that the pieces cover."""
    if until_s <= begin_s:  # both within one second of the API server's clock
        return 1.0 if any(True for _ in pieces) else 0.0
    seen_s, last_s = 0.0, begin_s
    for piece in sorted(pieces, key=lambda piece: piece.begin_s):
        seen_s += max(piece.until_s - max(piece.begin_s, last_s), 0.0)
        last_s = max(last_s, piece.until_s)
    return min(seen_s / (until_s - begin_s), 1.0)


def scaled(pieces: Iterable[Piece], factor: float) -> list[Piece]:
    """Return the pieces with `factor` times their energy."""
    return [Piece(each.begin_s, each.until_s, each.energy_j * factor) for each in pieces]


def energy_j(pieces: Iterable[Piece]) -> float:
    """Return the energy of all pieces in joules."""
    return math.fsum(piece.energy_j for piece in pieces)


def _within(since_s: float, at_s: float, begin_s: float, until_s: float) -> EnergyPoint:
    """Clip a span to a run."""
    return min(max(since_s, begin_s), until_s), min(max(at_s, begin_s), until_s)
