"""The energy of a run, as plans, ledger and budgets estimate it."""

from greensched_core.units import JOULES_PER_KWH


def run_kwh(power_w: float, runtime_s: float, merit: float) -> float:
    """Return the energy of a run; `merit` is that of its node, relative to the zone's mean node."""
    return power_w * runtime_s * merit / JOULES_PER_KWH
