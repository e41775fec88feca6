"""Draws the benchmark's plots for slides and papers, as PNG."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from greensched_testbed.stress.results import LINES, OF_METERS
from greensched_testbed.stress.run import BenchmarkOutcome

COLOURS = ("#5f6b7a", "#27784b", "#2b7bba", "#e3a008", "#8e44ad", "#c0392b")


def write_benchmark_plots(folder: Path, outcome: BenchmarkOutcome) -> None:
    """Plot each strategy's energy, cost and carbon, as far as known, and its completion times."""
    with mpl.rc_context(
        {
            "font.size": 8,
            "axes.titlesize": 8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    ):
        if known_of(outcome):
            _took(outcome).savefig(folder / "took.png", dpi=200)
        _done(outcome).savefig(folder / "completion.png", dpi=200)


def known_of(outcome: BenchmarkOutcome) -> list[str]:
    """Return which of energy, cost and carbon any strategy has; the others get no axis."""
    return [
        key
        for key in OF_METERS
        if any(figures[key].mean is not None for figures in outcome.figures.values())
    ]


def rounds_of(outcome: BenchmarkOutcome, strategy: str, key: str) -> list[float | None]:
    """Return one figure of a strategy, for each round."""
    return [
        LINES[key].read(result, outcome.meter)
        for result in outcome.results
        if result.played.strategy.name == strategy
    ]


def completions_of(outcome: BenchmarkOutcome, strategy: str) -> list[float]:
    """Return the completion times of completed Jobs of all rounds, in ascending order."""
    return sorted(
        taken_s
        for result in outcome.results
        if result.played.strategy.name == strategy
        for run in result.played.runs
        if (taken_s := run.completion_s) is not None
    )


def unit_of_figure(outcome: BenchmarkOutcome, key: str) -> str:
    """Return the unit of a figure."""
    return outcome.currency if key == "cost" else LINES[key].unit


def shares(count: int) -> Sequence[float]:
    """Return the share of `count` Jobs completed after each completion."""
    return [(place + 1) / count for place in range(count)]


def _took(outcome: BenchmarkOutcome) -> Figure:
    figure = Figure(figsize=(7.0, 2.6), layout="constrained")
    names, known_keys = list(outcome.figures), known_of(outcome)
    for place, key in enumerate(known_keys):
        axes = figure.add_subplot(1, len(known_keys), place + 1)
        for row, name in enumerate(names):
            colour = COLOURS[row % len(COLOURS)]
            mean = outcome.figures[name][key].mean
            if mean is not None:
                axes.bar(row, mean, color=colour, width=0.6)
            known = [each for each in rounds_of(outcome, name, key) if each is not None]
            axes.plot([row] * len(known), known, "o", ms=3, mfc="white", mec="black", mew=0.6)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_title(f"{LINES[key].title}, {unit_of_figure(outcome, key)}")
        axes.set_ylim(bottom=0.0)
    return figure


def _done(outcome: BenchmarkOutcome) -> Figure:
    figure = Figure(figsize=(7.0, 2.6), layout="constrained")
    axes = figure.add_subplot()
    for row, name in enumerate(outcome.figures):
        taken_s = completions_of(outcome, name)
        colour = COLOURS[row % len(COLOURS)]
        axes.step(taken_s, shares(len(taken_s)), where="post", label=name, color=colour)
    axes.set(xlabel="from a Job's creation to its end, s", ylabel="share of Jobs", ylim=(0.0, 1.02))
    axes.grid(lw=0.3)
    axes.legend()
    return figure
