"""Cells of tables: figures and changes as text, for terminals and pages alike; nothing heavy."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

Tone = Literal["", "better", "worse"]


class Cell(NamedTuple):
    """A text, and whether what it tells is beyond doubt better or worse than the baseline."""

    text: str
    tone: Tone = ""


Row = Sequence[Cell | str]

_LEAST_TOLD = 5e-7  # what six decimals can tell


def amount(value: float) -> str:
    """Return an amount with two decimals, or with two digits that count where it is small."""
    if abs(value) < _LEAST_TOLD or abs(value) >= 0.1:
        return f"{value:.2f}"
    return f"{value:.{min(6, 1 - math.floor(math.log10(abs(value))))}f}"


def large(value: float) -> str:
    """Return an amount with its thousands parted, and decimals only where it is below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else amount(value)


def short(value: float) -> str:
    """Return an amount with about three digits that count, for tables of many columns."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else amount(value)


def count(value: float) -> str:
    """Return a count, or the mean of some counts, which need not be whole."""
    is_whole = float(value).is_integer() or abs(value) >= 1000
    return f"{value:,.0f}" if is_whole else f"{value:,.1f}"


class ConfidenceInterval(NamedTuple):
    """A mean over seeds and its 95 % interval; the ends are NaN with one seed."""

    mean: float
    low: float
    high: float


def change_text(percent: ConfidenceInterval) -> str:
    """Return a change with its interval, such as `-12.3 ±0.4 %`; a dash where there is none."""
    if math.isnan(percent.mean):
        return "–"
    shown = f"{percent.mean:+.1f}" if round(percent.mean, 1) else "0.0"
    half = (percent.high - percent.low) / 2
    return f"{shown} %" if math.isnan(half) else f"{shown} ±{half:.1f} %"


def tone_of(change: ConfidenceInterval) -> Tone:
    """Tell whether a change's whole interval lies on one side of zero; less is better."""
    if change.high < 0:
        return "better"
    return "worse" if change.low > 0 else ""


def change_cell(percent: ConfidenceInterval) -> Cell:
    """Return a change with its interval, marked as better or worse unless it is shown as 0.0."""
    text = change_text(percent)
    return Cell(text, "" if text.startswith("0.0 ") else tone_of(percent))
