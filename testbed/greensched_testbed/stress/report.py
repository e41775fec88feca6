"""Writes the benchmark's page: one HTML file that needs no network."""

from pathlib import Path

import plotly.graph_objects as go

from greensched_simulator.reports.page import (
    heading,
    page,
    paragraph,
    plots,
    section,
    styled,
    table,
)  # fmt: skip
from greensched_testbed.stress.plots import (
    COLOURS,
    completions_of,
    known_of,
    rounds_of,
    shares,
    unit_of_figure,
)
from greensched_testbed.stress.results import LINES
from greensched_testbed.stress.run import BenchmarkOutcome
from greensched_testbed.stress.tables import fact_rows, meter_rows, meter_text, strategy_rows

_TITLE = "The same work, by each strategy"


def write_benchmark_report(path: Path, outcome: BenchmarkOutcome) -> None:
    """Write the page."""
    names = list(outcome.figures)
    parts = [
        heading(_TITLE),
        paragraph(
            f"Mean of {outcome.options.rounds} rounds, with the least and the most in brackets, "
            f"then the change against {names[0]} if all completed the same Jobs in each round. "
            f"Energy, cost and carbon are those of the suite's pods above idle, by "
            f"{meter_text(outcome.meter)}. Carbon is location-based. A dash means unknown.",
            "lead",
        ),
        table(strategy_rows(outcome)),
    ]
    if known_of(outcome):
        parts.append(section("What they took; points are rounds", plots(_took(outcome))))
    parts.append(section("When Jobs were done", plots([_done(outcome)])))
    parts.append(section("Where they ran, by node", plots(_lanes(outcome))))
    if by_meter := meter_rows(outcome):
        parts.append(section("By each meter that saw all runs", table(by_meter)))
    parts.append(section("What was run", table([("", ""), *fact_rows(outcome)], "facts")))
    text = page(
        "GreenSched stress benchmark",
        "\n".join(parts),
        "The same plots are beside this page, as pictures.",
    )
    path.write_text(text, encoding="utf-8")


def _colour(outcome: BenchmarkOutcome, name: str) -> str:
    return COLOURS[list(outcome.figures).index(name) % len(COLOURS)]


def _took(outcome: BenchmarkOutcome) -> list[go.Figure]:
    figures = []
    for key in known_of(outcome):
        figure = go.Figure()
        for name, figures_by_key in outcome.figures.items():
            rounds = rounds_of(outcome, name, key)
            marker = {"color": _colour(outcome, name)}
            figure.add_bar(x=[name], y=[figures_by_key[key].mean], marker=marker, showlegend=False)
            figure.add_scatter(
                x=[name] * len(rounds), y=rounds, mode="markers", showlegend=False,
                marker={"color": "#ffffff", "line": {"color": "#1f2933", "width": 1}, "size": 8},
            )  # fmt: skip
        title = f"{LINES[key].title}, {unit_of_figure(outcome, key)}"
        figures.append(styled(figure.update_layout(title=title)))
    return figures


def _done(outcome: BenchmarkOutcome) -> go.Figure:
    figure = go.Figure()
    for name in outcome.figures:
        taken_s = completions_of(outcome, name)
        line = {"shape": "hv", "color": _colour(outcome, name)}
        figure.add_scatter(x=taken_s, y=shares(len(taken_s)), name=name, line=line)
    return styled(
        figure.update_layout(
            xaxis_title="from a Job's creation to its end, s", yaxis_title="share of Jobs"
        )
    )


def _lanes(outcome: BenchmarkOutcome) -> list[go.Figure]:
    """Draw each strategy's first round: one line per Job, on the node where it ran."""
    figures = []
    for result in outcome.results:
        played = result.played
        if played.round:
            continue
        figure = go.Figure()
        for run in played.runs:
            if run.started_at is not None and run.finished_at is not None and run.created_at:
                times = [at - played.started_at for at in (run.started_at, run.finished_at)]
                figure.add_scatter(
                    x=times, y=[run.node] * 2, mode="lines", showlegend=False, opacity=0.6,
                    line={"color": _colour(outcome, played.strategy.name), "width": 8},
                    text=run.job.name, hoverinfo="text+x",
                )  # fmt: skip
        figure.update_layout(title=played.strategy.name, xaxis_title="seconds of the run")
        figures.append(styled(figure))
    return figures
