"""Expected carbon intensity and price of each zone over a run."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from greensched_core.signals import steps
from greensched_core.units import SECONDS_PER_DAY
from greensched_extender.scoring import ZoneMeans


@dataclass(frozen=True, slots=True)
class ZoneNow:
    """Carbon intensity and price of a zone at one moment, and their sources."""

    zone: str
    carbon_g_per_kwh: float | None  # mean over the expected run, or current; None: no data
    price_per_mwh: float | None
    carbon_step: str  # which step of the fallback chain gave it
    price_step: str
    carbon_age_s: float | None
    price_age_s: float | None
    currency: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RunOutlook:
    """Expected carbon intensity and price of every zone of a view over one run."""

    means: ZoneMeans
    states: tuple[steps.ZoneSignal, ...]  # in the order of the view's zones; shared by all runs

    @property
    def signals(self) -> tuple[ZoneNow, ...]:
        """Means and their sources for each zone; built on demand, since only people read them."""
        means = self.means.carbon_g_per_kwh.tolist(), self.means.price_per_mwh.tolist()
        return tuple(
            _signal(state, _known(carbon), _known(price))
            for state, carbon, price in zip(self.states, *means, strict=True)
        )


# zone, seconds since the epoch → its current values and their sources; never raises
StateOf = Callable[[str, float], steps.ZoneSignal]
# zones, seconds since the epoch, seconds of the run → means of carbon and price; NaN is no data
MeansOver = Callable[[Sequence[str], float, float], tuple[list[float], list[float]]]


class OutlookCache:
    """Caches the outlooks of the current second, by runtime.

    Means are those of `means_over` for the exact runtime, so that a decision uses the figures of
    a bill; only their start may be up to a second old. A runtime that is new in this second takes
    one call for all zones. Steps and ages do not depend on it and are read once a second.
    """

    def __init__(self, state_of: StateOf, means_over: MeansOver) -> None:
        self._state_of = state_of
        self._means_over = means_over
        self._second = -1
        self._zones: tuple[str, ...] = ()
        self._states: tuple[steps.ZoneSignal, ...] = ()
        self._day: tuple[list[float], list[float]] = [], []
        self._outlooks: dict[float, RunOutlook] = {}

    def outlook(self, zones: tuple[str, ...], now: float, runtime_s: float) -> RunOutlook:
        """Return the outlook for a run of `runtime_s` from `now` (seconds since the epoch)."""
        if int(now) != self._second or zones is not self._zones:
            self._second, self._zones, self._outlooks = int(now), zones, {}
            self._states = tuple(self._state_of(zone, now) for zone in zones)
            self._day = self._means_over(zones, now, SECONDS_PER_DAY)
        outlook = self._outlooks.get(runtime_s)
        if outlook is None:
            over_run = self._means_over(zones, now, runtime_s)
            outlook = RunOutlook(ZoneMeans(np.array([*over_run, *self._day])), self._states)
            self._outlooks[runtime_s] = outlook
        return outlook

    def now(self, zones: tuple[str, ...], now: float) -> dict[str, ZoneNow]:
        """Return the current values of each named zone."""
        states = (self._state_of(zone, now) for zone in zones if zone)
        return {
            state.zone: _signal(state, state.carbon.value, state.price.value) for state in states
        }


def _signal(state: steps.ZoneSignal, carbon: float | None, price: float | None) -> ZoneNow:
    return ZoneNow(
        zone=state.zone,
        carbon_g_per_kwh=carbon,
        price_per_mwh=price,
        carbon_step=state.carbon.step.value,
        price_step=state.price.step.value,
        carbon_age_s=state.carbon.age_s,
        price_age_s=state.price.age_s,
        currency=state.currency,
    )


def _known(mean: float) -> float | None:
    return None if math.isnan(mean) else mean


def render_zone(signal: ZoneNow) -> Mapping[str, Any]:
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
