"""An evaluation as a picture: a policy against the strongest rules, in each scenario."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from greensched_train.checkpoints import write_whole
from greensched_train.evaluation import WorldOutcome
from greensched_train.evaluation_figures import paired_change

_BETTER, _WORSE, _NEUTRAL = "#27784b", "#b42318", "#5f6b7a"
_DPI = 120


def draw_evaluation(policy: str, other: str, worlds: Sequence[WorldOutcome], path: Path) -> None:
    """Write the picture. Raises BadInput if it cannot be written."""
    found = paired_change(policy, other, worlds)
    rows = [*found.by_scenario.items(), ("all", found.whole)]
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.0, 1.2 + 0.35 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for place, (name, change) in enumerate(rows):
            colour = _BETTER if change.high < 0.0 else _WORSE if change.low > 0.0 else _NEUTRAL
            axes.plot([change.low, change.high], [place, place], color=colour, linewidth=2.0)
            axes.plot(change.mean, place, "D" if name == "all" else "o", color=colour)
        axes.axvline(0.0, color=_NEUTRAL, linewidth=1.0)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel(f"J against {other}, %; 95 % intervals over seeds; left is better")
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=_DPI)
    write_whole(path, content.getvalue())
