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


def amount(value: float) -> str:
    """Return an amount with two decimals, or with two digits that count where it is small."""
    if value == 0 or abs(value) >= 0.1:
        return f"{value:.2f}"
    return f"{value:.{min(6, 1 - math.floor(math.log10(abs(value))))}f}"


def large(value: float) -> str:
    """Return an amount with its thousands parted, and decimals only where it is below 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else amount(value)


def count(value: float) -> str:
    """Return a count, or the mean of some counts, which need not be whole."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
