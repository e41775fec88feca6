"""The plots of a report for papers: SVG and PNG; equal runs give equal bytes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.scale import FuncScale
from matplotlib.ticker import MultipleLocator

from greensched_simulator.policy import Policy
from greensched_simulator.reports.axes import scale_of
from greensched_simulator.reports.looks import (
    FRONT_COLOUR,
    OTHERS_COLOUR,
    Look,
    change_colour,
    hours_between_ticks,
    looks,
    zone_colours,
)
from greensched_simulator.reports.views import Views, against, drawn_first, front
from greensched_simulator.results.comparison import Results

WIDTH_IN = 7.0  # two columns of a paper
_DPI = 200
_LINE_IN = 0.17  # of a legend, and of a row of figures
_LETTER_IN, _HANDLE_IN = 0.055, 0.45  # most for a letter and the handle of a legend's label
_Drawn = Iterator[tuple[str, Figure]]
_Looks = Mapping[Policy, Look]


def write_run_plots(folder: Path, views: Views, results: Results, currency: str) -> None:
    """Write each plot into `folder` as SVG and as PNG."""
    folder.mkdir(exist_ok=True)
    with mpl.rc_context(
        {
            "font.size": 8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 8,
            "legend.frameon": False,
            "legend.fontsize": 7,
            "svg.hashsalt": "greensched",  # makes ids in the file reproducible
        }
    ):
        for name, figure in _drawn(views, results, currency):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"{name}.png", dpi=_DPI)


def _drawn(views: Views, results: Results, currency: str) -> _Drawn:
    look = looks(results.policies, results.baseline, views.marked)
    if len(results.policies) > 1:
        if views.changes:
            yield "change", _change(views, results)
        if views.points:
            yield "pareto", _pareto(views, look, currency)
    yield "power", _power(views, results, look)
    yield "waits", _waits(views, look)


def _change(views: Views, results: Results) -> Figure:
    assert results.baseline is not None, "changes are drawn only against a baseline"
    policies = list(views.changes[0].by_policy)
    figure, axes = _row(len(views.changes), 1.05 + _LINE_IN * len(policies), is_shared=True)
    for place, shown in zip(axes, views.changes, strict=True):
        for row, (policy, percent) in enumerate(shown.by_policy.items()):
            error = None if math.isnan(percent.low) else percent.high - percent.mean
            place.errorbar(
                percent.mean,
                row,
                xerr=error,
                fmt="o",
                ms=4,
                lw=1,
                capsize=2,
                color=change_colour(percent, does_less=policy in views.do_less),
            )
        place.axvline(0.0, color="black", lw=0.8)
        place.set(title=f"change of {shown.title}\nagainst {results.baseline.label}, %")
        place.grid(lw=0.3)
    axes[0].set_yticks(range(len(policies)), [policy.label for policy in policies])
    axes[0].set_ylim(len(policies) - 0.4, -0.6)
    return figure


def _pareto(views: Views, look: _Looks, currency: str) -> Figure:
    handles = [_front_line(), *_dots(views, look)]
    columns = legend_columns([str(each.get_label()) for each in handles])
    lines = math.ceil(len(handles) / columns)
    titles = against(views.points, currency)
    figure = Figure(figsize=(WIDTH_IN, 5.0 + _LINE_IN * lines), layout="constrained")
    for number, (field, title) in enumerate(titles.items(), start=1):
        best = front(views.points, field)
        place = figure.add_subplot(2, 2, number)
        place.step([point.carbon_kg for point in best], [getattr(point, field) for point in best],
                   where="post", color=FRONT_COLOUR, ls=":", lw=1)  # fmt: skip
        for point in views.points:
            is_marked, is_best = point.policy in views.marked, point in best
            colour = look[point.policy].colour if is_marked else OTHERS_COLOUR
            place.plot(point.carbon_kg, getattr(point, field), "o", color=colour, ms=5, ls="none",
                       mfc=colour if is_best else "none",
                       zorder=2 + is_marked + is_best)  # fmt: skip
        place.set(title=title, xlabel="carbon, kg")
        _stretch(place, "x", [point.carbon_kg for point in views.points])
        _stretch(place, "y", [getattr(point, field) for point in views.points])
        place.grid(lw=0.3)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return figure


def _front_line() -> Line2D:
    label = "filled: no other policy is better in both"
    return Line2D([], [], color=FRONT_COLOUR, ls=":", lw=1, label=label)


def _dots(views: Views, look: _Looks) -> list[Line2D]:
    colours = {policy.label: look[policy].colour for policy in views.marked}
    others = len(look) - len(colours)
    named = {**colours, f"{others} others": OTHERS_COLOUR} if others else colours
    return [Line2D([], [], marker="o", color=each, ms=5, ls="none", label=name)
            for name, each in named.items()]  # fmt: skip


def _stretch(place: Axes, side: str, values: Sequence[float]) -> None:
    """Make an axis logarithmic away from most figures if outliers would squeeze these."""
    scale = scale_of(values)
    if scale is None:
        return
    ticks = scale.ticks(values)
    place.set(**{f"{side}scale": FuncScale(None, (scale.places, scale.values))})
    place.set(**{f"{side}lim": scale.ends(values), f"{side}ticks": ticks})
    place.set(**{f"{side}ticklabels": [f"{tick:g}" for tick in ticks]})


def _power(views: Views, results: Results, look: _Looks) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 3.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for policy in drawn_first(results):
        course = views.power[policy]
        above.step(course.hours, course.values, where="post", lw=1, color=look[policy].colour,
                   label=policy.label)  # fmt: skip
    by_zone = zone_colours(list(views.grid))
    for zone, course in views.grid.items():
        below.step(course.hours, course.values, where="post", lw=1, color=by_zone[zone],
                   label=zone)  # fmt: skip
    last_h = max(float(course.hours[-1]) for course in views.power.values())
    below.set(xlabel="hours since the start", ylabel="grid, g/kWh", xlim=(0.0, last_h))
    below.xaxis.set_major_locator(MultipleLocator(hours_between_ticks(last_h)))
    above.set(ylabel="power, kW")
    for place in (above, below):
        place.set_ylim(bottom=0.0)
        place.grid(lw=0.3)
        place.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _waits(views: Views, look: _Looks) -> Figure:
    shares = views.waits.share_pct
    others = [policy for policy in shares if policy not in views.marked]
    entries = len(shares) - len(others) + bool(others)
    height_in = max(2.8, 0.6 + _LINE_IN * entries)  # room for the legend
    figure, (place,) = _row(1, height_in, is_shared=False)
    for policy in (*views.marked, *others):
        is_other = policy in others
        colour, stroke = (OTHERS_COLOUR, "solid") if is_other else look[policy]
        label = f"{len(others)} others" if policy in others[:1] else policy.label
        place.step(views.waits.hours, shares[policy], where="post", color=colour, ls=stroke,
                   lw=0.6 if is_other else 1, zorder=1.5 if is_other else 2,
                   label=f"_{label}" if policy in others[1:] else label)  # fmt: skip
    place.set(xlabel="waited no longer than, h", ylabel="share of jobs, %", ylim=(0.0, 102.0))
    place.set_xlim(left=0.0)
    place.grid(lw=0.3)
    place.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _row(count: int, height_in: float, *, is_shared: bool) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    axes = figure.subplots(1, count, sharey=is_shared, squeeze=False)
    return figure, list(axes[0])


def legend_columns(labels: Sequence[str]) -> int:
    """Return how many labels as long as the longest fit side by side."""
    longest_in = _HANDLE_IN + _LETTER_IN * max(map(len, labels))
    return max(int(WIDTH_IN / longest_in), 1)
