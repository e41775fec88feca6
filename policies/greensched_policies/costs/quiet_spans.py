"""Spans of time in which nothing starts; imports nothing, as the command line loads it."""

from collections.abc import Sequence
from typing import NamedTuple


class QuietSpans(NamedTuple):
    """Begins and ends of spans in which nothing starts, in seconds; they rise and do not touch."""

    begins_s: tuple[float, ...] = ()
    ends_s: tuple[float, ...] = ()


def after_quiet(at_s: float, begins_s: Sequence[float], ends_s: Sequence[float]) -> float:
    """Return the first time from `at_s` on that is not quiet.

    The quiet spans rise and do not touch. Compiled code passes arrays.
    """
    low, high = 0, len(begins_s)
    while low < high:
        middle = (low + high) // 2
        if begins_s[middle] <= at_s:
            low = middle + 1
        else:
            high = middle
    return at_s if low == 0 or ends_s[low - 1] <= at_s else ends_s[low - 1]


def may_start(
    begin_s: float, slot_s: float, from_s: float, begins_s: Sequence[float], ends_s: Sequence[float]
) -> bool:
    """Return whether a slot has a moment that is neither before `from_s` nor quiet.

    Compiled code passes arrays.
    """
    return after_quiet(max(begin_s, from_s), begins_s, ends_s) < begin_s + slot_s
