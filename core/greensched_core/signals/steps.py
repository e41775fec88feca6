"""Values with the step of the fallback chain that gave them, and their age."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

SignalKind = Literal["carbon", "price"]


class Step(StrEnum):
    """A step of the fallback chain, best first."""

    GRID_SIGNAL = "gridsignal"
    LAST_GOOD = "last-good"  # the object is stale, gone, or no longer holds this signal
    STATIC_ZONE = "static-zone"
    STATIC_DEFAULT = "static-default"
    NONE = "none"  # no data


@dataclass(frozen=True, slots=True)
class AgeLimits:
    """How long a GridSignal is used, in seconds since its source was read."""

    fresh_s: float = 5_400.0  # sources publish hourly, up to half an hour late
    max_stale_s: float = 86_400.0  # a day-ahead forecast is still better than a yearly mean


@dataclass(frozen=True, slots=True)
class SignalState:
    """One signal of a zone now, and its source."""

    value: float | None  # None: no data
    step: Step
    age_s: float | None  # since its source was read; None for static values
    source: str
    is_estimated: bool  # by its source, by us outside its slots, or a yearly mean


NO_DATA = SignalState(None, Step.NONE, None, "", is_estimated=False)


@dataclass(frozen=True, slots=True)
class ZoneSignal:
    """Carbon (g CO2e/kWh) and price (per MWh, in `currency`) of one zone now."""

    zone: str
    carbon: SignalState
    price: SignalState
    currency: str
