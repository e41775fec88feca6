"""The demo's page: one HTML file that needs no network, plots and tables side by side."""

import html
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from greensched_core.labels import SCHEDULER_NAME
from greensched_core.units import SECONDS_PER_HOUR, kwh_from_joules
from greensched_simulator.synthetic_grid import Slot
from greensched_testbed.demo.results import Bill, RunResult
from greensched_testbed.demo.tables import change_text, comparison_rows, group_rows

# What is drawn of a bill: above idle, and idle.
_PARTS: tuple[tuple[str, Callable[[Bill], tuple[float, float]]], ...] = (
    (
        "energy, kWh",
        lambda bill: (kwh_from_joules(bill.energy_active_j), kwh_from_joules(bill.energy_idle_j)),
    ),
    ("cost, EUR", lambda bill: (bill.cost_active, bill.cost_idle)),
    ("carbon, kg", lambda bill: (bill.carbon_active_g / 1e3, bill.carbon_idle_g / 1e3)),
)
_PLOTLY_CONFIG = {"responsive": True, "displayModeBar": False}
_OURS, _THEIRS = "#2e8b57", "#8c96a3"
_ZONE_COLOURS = ("#e3a008", "#2b7bba", "#5b4636", "#8e44ad", "#16a085", "#c0392b")


def write_report(
    path: Path,
    ours: RunResult,
    default: RunResult,
    grid: Mapping[str, Sequence[Slot]],
    facts: Sequence[tuple[str, str]],
) -> None:
    """Write the page to `path`; `facts` are what the run was: workload, machine, seeds."""
    figures = [
        ("What the workload cost", _totals(ours, default)),
        ("Where the pods went, by grid zone", _shares(ours, default, "by_zone")),
        ("Where the pods went, by hardware generation", _shares(ours, default, "by_generation")),
        ("The grid, and when and where GreenSched placed pods", _timeline(ours, grid)),
    ]
    plots = "\n".join(
        f"<section><h2>{html.escape(title)}</h2>"
        f"{figure.to_html(full_html=False, include_plotlyjs=False, config=_PLOTLY_CONFIG)}"
        "</section>"
        for title, figure in figures
    )
    page = (files("greensched_testbed.demo") / "report.html").read_text(encoding="utf-8")
    for mark, text in {
        "@SUMMARY@": _headline(ours, default),
        "@COMPARISON@": _table(comparison_rows(ours, default)),
        "@ZONES@": _table(group_rows(ours, default, "by_zone")),
        "@GENERATIONS@": _table(group_rows(ours, default, "by_generation")),
        "@FACTS@": _table([("", ""), *facts], "facts"),
        "@PLOTS@": plots,
        "@PLOTLY@": get_plotlyjs(),
    }.items():
        page = page.replace(mark, text, 1)
    path.write_text(page, encoding="utf-8")


def _headline(ours: RunResult, default: RunResult) -> str:
    def tile(name: str, mine: float, theirs: float) -> str:
        value = change_text(mine, theirs)
        return f'<div class="tile"><b>{value}</b><span>{html.escape(name)}</span></div>'

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


def _totals(ours: RunResult, default: RunResult) -> go.Figure:
    figure = make_subplots(1, 3, subplot_titles=[title for title, _ in _PARTS])
    runs = (default, ours)
    names = [run.scheduler for run in runs]
    colours = [_colour(run) for run in runs]
    for column, (_, parts) in enumerate(_PARTS, start=1):
        for part, (label, opacity) in enumerate((("above idle", 1.0), ("idle", 0.35))):
            figure.add_bar(
                x=names,
                y=[parts(run.bill)[part] for run in runs],
                name=label,
                text=[label] * 2,
                marker={"color": colours, "opacity": opacity},
                showlegend=False,
                row=1,
                col=column,
            )
    return _styled(figure.update_layout(barmode="stack"))


def _colour(run: RunResult) -> str:
    return _OURS if run.scheduler == SCHEDULER_NAME else _THEIRS


def _shares(ours: RunResult, default: RunResult, attribute: str) -> go.Figure:
    figure = go.Figure()
    for run in (default, ours):
        groups = getattr(run, attribute)
        figure.add_bar(
            x=list(groups),
            y=[group.pods for group in groups.values()],
            name=run.scheduler,
            marker={"color": _colour(run)},
        )
    return _styled(figure.update_layout(barmode="group", yaxis_title="pods placed"))


def _timeline(ours: RunResult, grid: Mapping[str, Sequence[Slot]]) -> go.Figure:
    figure = go.Figure()
    for number, (zone, slots) in enumerate(grid.items()):
        colour = _ZONE_COLOURS[number % len(_ZONE_COLOURS)]
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
    return _styled(figure)


def _styled(figure: go.Figure) -> go.Figure:
    return figure.update_layout(
        template="plotly_white",
        height=430,
        margin={"l": 60, "r": 60, "t": 40, "b": 50},
        legend={"orientation": "h", "y": -0.18},
        font={"family": "system-ui, sans-serif", "size": 13},
    )


def _table(rows: Sequence[Sequence[str]], kind: str = "figures") -> str:
    head, *body = rows
    lines = [
        "<tr>" + "".join(f"<{cell}>{html.escape(text)}</{cell}>" for text in row) + "</tr>"
        for cell, row in [("th", head), *(("td", row) for row in body)]
    ]
    return f'<table class="{kind}">' + "".join(lines) + "</table>"
