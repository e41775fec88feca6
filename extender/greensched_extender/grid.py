"""What the grid behind each zone will cost over a run, looked up once a second."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from greensched_core.signals.chain import GridSignals
from greensched_extender.scoring import ZoneMeans

_NOW_S = 1.0  # a run this short asks for the value that holds now


@dataclass(frozen=True, slots=True)
class ZoneSignal:
    """What is known of a zone's grid at one moment."""

    zone: str
    carbon_g_per_kwh: float | None  # mean over the expected run; None: no data
    price_per_mwh: float | None
    carbon_step: str  # which step of the fallback chain gave it
    price_step: str
    carbon_age_s: float | None
    price_age_s: float | None
    currency: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What every zone of a view is expected to cost over one run."""

    means: ZoneMeans
    signals: tuple[ZoneSignal, ...]  # in the order of the view's zones


# zones, seconds since the epoch, seconds of the run → what is known of each; never raises
LookUp = Callable[[tuple[str, ...], float, float], tuple[ZoneSignal, ...]]


class Grid:
    """Keeps the outlooks of the running second, by runtime."""

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._second = -1
        self._zones: tuple[str, ...] = ()
        self._outlooks: dict[float, Outlook] = {}

    def outlook(self, zones: tuple[str, ...], now: float, runtime_s: float) -> Outlook:
        """Return the outlook for a run of `runtime_s` from `now` (seconds since the epoch)."""
        if int(now) != self._second or zones is not self._zones:
            self._second, self._zones, self._outlooks = int(now), zones, {}
        outlook = self._outlooks.get(runtime_s)
        if outlook is None:
            signals = self._look_up(zones, now, runtime_s)
            outlook = Outlook(
                ZoneMeans(
                    np.array([_value(signal.carbon_g_per_kwh) for signal in signals]),
                    np.array([_value(signal.price_per_mwh) for signal in signals]),
                ),
                signals,
            )
            self._outlooks[runtime_s] = outlook
        return outlook

    def now(self, zones: tuple[str, ...], now: float) -> dict[str, ZoneSignal]:
        """Return what holds now in each named zone."""
        named = tuple(zone for zone in zones if zone)
        return dict(zip(named, self._look_up(named, now, _NOW_S), strict=True))


def looking_up(signals: GridSignals, count_step: Callable[[str, str], None]) -> LookUp:
    """Return the look-up over the fallback chain; `count_step` gets signal and step."""

    def look_up(zones: tuple[str, ...], now: float, runtime_s: float) -> tuple[ZoneSignal, ...]:
        return tuple(map(signal, zones, *signals.zone_means(zones, now, runtime_s), repeat(now)))

    def signal(zone: str, carbon: float, price: float, now: float) -> ZoneSignal:
        state = signals.zone(zone, now)
        count_step("carbon", state.carbon.step.value)
        count_step("price", state.price.step.value)
        return ZoneSignal(
            zone=zone,
            carbon_g_per_kwh=None if math.isnan(carbon) else carbon,
            price_per_mwh=None if math.isnan(price) else price,
            carbon_step=state.carbon.step.value,
            price_step=state.price.step.value,
            carbon_age_s=state.carbon.age_s,
            price_age_s=state.price.age_s,
            currency=state.currency,
        )

    return look_up


def _value(known: float | None) -> float:
    return float("nan") if known is None else known


def render_zone(signal: ZoneSignal) -> Mapping[str, Any]:
    """Return a zone's signal as JSON values."""
    return {
        "zone": signal.zone,
        "carbonGramsPerKwh": signal.carbon_g_per_kwh,
        "carbonFrom": signal.carbon_step,
        "carbonAgeSeconds": signal.carbon_age_s,
        "pricePerMwh": signal.price_per_mwh,
        "priceFrom": signal.price_step,
        "priceAgeSeconds": signal.price_age_s,
        "currency": signal.currency or None,
    }
