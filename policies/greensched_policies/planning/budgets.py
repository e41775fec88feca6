"""When a budget lets work start, and what a run takes of it.

Functions of numbers: the operator calls them, and the simulator's engine compiles them.
"""

from greensched_core.units import JOULES_PER_KWH


def run_kwh(power_w: float, runtime_s: float, merit: float) -> float:
    """Return the energy of a run; `merit` is that of its node, relative to the zone's mean node."""
    return power_w * runtime_s * merit / JOULES_PER_KWH


def opens_s(
    spent_kwh: float, spent_kg: float, most_kwh: float, most_kg: float, period_ends_s: float
) -> float:
    """Return the earliest start that a budget allows; infinite amounts have no limit.

    It is minus infinity while some is left of all that is limited, else the end of the period.
    """
    is_over = spent_kwh >= most_kwh or spent_kg >= most_kg
    return period_ends_s if is_over else -float("inf")
