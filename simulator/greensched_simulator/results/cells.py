"""Cells of tables: figures and changes as text, for terminals and pages; imports nothing heavy."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

Tone = Literal["", "better", "worse"]


class Cell(NamedTuple):
    """A text, and whether its figure is significantly better or worse than the baseline's."""

    text: str
    tone: Tone = ""


ResultRow = Sequence[Cell | str]

_LEAST_SHOWN = 5e-7  # the least amount visible in six decimals


def amount(value: float) -> str:
    """Return an amount with two decimals, or with two significant digits if it is small.

    A dash for NaN.
    """
    if math.isnan(value):
        return "–"
    if abs(value) < _LEAST_SHOWN or abs(value) >= 0.1:
        return f"{value:.2f}"
    return f"{value:.{min(6, 1 - math.floor(math.log10(abs(value))))}f}"


def large(value: float) -> str:
    """Return an amount with thousands separators, and decimals only below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else amount(value)


def short(value: float) -> str:
    """Return an amount with about three significant digits, for tables with many columns."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else amount(value)


def count(value: float) -> str:
    """Return a count, or a mean of counts, which need not be whole."""
    is_whole = float(value).is_integer() or abs(value) >= 100_000
    return f"{value:,.0f}" if is_whole else f"{value:,.1f}"


class ConfidenceInterval(NamedTuple):
    """A mean over seeds and its 95 % interval; the ends are NaN with one seed."""

    mean: float
    low: float
    high: float


def change_text(percent: ConfidenceInterval) -> str:
    """Return a change with its interval, such as `-12.3 ±0.4 %`; a dash for NaN."""
    if math.isnan(percent.mean):
        return "–"
    shown = f"{percent.mean:+.1f}" if round(percent.mean, 1) else "0.0"
    half = (percent.high - percent.low) / 2
    return f"{shown} %" if math.isnan(half) else f"{shown} ±{half:.1f} %"


def tone_of(change: ConfidenceInterval, *, does_less: bool = False) -> Tone:
    """Return "better" or "worse" if the interval excludes zero, else ""; less is better.

    A policy that `does_less` work than the baseline is never better.
    """
    if change.high < 0:
        return "" if does_less else "better"
    return "worse" if change.low > 0 else ""


def change_cell(percent: ConfidenceInterval, *, does_less: bool = False) -> Cell:
    """Return a change with its interval, marked as `tone_of` says unless it is shown as 0.0."""
    text = change_text(percent)
    return Cell(text, "" if text.startswith("0.0 ") else tone_of(percent, does_less=does_less))
