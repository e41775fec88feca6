"""The demo's figures as rows of text, for the terminal and for the page."""

import math
from collections.abc import Sequence

from greensched_core.units import kwh_from_joules
from greensched_simulator.cells import amount
from greensched_testbed.demo.results import Group, RunResult, change_pct

Row = tuple[str, ...]


def comparison_rows(ours: RunResult, default: RunResult) -> Sequence[Row]:
    """Return a head and a line for each figure: default, ours, change."""
    mine, theirs = ours.bill, default.bill
    return [
        ("", default.scheduler, ours.scheduler, "change"),
        (
            "pods placed",
            f"{default.pods_placed} of {default.pods}",
            f"{ours.pods_placed} of {ours.pods}",
            "",
        ),
        _seconds("time to place, median", default.place_median_s, ours.place_median_s),
        _seconds("time to place, 95th percentile", default.place_p95_s, ours.place_p95_s),
        ("nodes used", str(default.nodes_used), str(ours.nodes_used), ""),
        _figure("energy, kWh", kwh_from_joules(theirs.energy_j), kwh_from_joules(mine.energy_j)),
        _figure(
            "  above idle",
            kwh_from_joules(theirs.energy_active_j),
            kwh_from_joules(mine.energy_active_j),
        ),
        _figure(
            "  idle", kwh_from_joules(theirs.energy_idle_j), kwh_from_joules(mine.energy_idle_j)
        ),
        _figure("cost, EUR", theirs.cost, mine.cost),
        _figure("  above idle", theirs.cost_active, mine.cost_active),
        _figure("  idle", theirs.cost_idle, mine.cost_idle),
        _figure("carbon, kg", theirs.carbon_g / 1e3, mine.carbon_g / 1e3),
        _figure("  above idle", theirs.carbon_active_g / 1e3, mine.carbon_active_g / 1e3),
        _figure("  idle", theirs.carbon_idle_g / 1e3, mine.carbon_idle_g / 1e3),
    ]


def group_rows(ours: RunResult, default: RunResult, attribute: str) -> Sequence[Row]:
    """Return a head and a line for each group of `by_zone` or `by_generation`: default → ours."""
    rows: list[Row] = [
        ("default → ours", "nodes", "nodes used", "pods", "kWh above idle", "kg above idle")
    ]
    theirs: dict[str, Group] = getattr(default, attribute)
    for name, mine in getattr(ours, attribute).items():
        pairs = zip(_group(theirs[name]), _group(mine), strict=True)
        rows.append((name, str(mine.nodes), *(f"{was} → {now}" for was, now in pairs)))
    return rows


def _group(group: Group) -> Row:
    return (
        str(group.nodes_used),
        str(group.pods),
        amount(kwh_from_joules(group.bill.energy_active_j)),
        amount(group.bill.carbon_active_g / 1e3),
    )


def change_text(ours: float, theirs: float) -> str:
    """Return by how much `ours` differs from `theirs`, as text: `-12.3 %`, or a dash."""
    change = change_pct(ours, theirs)
    if change is None or math.isnan(change):
        return "–"
    return f"{change:+.1f} %" if round(change, 1) else "0.0 %"


def _figure(name: str, theirs: float, ours: float) -> Row:
    return (name, amount(theirs), amount(ours), change_text(ours, theirs))


def _seconds(name: str, theirs: float, ours: float) -> Row:
    shown = ("–" if math.isnan(each) else f"{each:.2f} s" for each in (theirs, ours))
    return (name, *shown, "")
