"""Explains in sentences why the demo's carbon changed."""

from greensched_core.units import JOULES_PER_KWH
from greensched_testbed.changes import change_pct
from greensched_testbed.demo.results import (
    BillSums,
    DemoResult,
    ThreeRuns,
    placed_same_pods,
)


def why_carbon_changed(outcome: ThreeRuns) -> str:
    """Return why carbon above idle changed, by placing and by waiting."""
    default, at_once, held = outcome.default, outcome.at_once, outcome.held
    if not (placed_same_pods(held, default) and placed_same_pods(at_once, default)):
        return "The runs placed different pods, so their carbon is not compared."
    whole = _change(held.bill.carbon_active_g, default.bill.carbon_active_g)
    zone, was, now = _decisive_zone(held, default)
    return (
        f"The same work emitted {whole} carbon above idle. "
        f"It took {_change(held.bill.energy_active_j, default.bill.energy_active_j)} energy, and "
        f"a kilowatt-hour of it emitted {_intensity(held.bill):.0f} instead of "
        f"{_intensity(default.bill):.0f} g: {now:.0f} % of the energy came from {zone} instead of "
        f"{was:.0f} %. Placing alone led to "
        f"{_change(at_once.bill.carbon_active_g, default.bill.carbon_active_g)} carbon, waiting "
        f"then to {_change(held.bill.carbon_active_g, at_once.bill.carbon_active_g)}."
    )


def _change(ours: float, theirs: float) -> str:
    percent = change_pct(ours, theirs) or 0.0
    return f"{abs(percent):.1f} % {'more' if percent > 0 else 'less'}"


def _intensity(bill: BillSums) -> float:
    kwh = bill.energy_active_j / JOULES_PER_KWH
    return bill.carbon_active_g / kwh if kwh else 0.0


def _decisive_zone(ours: DemoResult, theirs: DemoResult) -> tuple[str, float, float]:
    """Return the zone whose share of energy changed the intensity most, and its shares in %.

    A zone's effect is the change of its share times its grid's distance from the previous mean.
    """
    sign = 1.0 if _intensity(ours.bill) > _intensity(theirs.bill) else -1.0

    def effect(zone: str) -> float:
        bills = (theirs.by_zone[zone].bill, ours.by_zone[zone].bill)
        grid = next((_intensity(bill) for bill in bills if bill.energy_active_j), 0.0)
        gained = _share(ours, zone) - _share(theirs, zone)
        return sign * gained * (grid - _intensity(theirs.bill))

    zone = max(ours.by_zone, key=effect)
    return zone, _share(theirs, zone), _share(ours, zone)


def _share(run: DemoResult, zone: str) -> float:
    whole = sum(group.bill.energy_active_j for group in run.by_zone.values())
    return 100.0 * run.by_zone[zone].bill.energy_active_j / whole if whole else 0.0
