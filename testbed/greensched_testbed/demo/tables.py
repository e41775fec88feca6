"""Formats the demo's figures as rows of text, for the terminal and the page."""

import math
from collections.abc import Callable, Sequence

from greensched_core.durations import format_duration
from greensched_core.units import JOULES_PER_KWH, kwh_from_joules
from greensched_simulator.results.cells import amount
from greensched_testbed.changes import relative_change_text
from greensched_testbed.demo.results import (
    BillSums,
    DemoResult,
    GroupSums,
    Holding,
    ThreeRuns,
    placed_same_pods,
)

DemoRow = tuple[str, ...]


def comparison_rows(ours: DemoResult, default: DemoResult) -> Sequence[DemoRow]:
    """Return a header and a row for each figure: default, ours, change.

    No change is given if the runs placed different pods.
    """
    is_fair = placed_same_pods(ours, default)
    bills = default.bill, ours.bill

    def figure(name: str, line: str, of: float = 1.0) -> DemoRow:
        theirs, mine = (getattr(bill, line) / of for bill in bills)
        return (
            name,
            amount(theirs),
            amount(mine),
            relative_change_text(mine, theirs) if is_fair else "–",
        )

    return [
        ("", default.scheduler, ours.scheduler, "change"),
        (
            "pods placed",
            f"{default.pods_placed} of {default.pods}",
            f"{ours.pods_placed} of {ours.pods}",
            "" if is_fair else "not the same",
        ),
        _seconds("time to place, median", default.place_median_s, ours.place_median_s),
        _seconds("time to place, 95th percentile", default.place_p95_s, ours.place_p95_s),
        ("nodes used", str(default.nodes_used), str(ours.nodes_used), ""),
        figure("energy, kWh", "energy_j", JOULES_PER_KWH),
        figure("  above idle", "energy_active_j", JOULES_PER_KWH),
        figure("  idle", "energy_idle_j", JOULES_PER_KWH),
        figure("cost, EUR", "cost"),
        figure("  above idle", "cost_active"),
        figure("  idle", "cost_idle"),
        figure("carbon, kg", "carbon_g", 1e3),
        figure("  above idle", "carbon_active_g", 1e3),
        figure("  idle", "carbon_idle_g", 1e3),
    ]


_LEVERS: tuple[tuple[str, Callable[[BillSums], float]], ...] = (
    ("carbon above idle", lambda bill: bill.carbon_active_g),
    ("cost above idle", lambda bill: bill.cost_active),
    ("energy above idle", lambda bill: bill.energy_active_j),
    ("carbon, idle and all", lambda bill: bill.carbon_g),
    ("cost, idle and all", lambda bill: bill.cost),
    ("energy, idle and all", lambda bill: bill.energy_j),
)


def demo_lever_rows(outcome: ThreeRuns) -> Sequence[DemoRow]:
    """Return the changes by placing, by waiting and by both, each with its baseline."""
    pairs = (
        (outcome.at_once, outcome.default),
        (outcome.held, outcome.at_once),
        (outcome.held, outcome.default),
    )

    def line(name: str, figure: Callable[[BillSums], float]) -> DemoRow:
        changes = (
            relative_change_text(figure(ours.bill), figure(theirs.bill))
            if placed_same_pods(ours, theirs)
            else "–"
            for ours, theirs in pairs
        )
        return (name, *changes)

    return [
        ("", "by placing", "by waiting", "by both"),
        ("against", *(theirs.scheduler for _, theirs in pairs)),
        *(line(name, figure) for name, figure in _LEVERS),
    ]


def holding_rows(holding: Holding, pods: int) -> Sequence[DemoRow]:
    """Return a header and a row for each figure on holding; times are the workload's."""
    return [
        ("", "pods"),
        ("may wait", f"{holding.may_wait} of {pods}"),
        ("held for a later hour", str(len(holding.pods))),
        ("  waited, mean", _length(holding.wait_mean_s)),
        ("  waited, longest", _length(holding.wait_longest_s)),
        ("  grid while they ran", _grid_text(holding)),
        *((f"  started: {name}", str(count)) for name, count in holding.started_for.items()),
        ("started at their latest start", str(holding.at_latest_start)),
        ("deadlines missed", str(holding.deadlines_missed)),
    ]


def _grid_text(holding: Holding) -> str:
    waited, at_once = holding.carbon_g_per_kwh, holding.at_once_carbon_g_per_kwh
    if math.isnan(waited):
        return "–"
    return f"{waited:.0f} g/kWh, at once {at_once:.0f} ({relative_change_text(waited, at_once)})"


def _length(seconds: float) -> str:
    return "–" if math.isnan(seconds) else format_duration(round(seconds / 60.0) * 60.0)


def group_rows(ours: DemoResult, default: DemoResult, attribute: str) -> Sequence[DemoRow]:
    """Return a header and a row for each group of `by_zone` or `by_generation`: default → ours."""
    rows: list[DemoRow] = [
        ("default → ours", "nodes", "nodes used", "pods", "kWh above idle", "kg above idle")
    ]
    theirs: dict[str, GroupSums] = getattr(default, attribute)
    for name, mine in getattr(ours, attribute).items():
        pairs = zip(_group(theirs[name]), _group(mine), strict=True)
        rows.append((name, str(mine.nodes), *(f"{was} → {now}" for was, now in pairs)))
    return rows


def _group(group: GroupSums) -> DemoRow:
    return (
        str(group.nodes_used),
        str(group.pods),
        amount(kwh_from_joules(group.bill.energy_active_j)),
        amount(group.bill.carbon_active_g / 1e3),
    )


def _seconds(name: str, theirs: float, ours: float) -> DemoRow:
    shown = ("–" if math.isnan(each) else f"{each:.2f} s" for each in (theirs, ours))
    return (name, *shown, "")
