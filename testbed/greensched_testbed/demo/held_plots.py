"""Plots held work: how long each pod waited, and its grid's carbon meanwhile."""

from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from greensched_core.units import SECONDS_PER_HOUR
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_simulator.reports.page import styled
from greensched_testbed.demo.results import HeldPod, ThreeRuns

ZONE_COLOURS = ("#e3a008", "#2b7bba", "#5b4636", "#8e44ad", "#16a085", "#c0392b")
_WAITING = "#9aa5b1"


def held_plots(outcome: ThreeRuns, grid: Mapping[str, Sequence[SyntheticSlot]]) -> list[go.Figure]:
    """Return a figure for each grid zone with held pods; time in hours of the workload."""
    figures = []
    for number, (zone, slots) in enumerate(grid.items()):
        pods = [pod for pod in outcome.holding.pods if pod.zone == zone]
        if pods:
            colour = ZONE_COLOURS[number % len(ZONE_COLOURS)]
            figures.append(_held_plot(zone, slots, pods, colour))
    return figures


def _held_plot(
    zone: str, slots: Sequence[SyntheticSlot], pods: Sequence[HeldPod], colour: str
) -> go.Figure:
    figure = go.Figure()
    until_h = slots[-1].start_s / SECONDS_PER_HOUR
    figure.add_scatter(
        x=[slot.start_s / SECONDS_PER_HOUR for slot in slots],
        y=[slot.carbon_g_per_kwh for slot in slots],
        name="carbon intensity, g/kWh",
        line={"shape": "hv", "color": "#c0392b"},
        yaxis="y2",
    )
    waits = [(pod.arrived_s, pod.started_s) for pod in pods]
    runs = [(pod.started_s, min(pod.started_s + pod.runtime_s, until_h * 3600.0)) for pod in pods]
    for name, spans, line in (
        ("held", waits, {"color": _WAITING, "width": 2, "dash": "dot"}),
        ("runs", runs, {"color": colour, "width": 5}),
    ):
        figure.add_scatter(
            x=_ends(spans), y=_rows(len(pods)), mode="lines", name=name, line=line, hoverinfo="x"
        )
    figure.add_scatter(
        x=[pod.started_s / SECONDS_PER_HOUR for pod in pods],
        y=[row + 1 for row in range(len(pods))],
        mode="markers",
        name="released and placed",
        marker={"color": colour, "size": 8, "line": {"color": "#1f2933", "width": 1}},
        text=[f"{pod.name}: {pod.reason}" for pod in pods],
        hoverinfo="text+x",
    )
    figure.update_layout(
        title=zone,
        xaxis={"title": "hours of the workload", "range": [0, until_h]},
        yaxis={"title": "held pods, by arrival", "showgrid": False, "rangemode": "tozero"},
        yaxis2={
            "title": "g/kWh", "overlaying": "y", "side": "right", "showgrid": False,
            "rangemode": "tozero", "tickformat": ".0f", "tickmode": "auto", "nticks": 6,
        },
    )  # fmt: skip
    return styled(figure)


def _ends(spans: Iterable[tuple[float, float]]) -> list[float | None]:
    """Return both ends of each span in hours, each followed by a gap."""
    found: list[float | None] = []
    for begin_s, end_s in spans:
        found += [begin_s / SECONDS_PER_HOUR, end_s / SECONDS_PER_HOUR, None]
    return found


def _rows(count: int) -> list[float | None]:
    return [row for at in range(count) for row in (at + 1, at + 1, None)]
