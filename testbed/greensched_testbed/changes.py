"""The change of a figure between two runs, in percent."""

import math

from greensched_core.units import change


def change_pct(ours: float, theirs: float) -> float | None:
    """Return the difference of `ours` to `theirs` in percent; None if `theirs` is 0."""
    share = change(ours, theirs)
    return None if share is None else 100.0 * share


def relative_change_text(ours: float, theirs: float) -> str:
    """Return the difference of `ours` to `theirs` as text: `-12.3 %`, or a dash."""
    percent = change_pct(ours, theirs)
    if percent is None or math.isnan(percent):
        return "–"
    return f"{percent:+.1f} %" if round(percent, 1) else "0.0 %"
