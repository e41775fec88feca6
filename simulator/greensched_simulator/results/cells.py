"""Cells of tables: figures as text, for terminals and pages alike."""

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
