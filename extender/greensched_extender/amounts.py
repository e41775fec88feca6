"""Formats amounts for people: three significant digits, never an exponent."""

import math
from collections.abc import Sequence

_PREFIXES = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M"}  # by powers of a thousand


def digits(value: float) -> str:
    """Return a number of any size as text with three significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def scaled_amounts(values: Sequence[float], unit: str) -> tuple[list[str], str]:
    """Return amounts and their unit, scaled for the largest: 2.46e-5 g as 24.6 and "µg"."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    largest = float(f"{largest:.3g}")  # else 999.9 would become 1000 of the smaller unit
    thousands = math.floor(math.log10(largest) / 3) if largest > 0 else 0
    thousands = min(max(thousands, min(_PREFIXES)), max(_PREFIXES))
    # Multiply by a whole number for small units: as floats, 0.36 / 0.001 is not 360.
    factor = 1000 ** abs(thousands)
    shown = [digits(value * factor if thousands < 0 else value / factor) for value in values]
    return shown, _PREFIXES[thousands] + unit
