"""What GreenSched has written on an object, read once from its annotations."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import parse_timestamp


@dataclass(frozen=True, slots=True)
class OwnMarks:
    """Values that GreenSched wrote; None where absent or unreadable. Times: s since the epoch."""

    held_s: float | None = None  # when the webhook saw it
    latest_start_s: float | None = None
    planned_start_s: float | None = None
    released_s: float | None = None
    at_arrival_g: float | None = None  # grams of a run on arrival, by the first plan's forecast


class _Decision(msgspec.Struct):
    """What is read again of the annotation greensched.io/decision."""

    carbonGramsAtArrival: float | None = None


_NONE = OwnMarks()
_decode_decision = msgspec.json.Decoder(_Decision).decode


def read_marks(annotations: Mapping[str, str]) -> OwnMarks:
    """Return the values in annotations; never raises."""
    if labels.WRITTEN.isdisjoint(annotations):
        return _NONE
    return OwnMarks(
        readable_s(annotations.get(labels.HELD_AT)),
        readable_s(annotations.get(labels.LATEST_START)),
        readable_s(annotations.get(labels.PLANNED_START)),
        readable_s(annotations.get(labels.RELEASED_AT)),
        _at_arrival_g(annotations.get(labels.DECISION)),
    )


def readable_s(text: str | None) -> float | None:
    """Return a time in seconds since the epoch; None if absent or unreadable."""
    try:
        return None if text is None else parse_timestamp(text)
    except BadInput:
        return None  # not written by us


def _at_arrival_g(text: str | None) -> float | None:
    try:
        return None if text is None else _decode_decision(text).carbonGramsAtArrival
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
