"""The report of a ledger as one HTML file that needs no network."""

import html
import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import plotly.graph_objects as go

from greensched_cli.ledger.outcomes import WorkOutcome, is_late
from greensched_cli.ledger.savings import (
    RUN_NOW_BASELINE,
    Savings,
    SavingsCourse,
    SavingsFigure,
    savings_courses,
)
from greensched_cli.ledger.tables import (
    HOW_CERTAIN,
    LedgerReport,
    decided_rows,
    in_namespace,
    losses_of,
    measured_rows,
    namespace_rows,
    report_facts,
    saved_rows,
    savings_change_text,
)
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.reports.looks import TONE_COLOURS, change_colour
from greensched_simulator.reports.page import (
    heading,
    listed,
    page,
    paragraph,
    plots,
    section,
    styled,
    table,
)
from greensched_simulator.results.cells import ConfidenceInterval, large

_ALL = "all"
_ROUNDING = 1e-9
_MOST_DRAWN = 30  # namespaces; the table has all
_LEAST_STEPS = 6  # on a time axis: a single bar would fill it, with labels in microseconds
_ROW_PIXELS, _FRAME_PIXELS = 30, 120
_FOOTER = "The records are in the same folder as CSV and Parquet files."


def write_page(path: Path, report: LedgerReport) -> None:
    """Write the page. Raises OSError."""
    whole = page("GreenSched ledger", "\n".join(_sections(report)), _FOOTER)
    path.write_text(whole, encoding="utf-8")


def _sections(report: LedgerReport) -> Iterator[str]:
    since, until = (
        format_timestamp(round(each)) for each in (report.span.since, report.span.until)
    )
    yield heading("What holding work saved")
    yield paragraph(f"{since} to {until}{in_namespace(report)}, against {RUN_NOW_BASELINE}", "lead")
    yield _tiles(report)
    if report.done.outcomes:
        yield section(
            "Work that was started",
            table(saved_rows(report.done.whole)),
            paragraph(HOW_CERTAIN),
            plots(_change_figures(report.done)),
            table(namespace_rows(report.done)),
        )
        yield section(
            "Saved over time", plots(map(_course_figure, _that_change(report.done.outcomes)))
        )
        lost = losses_of(report.done)
        yield section(
            "Where it lost",
            listed(lost) if lost else paragraph(f"No significant loss against {RUN_NOW_BASELINE}."),
        )
    if report.shadow.outcomes:
        yield section(
            "What shadow mode would have saved",
            paragraph("None of this work was held; the figures are estimates."),
            table(saved_rows(report.shadow.whole)),
            plots(_change_figures(report.shadow)),
            table(namespace_rows(report.shadow)),
        )
    if measured := measured_rows(report.done.outcomes):
        yield section("Measured and estimated", table(measured))
    yield section("What was decided", table([("", ""), *decided_rows(report)]))
    yield section("This report", table([("", ""), *report_facts(report)], "facts"))


def _that_change(outcomes: Sequence[WorkOutcome]) -> list[SavingsCourse]:
    """Return the courses that are not zero throughout: holding work alone changes no energy."""
    courses = savings_courses(outcomes)
    moving = [each for each in courses if max(map(abs, each.saved)) > _ROUNDING]
    return moving or courses


def _tiles(report: LedgerReport) -> str:
    done = report.done.outcomes
    shown, would = (report.done, "") if done else (report.shadow, "would be ")
    tiles = [_saved_tile(figure, would) for figure in shown.whole]
    late = sum(map(is_late, done))
    tiles.append(_tile(f"{late:,}", "ended late", _good_or_bad(late > 0)))
    counts = list(report.lost.values())
    losses = "unknown" if None in counts else f"{sum(each or 0 for each in counts):,}"
    tiles.append(_tile(losses, "decisions missing in the ledger", _good_or_bad(bool(counts))))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _saved_tile(figure: SavingsFigure, would: str) -> str:
    verb = f"{would}saved" if figure.saved >= 0 else f"{would}taken in excess"
    label = f"{figure.name} {verb}; {savings_change_text(figure.percent)}"
    amount = 0.0 if abs(figure.saved) < _ROUNDING else abs(figure.saved)
    return _tile(f"{large(amount)} {figure.unit}", label, change_colour(figure.percent))


def _good_or_bad(is_bad: bool) -> str:
    return TONE_COLOURS["worse" if is_bad else "better"]


def _tile(value: str, label: str, colour: str) -> str:
    return (
        f'<div class="tile"><b style="color: {colour}">{html.escape(value)}</b>'
        f"<span>{html.escape(label)}</span></div>"
    )


def _change_figures(savings: Savings) -> list[go.Figure]:
    """Return figures of energy, carbon and cost, with a row for all and for each namespace."""
    whole, parts = savings.whole, savings.by_namespace
    busiest = sorted(parts, key=lambda name: -max((f.workloads for f in parts[name]), default=0))
    drawn = sorted(busiest[:_MOST_DRAWN])
    return [
        _change_figure(
            figure,
            {
                _ALL: figure,
                **{
                    name: mine
                    for name in drawn
                    for mine in parts[name]
                    if (mine.name, mine.unit) == (figure.name, figure.unit)
                },
            },
        )
        for figure in whole
    ]


def _change_figure(shown: SavingsFigure, rows: dict[str, SavingsFigure]) -> go.Figure:
    percents = [row.percent for row in rows.values()]
    figure = go.Figure()
    figure.add_scatter(
        x=[each.mean for each in percents],
        y=list(rows),
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [each.high - each.mean for each in percents],
            "arrayminus": [each.mean - each.low for each in percents],
            "color": "#52606d",
            "thickness": 1.5,
        },
        mode="markers",
        marker={"size": 9, "color": [change_colour(each) for each in percents]},
        text=[
            f"{savings_change_text(row.percent)}, {row.workloads:,} workloads"
            for row in rows.values()
        ],
        hovertemplate="%{y}: %{text}<extra></extra>",
        showlegend=False,
    )
    unit = f", {shown.unit}" if shown.name == "cost" else ""
    figure.update_layout(title=f"change of {shown.name}{unit}, %")
    figure.update_xaxes(
        zeroline=True, zerolinecolor="#1f2933", zerolinewidth=1.5, nticks=6, range=_around(percents)
    )
    figure.update_yaxes(range=[len(rows) - 0.4, -0.6], automargin=True, ticks="", type="category")
    drawn = styled(figure, _FRAME_PIXELS + _ROW_PIXELS * len(rows))
    return drawn.update_layout(margin={"l": 10, "r": 10})


def _around(percents: Sequence[ConfidenceInterval]) -> list[float]:
    """Return the range of an axis that shows zero and every interval, with a margin."""
    ends = [0.0, *(end for each in percents for end in each if math.isfinite(end))]
    room = 0.08 * (max(ends) - min(ends)) or 1.0
    return [min(ends) - room, max(ends) + room]


def _course_figure(course: SavingsCourse) -> go.Figure:
    figure = go.Figure()
    figure.add_bar(
        x=course.starts,
        y=course.saved,
        marker={
            "color": [TONE_COLOURS["better" if each >= 0 else "worse"] for each in course.saved]
        },
        hovertemplate=f"%{{x}}: %{{y:.3g}} {course.unit}<extra></extra>",
        showlegend=False,
    )
    figure.update_layout(title=f"{course.name} saved, {course.unit}")
    figure.update_yaxes(zeroline=True, zerolinecolor="#1f2933", automargin=True)
    step = timedelta(seconds=course.step_s)
    begin = min(course.starts[0], course.starts[-1] - _LEAST_STEPS * step)
    figure.update_traces(width=0.8 * course.step_s * 1_000.0)  # milliseconds, as plotly counts
    figure.update_xaxes(nticks=6, range=[begin - step, course.starts[-1] + step])
    return styled(figure, 320).update_layout(margin={"l": 10, "r": 10})
