"""When a budget lets work start.

A function of numbers: the operator calls it, and the simulator's engine compiles it.
"""


def opens_s(
    spent_kwh: float, spent_kg: float, most_kwh: float, most_kg: float, period_ends_s: float
) -> float:
    """Return the earliest start that a budget allows; infinite amounts have no limit.

    It is minus infinity while some is left of all that is limited, else the end of the period.
    """
    is_over = spent_kwh >= most_kwh or spent_kg >= most_kg
    return period_ends_s if is_over else -float("inf")
