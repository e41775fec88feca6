"""The interactive plots of a report: hover, zoom and switches."""

from collections.abc import Collection, Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from greensched_simulator.policy import Policy
from greensched_simulator.reports.axes import scale_of
from greensched_simulator.reports.looks import (
    FRONT_COLOUR,
    OTHERS_COLOUR,
    Look,
    change_colour,
    hours_between_ticks,
    in_two_lines,
    zone_colours,
    zone_label,
)
from greensched_simulator.reports.page import styled
from greensched_simulator.reports.views import (
    Changes,
    HourlyValues,
    Point,
    Views,
    Waits,
    against,
    front,
)
from greensched_simulator.results.cells import amount, change_text, count, large

_ROW_PIXELS, _TALL_ROW_PIXELS, _FRAME_PIXELS = 28, 38, 110
_DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot"}  # Plotly's names of strokes
Looks = Mapping[Policy, Look]


def change_figures(views: Views) -> list[go.Figure]:
    """Return a figure for each bill: every policy's change with its interval, zero marked."""
    return [_change_figure(each, views.do_less) for each in views.changes]


def _change_figure(changes: Changes, do_less: Collection[Policy]) -> go.Figure:
    percents = list(changes.by_policy.values())
    colours = [
        change_colour(percent, does_less=policy in do_less)
        for policy, percent in changes.by_policy.items()
    ]
    labels = [in_two_lines(policy.label) for policy in changes.by_policy]
    figure = go.Figure()
    figure.add_scatter(
        x=[each.mean for each in percents],
        y=labels,
        error_x={"type": "data", "array": [each.high - each.mean for each in percents],
                 "color": "#52606d", "thickness": 1.5},
        mode="markers",
        marker={"size": 9, "color": colours},
        text=[change_text(each) for each in percents],
        hovertemplate="%{y}: %{text}<extra></extra>",
        showlegend=False,
    )  # fmt: skip
    figure.update_layout(title=f"change of {changes.title}, %")
    figure.update_xaxes(
        zeroline=True, zerolinecolor="#1f2933", zerolinewidth=1.5, nticks=6, rangemode="tozero"
    )
    figure.update_yaxes(range=[len(labels) - 0.4, -0.6], automargin=True, ticks="")
    row_pixels = _TALL_ROW_PIXELS if any("<br>" in each for each in labels) else _ROW_PIXELS
    height = _FRAME_PIXELS + row_pixels * len(percents)
    return styled(figure, height).update_layout(margin={"l": 10, "r": 10})


def pareto_figures(views: Views, look: Looks, currency: str) -> list[go.Figure]:
    """Return carbon against slowdown, wait, missed deadlines and cost, each with its front."""
    return [
        _pareto_figure(views, look, field, title)
        for field, title in against(views.points, currency).items()
    ]


def _pareto_figure(views: Views, look: Looks, field: str, title: str) -> go.Figure:
    best = front(views.points, field)
    # Marked points are drawn over the rest, and the front over all.
    shown = sorted(views.points, key=lambda each: (each.policy in views.marked, each in best))
    across, below = _axis([point.carbon_kg for point in shown])
    up, left = _axis([float(getattr(point, field)) for point in shown])
    places = dict(zip((point.policy for point in shown), zip(across, up, strict=True), strict=True))
    colours = [_point_colour(point, views, look) for point in shown]
    figure = go.Figure()
    figure.add_scatter(
        x=[places[point.policy][0] for point in best],
        y=[places[point.policy][1] for point in best],
        mode="lines",
        line={"shape": "hv", "color": FRONT_COLOUR, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_scatter(
        x=across,
        y=up,
        mode="markers",
        marker={
            "size": 11,
            "color": colours,
            "symbol": ["circle" if point in best else "circle-open" for point in shown],
            "line": {"width": 2, "color": colours},
        },
        hovertext=[_hover_text(point) for point in shown],
        hoverinfo="text",
        showlegend=False,
        cliponaxis=False,
    )
    figure.update_layout(title=title)
    figure.update_xaxes(title="carbon, kg", **{"nticks": 7, **below})
    figure.update_yaxes(automargin=True, **left)
    return styled(figure, 400).update_layout(margin={"l": 10, "r": 20})


def _point_colour(point: Point, views: Views, look: Looks) -> str:
    return look[point.policy].colour if point.policy in views.marked else OTHERS_COLOUR


def _axis(values: list[float]) -> tuple[list[float], dict[str, object]]:
    """Return the places of figures on their axis, and the axis for Plotly."""
    scale = scale_of(values)
    if scale is None:
        return values, {}
    ticks = scale.ticks(values)
    axis: dict[str, object] = {
        "tickvals": scale.places(ticks).tolist(),
        "ticktext": [f"{tick:g}" for tick in ticks],
        "zeroline": False,
    }
    return scale.places(values).tolist(), axis


def _hover_text(point: Point) -> str:
    return (
        f"<b>{point.policy.label}</b><br>carbon {large(point.carbon_kg)} kg, "
        f"cost {large(point.cost)}<br>mean wait {amount(point.wait_h)} h, mean slowdown "
        f"{amount(point.slowdown)}<br>deadlines missed: {count(point.missed)}"
    )


def power_figure(
    power: Mapping[Policy, HourlyValues],
    grid: Mapping[str, HourlyValues],
    look: Looks,
    drawn: Sequence[Policy],
) -> go.Figure:
    """Return the cluster's power above the grids' carbon, hour by hour.

    The policies in `drawn` are shown; a switch shows the others.
    """
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.06
    )
    for policy, course in power.items():
        figure.add_scatter(
            x=course.hours, y=course.values, name=policy.label, row=1, col=1,
            line=_line(look[policy]), visible=policy in drawn,
        )  # fmt: skip
    by_zone = zone_colours(list(grid))
    for zone, course in grid.items():
        figure.add_scatter(
            x=course.hours, y=course.values, name=zone_label(zone), row=2, col=1,
            line={"shape": "hv", "color": by_zone[zone], "width": 1.5},
        )  # fmt: skip
    figure.update_yaxes(title="power, kW", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="grid, g/kWh", rangemode="tozero", row=2, col=1)
    last_h = max(float(course.hours[-1]) for course in power.values())
    figure.update_xaxes(dtick=hours_between_ticks(last_h))
    figure.update_xaxes(title="hours since the start", row=2, col=1)
    return _wide(figure, 480)


def waits_figure(waits: Waits, look: Looks) -> go.Figure:
    """Return each policy's cumulative share of jobs by wait."""
    figure = go.Figure()
    for policy, share_pct in waits.share_pct.items():
        figure.add_scatter(x=waits.hours, y=share_pct, name=policy.label, line=_line(look[policy]))
    figure.update_xaxes(title="waited no longer than, h", rangemode="tozero")
    figure.update_yaxes(title="share of jobs, %", range=[0, 102])
    return _wide(figure, 380)


def _line(look: Look) -> dict[str, object]:
    return {"shape": "hv", "color": look.colour, "dash": _DASHES[look.stroke], "width": 1.5}


def _wide(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(showlegend=False)
    return styled(figure, height).update_layout(margin={"l": 55, "r": 15, "t": 10, "b": 50})
