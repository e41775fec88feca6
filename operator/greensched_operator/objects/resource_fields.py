"""The fields of our custom resources as the API server writes them; all may be absent.

msgspec reads them; what it does not know, such as the field of a later version, is skipped.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput

Read = TypeVar("Read", bound=msgspec.Struct)


class MetaFields(msgspec.Struct):
    """metadata of a custom resource."""

    name: str = ""
    namespace: str = ""
    generation: int = 0


class WeightFields(msgspec.Struct):
    """spec.weights of a GreenPolicy."""

    energy: float | None = None
    carbon: float | None = None
    performance: float | None = None


class MarginFields(msgspec.Struct):
    """spec.safetyMargin of a GreenPolicy."""

    duration: str | None = None
    shareOfRuntimePercent: float | None = None


class QuietFields(msgspec.Struct):
    """An item of spec.quietHours of a GreenPolicy."""

    begin: str | None = msgspec.field(default=None, name="from")
    end: str | None = msgspec.field(default=None, name="to")
    timeZone: str | None = None
    days: list[str] | None = None


class BudgetFields(msgspec.Struct):
    """spec.budget of a GreenPolicy."""

    period: str | None = None
    energyKwh: float | None = None
    carbonKg: float | None = None


class PauseFields(msgspec.Struct):
    """spec.pause of a GreenPolicy."""

    minimumRun: str | None = None
    minimumPause: str | None = None


class BundleFields(msgspec.Struct):
    """spec.bundle of a GreenPolicy."""

    configMapName: str | None = None


class PolicyFields(msgspec.Struct):
    """spec of a GreenPolicy."""

    mode: str | None = None
    weights: WeightFields | None = None
    defaultDelay: str | None = None
    longestHold: str | None = None
    defaultRuntime: str | None = None
    safetyMargin: MarginFields | None = None
    maxHeldSharePercent: float | None = None
    leastSavingPercent: float | None = None
    quietHours: list[QuietFields] | None = None
    budget: BudgetFields | None = None
    pause: PauseFields | None = None
    whenPolicy: str | None = None
    bundle: BundleFields | None = None


class PhaseFields(msgspec.Struct):
    """A phase of a JobPowerProfile."""

    name: str | None = None
    duration: str | None = None
    watts: float | None = None
    checkpoint: bool | None = None


class CheckpointFields(msgspec.Struct):
    """spec.checkpoints of a JobPowerProfile."""

    every: str | None = None
    at: list[str] | None = None


class ProfileFields(msgspec.Struct):
    """spec of a JobPowerProfile."""

    startup: list[PhaseFields] | None = None
    work: list[PhaseFields] | None = None
    resume: list[PhaseFields] | None = None
    checkpoints: CheckpointFields | None = None


def decoded_object(raw: object) -> Mapping[str, Any]:
    """Return an object, JSON or decoded already, as a mapping; raise BadInput otherwise."""
    try:
        decoded = msgspec.json.decode(raw) if isinstance(raw, bytes | str) else raw
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise BadInput(f"no JSON: {fault}") from None
    if not isinstance(decoded, Mapping):
        raise BadInput(f"{type(decoded).__name__} where an object is needed")
    return decoded


def read_part(whole: Mapping[str, Any], part: str, kind: type[Read]) -> Read:
    """Return a part of an object, empty where it is absent; raise BadInput for a wrong type."""
    raw = whole.get(part)
    try:
        return kind() if raw is None else msgspec.convert(raw, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError) as fault:
        told = str(fault).replace("`$.", f"`{part}.").replace("`$", f"`{part}")
        raise BadInput(told) from None


def read_meta(whole: Mapping[str, Any]) -> MetaFields:
    """Return what an object is called; nameless where that cannot be read."""
    try:
        return read_part(whole, "metadata", MetaFields)
    except BadInput:
        return MetaFields()


def read_duration(text: str, where: str, *, above_zero: bool = False) -> float:
    """Return the seconds of a duration; raise BadInput that tells the field."""
    try:
        seconds = parse_duration(text)
    except BadInput as fault:
        raise BadInput(f"{where}: {fault}") from None
    if above_zero and seconds <= 0:
        raise BadInput(f"{where}: must be above zero")
    return seconds


def within(value: float, most: float, where: str) -> float:
    """Return a number from 0 to `most`; raise BadInput that tells the field for any other."""
    if not 0.0 <= value <= most:
        raise BadInput(f"{where}: {value:g} must be from 0 to {most:g}")
    return value
