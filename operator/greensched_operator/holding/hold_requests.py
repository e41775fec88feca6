"""Reads hold requests from annotations: a deadline, a delay or a window; and their faults."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import TypeVar
from zoneinfo import ZoneInfo

from greensched_core import labels
from greensched_core.durations import format_duration, parse_duration
from greensched_core.errors import BadInput
from greensched_core.quoting import quoted
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.objects.own_annotations import misspelt

Value = TypeVar("Value")

_TRUE, _FALSE = "true", "false"
_HOURS = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)(?: (\S+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A hold request; times are seconds since the epoch, None where not requested."""

    arrived_s: float  # when the workload was created
    deadline_s: float | None = None  # the workload must have ended by then
    start_by_s: float | None = None  # the workload must have started by then
    start_from_s: float | None = None  # the workload must not start before
    runtime_s: float | None = None  # a duration, on the reference node
    is_checkpointable: bool = False
    run_now: bool = False
    policy: str = ""  # name of a GreenPolicy
    power_profile: str = ""  # name of a JobPowerProfile
    faults: tuple[str, ...] = ()  # as text; a workload with any is never held
    scheduled_s: float | None = None  # when the run of a CronJob was due
    # Of the JobPowerProfile, on the reference node; None: there is none, or it is not looked up.
    profile_runtime_s: float | None = None

    @property
    def may_wait(self) -> bool:
        """Return whether the request says until when the workload may wait."""
        return self.deadline_s is not None or self.start_by_s is not None


def read_hold_request(
    annotations: Mapping[str, str], arrived_s: float, scheduled_s: float | None = None
) -> HoldRequest:
    """Return the hold request in the annotations of a workload created at `arrived_s`.

    Never raises. Durations count from `arrived_s`. If both max-delay and window are given, the
    stricter one counts. `scheduled_s` is when the run of a CronJob was due.
    """
    faults: list[str] = []
    reader = _Reader(annotations, arrived_s, faults)
    deadline_s = reader.deadline()
    opens_s, closes_s = reader.window()
    start_by_s = _earlier(reader.delay(labels.MAX_DELAY), closes_s)
    runtime_s = reader.length(labels.RUNTIME)
    faults += misspelt(annotations)
    if deadline_s is not None:
        faults += _contradictions(arrived_s, deadline_s, start_by_s, runtime_s)
    return HoldRequest(
        arrived_s,
        deadline_s,
        start_by_s,
        opens_s,
        runtime_s,
        reader.flag(labels.CHECKPOINTABLE),
        reader.flag(labels.RUN_NOW),
        annotations.get(labels.POLICY, ""),
        annotations.get(labels.POWER_PROFILE, ""),
        tuple(faults),
        scheduled_s,
    )


def read_runtime_s(annotations: Mapping[str, str]) -> float | None:
    """Return the runtime in annotations; None if there is none or it cannot be read."""
    return _Reader(annotations, 0.0, []).length(labels.RUNTIME)


def _contradictions(
    arrived_s: float, deadline_s: float, start_by_s: float | None, runtime_s: float | None
) -> list[str]:
    deadline = format_timestamp(deadline_s)
    if deadline_s <= arrived_s:
        return [f"{labels.DEADLINE}: {deadline} is in the past; the work starts immediately"]
    if start_by_s is not None and deadline_s < start_by_s:
        return [
            f"{labels.DEADLINE}: {deadline} is before {format_timestamp(start_by_s)}, the latest "
            "start that max-delay or window allows; set a later deadline or a shorter delay"
        ]
    if runtime_s is not None and arrived_s + runtime_s > deadline_s:
        return [
            f"{labels.DEADLINE}: {deadline} is {format_duration(deadline_s - arrived_s)} away, "
            f"less than the runtime of {format_duration(runtime_s)}; the work starts immediately, "
            "and ends late"
        ]
    return []


@dataclass(frozen=True)
class _Reader:
    """Reads single annotations; one that cannot be read is a fault, and counts as absent."""

    annotations: Mapping[str, str]
    arrived_s: float
    faults: list[str]

    def deadline(self) -> float | None:
        """Return the deadline, which is written as a time or a duration from the creation."""
        text = self.annotations.get(labels.DEADLINE)
        if text is None:
            return None
        if "T" in text.upper() and "-" in text:
            return self._tried(labels.DEADLINE, lambda: _representable(parse_timestamp(text)))
        try:
            return self.arrived_s + parse_duration(text)
        except BadInput:
            self.faults.append(
                f"{labels.DEADLINE}: {quoted(text)} is neither a duration from the creation, such "
                "as 6h or 1h30m, nor a time, such as 2026-11-21T10:00:00Z"
            )
            return None

    def delay(self, name: str) -> float | None:
        """Return the creation time plus a duration."""
        length_s = self.length(name, least_s=0.0)
        return None if length_s is None else self.arrived_s + length_s

    def length(self, name: str, least_s: float = 0.001) -> float | None:
        """Return a duration in seconds."""
        text = self.annotations.get(name)
        if text is None:
            return None
        length_s = self._tried(name, lambda: parse_duration(text))
        if length_s is not None and length_s < least_s:
            self.faults.append(f"{name}: {quoted(text)} must be above zero")
            return None
        return length_s

    def flag(self, name: str) -> bool:
        """Return whether an annotation is true; anything but true and false is a fault."""
        text = self.annotations.get(name, _FALSE)
        if text.lower() not in (_TRUE, _FALSE):
            self.faults.append(f'{name}: {quoted(text)} must be "true" or "false"')
        return text.lower() == _TRUE

    def window(self) -> tuple[float | None, float | None]:
        """Return the earliest and latest start: hours of the day, or a duration from creation."""
        text = self.annotations.get(labels.WINDOW)
        if text is None:
            return None, None
        hours = _HOURS.fullmatch(text.strip())
        if hours is None:
            return None, self.delay(labels.WINDOW)
        return self._tried(labels.WINDOW, lambda: _hours(hours, self.arrived_s)) or (None, None)

    def _tried(self, name: str, read: Callable[[], Value]) -> Value | None:
        try:
            return read()
        except BadInput as fault:
            self.faults.append(f"{name}: {fault}")
            return None


def _representable(at_s: float) -> float:
    """Return a time; raise BadInput if it cannot be formatted for messages."""
    format_timestamp(at_s)
    return at_s


def _hours(hours: re.Match[str], arrived_s: float) -> tuple[float | None, float]:
    """Return the daily window that is open at `arrived_s`, else the next one.

    The first value is None if the window is already open. Both ends are local time, also when
    clocks change.
    """
    begins = _wall(*hours.group(1, 2))
    ends = time() if hours.group(3, 4) == ("24", "00") else _wall(*hours.group(3, 4))
    if begins == ends:
        raise BadInput("the window begins and ends at the same time; remove it to allow any hour")
    zone = _zone(hours[5])
    today = datetime.fromtimestamp(arrived_s, zone).date()
    for days in (-1, 0, 1, 2):  # yesterday's may be open past midnight
        day = today + timedelta(days=days)
        opens_s = datetime.combine(day, begins, zone).timestamp()
        last = day if begins < ends else day + timedelta(days=1)
        closes_s = datetime.combine(last, ends, zone).timestamp()
        if closes_s > max(arrived_s, opens_s):
            return (None if opens_s <= arrived_s else opens_s), closes_s
    raise BadInput(
        "the window does not occur in the next days"
    )  # two clock changes within two days


def _wall(hour: str, minute: str) -> time:
    try:
        return time(int(hour), int(minute))
    except ValueError:
        raise BadInput(f"{hour}:{minute} is not a time of day") from None


def _zone(name: str | None) -> tzinfo:
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such key, path or file of the database
        raise BadInput(
            f"{quoted(name)} is not a time zone; use one such as Europe/Berlin"
        ) from None


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
