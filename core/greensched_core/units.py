"""Unit conversions: SI units inside, other units only at the interfaces."""

JOULES_PER_KWH = 3_600_000.0
SECONDS_PER_HOUR = 3_600.0
SECONDS_PER_DAY = 86_400.0
KWH_PER_MWH = 1_000.0
_LEAST_CHANCE = 1e-4  # smaller ones are told as smaller than this
SAME_MOMENT_S = 1e-6  # rounding errors of summed durations are smaller


def kwh_from_joules(energy_j: float) -> float:
    """Convert joules to kilowatt-hours."""
    return energy_j / JOULES_PER_KWH


def watts_from_microwatts(power_uw: float) -> float:
    """Convert microwatts, RAPL's and Scaphandre's unit, to watts."""
    return power_uw * 1e-6


def percent_text(share: float) -> str:
    """Return a share as text: 0.43 as `43 %`."""
    return f"{share:.0%}".replace("%", " %")


def signed_percent(share: float) -> str:
    """Return a change as text: -0.68 as `-68 %`, 0.04 as `+4 %`, and 0.001 as `0 %`."""
    return f"{share:+.0%}".replace("+0%", "0%").replace("-0%", "0%").replace("%", " %")


def change(then: float | None, now: float | None) -> float | None:
    """Return the difference as a share of `now`; None if one is unknown or `now` is 0."""
    return None if then is None or not now else (then - now) / abs(now)


def chance_text(chance: float) -> str:
    """Return a chance, 0..1, as a percentage with at least two digits; never as certainty."""
    if chance < _LEAST_CHANCE:
        return f"less than {100.0 * _LEAST_CHANCE:g} %"
    if chance > 1.0 - _LEAST_CHANCE:
        return f"more than {100.0 * (1.0 - _LEAST_CHANCE):g} %"
    if chance >= 0.995:  # not 100 %
        return f"{100.0 * chance:.4g} %"
    return f"{100.0 * chance:.2g} %" if chance < 0.1 else f"{100.0 * chance:.0f} %"
