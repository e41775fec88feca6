"""The change of a figure between two runs, in percent."""

import math


def change_pct(ours: float, theirs: float) -> float | None:
    """Return the difference of `ours` to `theirs` in percent; None if `theirs` is 0."""
    return 100.0 * (ours - theirs) / abs(theirs) if theirs else None


def change_text(ours: float, theirs: float) -> str:
    """Return the difference of `ours` to `theirs` as text: `-12.3 %`, or a dash."""
    change = change_pct(ours, theirs)
    if change is None or math.isnan(change):
        return "–"
    return f"{change:+.1f} %" if round(change, 1) else "0.0 %"
