"""Writes the demo's page: one HTML file with plots and tables that needs no network."""

import html
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import plotly.graph_objects as go

from greensched_core.labels import SCHEDULER_NAME
from greensched_core.units import SECONDS_PER_HOUR, kwh_from_joules
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_simulator.reports.page import page, plots, section, styled, table
from greensched_testbed.changes import relative_change_text
from greensched_testbed.demo.explained import why_carbon_changed
from greensched_testbed.demo.held_plots import ZONE_COLOURS, held_plots
from greensched_testbed.demo.results import BillSums, DemoResult, ThreeRuns, placed_same_pods
from greensched_testbed.demo.tables import (
    comparison_rows,
    demo_lever_rows,
    group_rows,
    holding_rows,
)

# The drawn parts of a bill: above idle, and idle.
_PARTS: tuple[tuple[str, Callable[[BillSums], tuple[float, float]]], ...] = (
    (
        "energy, kWh",
        lambda bill: (kwh_from_joules(bill.energy_active_j), kwh_from_joules(bill.energy_idle_j)),
    ),
    ("cost, EUR", lambda bill: (bill.cost_active, bill.cost_idle)),
    ("carbon, kg", lambda bill: (bill.carbon_active_g / 1e3, bill.carbon_idle_g / 1e3)),
)
# Dark enough for white text; the idle parts are light enough for dark text.
_OURS, _THEIRS = "#27784b", "#5f6b7a"
_OURS_IDLE, _THEIRS_IDLE = "#c5dfd0", "#d6dae0"
_LIGHT, _DARK = "#ffffff", "#1f2933"


def write_demo_report(
    path: Path,
    outcome: ThreeRuns,
    grid: Mapping[str, Sequence[SyntheticSlot]],
    facts: Sequence[tuple[str, str]],
) -> None:
    """Write the page to `path`; `facts` describe the run: workload, machine, seeds."""
    ours, default = outcome.held, outcome.default
    until_s = _shown_until_s(outcome)
    grid = {zone: [slot for slot in grid[zone] if slot.start_s <= until_s] for zone in grid}
    pictures = [
        ("What the workload cost, simulated", _totals(outcome)),
        ("Held, placed, released: each line a pod, beside its grid", held_plots(outcome, grid)),
        ("Where the pods went, by grid zone", [_shares(ours, default, "by_zone")]),
        ("Where the pods went, by hardware generation", [_shares(ours, default, "by_generation")]),
        ("The grid, and when and where GreenSched placed pods", [_timeline(ours, grid)]),
    ]
    first, *sections = [(title, plots(figures)) for title, figures in pictures]
    body = (files("greensched_testbed.demo") / "report.html").read_text(encoding="utf-8")
    for mark, text in {
        "@SUMMARY@": _headline(ours, default),
        "@WHY@": html.escape(why_carbon_changed(outcome)),
        "@FIRST@": section(*first),
        "@LEVERS@": table(demo_lever_rows(outcome)),
        "@HOLDING@": table(holding_rows(outcome.holding, ours.pods)),
        "@COMPARISON@": table(comparison_rows(ours, default)),
        "@ZONES@": table(group_rows(ours, default, "by_zone")),
        "@GENERATIONS@": table(group_rows(ours, default, "by_generation")),
        "@FACTS@": table([("", ""), *facts], "facts"),
        "@PLOTS@": "\n".join(section(title, drawn) for title, drawn in sections),
    }.items():
        body = body.replace(mark, text, 1)
    path.write_text(page("GreenSched demo", body), encoding="utf-8")


def _headline(ours: DemoResult, default: DemoResult) -> str:
    def tile(name: str, mine: float, theirs: float) -> str:
        value = relative_change_text(mine, theirs) if placed_same_pods(ours, default) else "–"
        return f'<div class="tile"><b>{value}</b><span>{html.escape(name)}, simulated</span></div>'

    mine, theirs = ours.bill, default.bill
    return "".join(
        (
            tile("carbon", mine.carbon_g, theirs.carbon_g),
            tile("cost", mine.cost, theirs.cost),
            tile("energy", mine.energy_j, theirs.energy_j),
            tile("carbon above idle", mine.carbon_active_g, theirs.carbon_active_g),
            tile("cost above idle", mine.cost_active, theirs.cost_active),
            tile("energy above idle", mine.energy_active_j, theirs.energy_active_j),
        )
    )


def _shown_until_s(outcome: ThreeRuns) -> float:
    """Return the end of the plots' time axis: an hour after the last start."""
    runs = (outcome.held, outcome.at_once, outcome.default)
    last_s = max((at_s for run in runs for at_s, _ in run.placed_at), default=0.0)
    return last_s + SECONDS_PER_HOUR


def _totals(outcome: ThreeRuns) -> list[go.Figure]:
    """Return a figure for each kind of bill, so that a phone shows them one below the other."""
    runs = (outcome.default, outcome.at_once, outcome.held)
    names = [run.scheduler.replace(", ", ",<br>") for run in runs]
    figures = []
    for title, parts in _PARTS:
        figure = go.Figure()
        for part, (label, colours, words) in enumerate(
            (
                ("above idle", [_THEIRS, _OURS, _OURS], _LIGHT),
                ("idle", [_THEIRS_IDLE, _OURS_IDLE, _OURS_IDLE], _DARK),
            )
        ):
            figure.add_bar(
                x=names,
                y=[parts(run.bill)[part] for run in runs],
                name=label,
                text=[label] * 3,
                textposition="inside",
                textangle=0,
                textfont={"color": words},
                marker={"color": colours},
                showlegend=False,
            )
        figure.update_layout(
            barmode="stack", title=title, uniformtext={"minsize": 11, "mode": "hide"}
        )
        figures.append(styled(figure).update_layout(margin={"l": 45, "r": 10}))
    return figures


def _colour(run: DemoResult) -> str:
    return _OURS if run.scheduler == SCHEDULER_NAME else _THEIRS


def _shares(ours: DemoResult, default: DemoResult, attribute: str) -> go.Figure:
    figure = go.Figure()
    for run in (default, ours):
        groups = getattr(run, attribute)
        figure.add_bar(
            x=list(groups),
            y=[group.pods for group in groups.values()],
            name=run.scheduler,
            marker={"color": _colour(run)},
        )
    return styled(figure.update_layout(barmode="group", yaxis_title="pods placed"))


def _timeline(ours: DemoResult, grid: Mapping[str, Sequence[SyntheticSlot]]) -> go.Figure:
    figure = go.Figure()
    for number, (zone, slots) in enumerate(grid.items()):
        colour = ZONE_COLOURS[number % len(ZONE_COLOURS)]
        figure.add_scatter(
            x=[slot.start_s / SECONDS_PER_HOUR for slot in slots],
            y=[slot.carbon_g_per_kwh for slot in slots],
            name=f"{zone}, g/kWh",
            line={"shape": "hv", "color": colour},
        )
        placed = [at / SECONDS_PER_HOUR for at, where in ours.placed_at if where == zone]
        figure.add_histogram(
            x=placed,
            name=f"{zone}, pods",
            xbins={"size": 0.25},
            marker={"color": colour, "opacity": 0.45},
            yaxis="y2",
        )
    figure.update_layout(
        barmode="stack",
        xaxis_title="hours of the workload",
        yaxis_title="carbon intensity, g/kWh",
        yaxis2={
            "title": "pods placed in a quarter hour",
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "tickformat": ".0f",
            "nticks": 6,
        },
    )
    figure.update_yaxes(rangemode="tozero")
    return styled(figure)
