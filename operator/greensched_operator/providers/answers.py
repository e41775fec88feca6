"""Requests to providers and their answers, as values; no network access here."""

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from greensched_core.errors import SignalUnavailable
from greensched_core.signals.grid import MOST_GRAMS_PER_KWH
from greensched_core.signals.readings import GRAMS_PER_KWH

PER_MWH = "/MWh"  # behind a currency
_MOST_PER_MWH = 1e9  # as in core's reader of GridSignals


class FaultReason(StrEnum):
    """Why a provider returned no values; each is a label value of a counter."""

    UNREACHABLE = "unreachable"
    RATE_LIMITED = "rate-limited"
    UNAUTHORISED = "unauthorised"  # no Secret, a wrong key, or not part of the plan
    UNKNOWN_ZONE = "unknown-zone"
    NO_DATA = "no-data"  # nulls, only zeros, or no value for now
    SERVER_ERROR = "server-error"
    GARBAGE = "garbage"  # not as the provider documents it
    TOO_OLD = "too-old"  # all values are for past times


class ProviderFault(SignalUnavailable):
    """A provider returned nothing usable; the message has no keys and no addresses with keys."""

    def __init__(
        self, reason: FaultReason, text: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.retry_after_s = retry_after_s  # the pause that a rate limit demands


@dataclass(frozen=True, slots=True)
class Slot:
    """A value from `start` (epoch seconds) until the next slot; None is no data."""

    start: float
    value: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's values of one signal of one zone: sorted slots, at least one with a value."""

    slots: tuple[Slot, ...]
    end: float  # of the last slot, epoch seconds
    unit: str  # g/kWh, or a currency and /MWh
    source: str  # provider, and for carbon: average or marginal, life-cycle or direct
    currency: str = ""  # of prices; "" if the provider does not name it
    observed_at: float | None = None  # when the provider made the values, as it says
    is_estimated: bool = False  # by the provider

    def gaps(self) -> int:
        """Return the number of slots without data."""
        return sum(slot.value is None for slot in self.slots)

    def at(self, when: float, late_s: float = 0.0) -> Slot | None:
        """Return the slot with the value at `when`, or one that ended at most `late_s` before."""
        stop = self.end
        for slot in reversed(self.slots):
            if slot.start <= when and slot.value is not None:
                return slot if when < stop or (late_s and when <= stop + late_s) else None
            stop = slot.start
        return None


@dataclass(frozen=True, slots=True)
class Interval:
    """A value in [start, end), epoch seconds; None is no data."""

    start: float
    end: float
    value: float | None


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request; its parameters and headers may contain keys and are never shown."""

    url: str
    parameters: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response with status below 300, or from 400 to 499 except 429."""

    status: int
    body: bytes


# Yields requests, is sent their replies (or thrown their faults), and returns the answer.
Conversation = Generator[Request, Reply, Answer]


def carbon_answer(
    intervals: Iterable[Interval],
    source: str,
    *,
    observed_at: float | None = None,
    is_estimated: bool = False,
) -> Answer:
    """Return an answer in g/kWh; raise ProviderFault if no value remains.

    A negative value, or one above that of any grid, is no data; so are zeros without other values.
    """
    sound = [_sound(interval, 0.0, MOST_GRAMS_PER_KWH) for interval in intervals]
    if not any(interval.value for interval in sound):
        if any(interval.value == 0 for interval in sound):
            raise ProviderFault(FaultReason.NO_DATA, "every carbon value is 0: taken as no data")
    slots, end = _slots(sound)
    return Answer(slots, end, GRAMS_PER_KWH, source, "", observed_at, is_estimated)


def price_answer(
    intervals: Iterable[Interval],
    source: str,
    currency: str,
    *,
    observed_at: float | None = None,
    is_estimated: bool = False,
) -> Answer:
    """Return an answer in `currency` per MWh, negative or not; raise ProviderFault without one."""
    sound = [_sound(interval, -_MOST_PER_MWH, _MOST_PER_MWH) for interval in intervals]
    slots, end = _slots(sound)
    unit = f"{currency}{PER_MWH}"
    return Answer(slots, end, unit, source, currency, observed_at, is_estimated)


def _sound(interval: Interval, least: float, most: float) -> Interval:
    value = interval.value
    if value is None or least <= value <= most:  # false for NaN
        return interval
    return Interval(interval.start, interval.end, None)


def _slots(intervals: Iterable[Interval]) -> tuple[tuple[Slot, ...], float]:
    """Sort intervals into slots, with a slot without data for each hole between them.

    Of two intervals with the same start, the later one in the list counts.
    """
    by_start = {
        interval.start: interval
        for interval in intervals
        if math.isfinite(interval.start) and interval.start < interval.end < math.inf
    }
    slots: list[Slot] = []
    reached = math.inf
    for start in sorted(by_start):
        if start > reached:
            slots.append(Slot(reached, None))
        slots.append(Slot(start, by_start[start].value))
        reached = by_start[start].end
    if all(slot.value is None for slot in slots):
        raise ProviderFault(FaultReason.NO_DATA, "the answer has no values")
    return tuple(slots), reached


def without_empty_ends(answer_slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Return the slots from the first to the last one with a value."""
    known = [index for index, slot in enumerate(answer_slots) if slot.value is not None]
    return answer_slots[known[0] : known[-1] + 1] if known else ()
