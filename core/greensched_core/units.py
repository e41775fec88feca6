"""Unit conversions, in one place: SI inside, other units only at the edges."""

JOULES_PER_KWH = 3_600_000.0
SECONDS_PER_HOUR = 3_600.0
GRAMS_PER_POUND = 453.59237  # exact: international avoirdupois pound
KWH_PER_MWH = 1_000.0


def kwh_from_joules(energy_j: float) -> float:
    """Convert joules to kilowatt-hours."""
    return energy_j / JOULES_PER_KWH


def joules_from_kwh(energy_kwh: float) -> float:
    """Convert kilowatt-hours to joules."""
    return energy_kwh * JOULES_PER_KWH


def grams_per_kwh_from_pounds_per_mwh(pounds_per_mwh: float) -> float:
    """Convert lb/MWh, WattTime's unit, to g/kWh."""
    return pounds_per_mwh * GRAMS_PER_POUND / KWH_PER_MWH


def watts_from_microwatts(power_uw: float) -> float:
    """Convert microwatts, RAPL's and Scaphandre's unit, to watts."""
    return power_uw * 1e-6


def watts_from_milliwatts(power_mw: float) -> float:
    """Convert milliwatts, NVML's unit, to watts."""
    return power_mw * 1e-3
