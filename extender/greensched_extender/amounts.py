"""Amounts as people read them: three digits that matter, never an exponent."""

import math
from collections.abc import Sequence

_PREFIXES = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M"}  # by powers of a thousand


def digits(value: float) -> str:
    """Write a number with three digits that matter, however small or large it is."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def scaled(values: Sequence[float], unit: str) -> tuple[list[str], str]:
    """Write amounts in the unit that suits the largest of them: 2.46e-5 g as 24.6 and "µg"."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    largest = float(f"{largest:.3g}")  # or 999.9 would become 1000 of the smaller unit
    thousands = math.floor(math.log10(largest) / 3) if largest > 0 else 0
    thousands = min(max(thousands, min(_PREFIXES)), max(_PREFIXES))
    # Multiplied, where a power of ten is a whole number: 0.36 / 0.001 is not 360 for a computer.
    factor = 1000 ** abs(thousands)
    shown = [digits(value * factor if thousands < 0 else value / factor) for value in values]
    return shown, _PREFIXES[thousands] + unit
