"""The curves of a training as a picture: what it costs and what it misses, by generation."""

import io
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from greensched_train.checkpoints import Progress, write_whole

CURVES = "curves.png"
_LEARNED, _NOISY, _BASELINE = "#27784b", "#c3cad3", "#5f6b7a"
_DPI = 120


def draw_curves(progress: Progress, folder: Path) -> None:
    """Replace the picture in `folder`. Raises BadInput if it cannot be written."""
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        content = io.BytesIO()
        _figure(progress).savefig(content, format="png", dpi=_DPI)
    write_whole(folder / CURVES, content.getvalue())


def _figure(progress: Progress) -> Figure:
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    validated = progress.validated
    at = [each.generation for each in validated]
    generations = range(1, len(progress.objectives) + 1)
    above.plot(generations, progress.objectives, ".", color=_NOISY, label="in training worlds")
    above.plot(at, [each.objective for each in validated], color=_LEARNED, label="validation")
    above.plot(
        at, [each.cost_ratio for each in validated], "--", color=_LEARNED,
        label="validation, without the price of misses",
    )  # fmt: skip
    above.axhline(1.0, color=_BASELINE, linewidth=1.0, label="run-now+spread")
    above.axvline(progress.best_at, color=_LEARNED, linewidth=0.8, linestyle=":", label="kept")
    above.set_ylabel("cost, of run-now+spread's")
    above.legend(framealpha=0.9, edgecolor="none", fontsize=9)
    below.plot(at, [100.0 * each.missed for each in validated], color=_LEARNED, label="mean")
    below.plot(
        at, [100.0 * each.worst_excess for each in validated], "--", color=_LEARNED,
        label="beyond what is allowed, worst world",
    )  # fmt: skip
    below.set_ylabel("deadlines missed, %")
    below.set_ylim(bottom=0.0)
    below.set_xlabel("generation")
    below.legend(framealpha=0.9, edgecolor="none", fontsize=9)
    return figure
