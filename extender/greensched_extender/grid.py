"""What the grid behind each zone will cost over a run."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from greensched_core.signals import steps
from greensched_extender.scoring import ZoneMeans


@dataclass(frozen=True, slots=True)
class ZoneNow:
    """What is known of a zone's grid at one moment."""

    zone: str
    carbon_g_per_kwh: float | None  # mean over the expected run, or now; None: no data
    price_per_mwh: float | None
    carbon_step: str  # which step of the fallback chain gave it
    price_step: str
    carbon_age_s: float | None
    price_age_s: float | None
    currency: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RunOutlook:
    """What every zone of a view is expected to cost over one run."""

    means: ZoneMeans
    states: tuple[steps.ZoneSignal, ...]  # in the order of the view's zones; one for all runs

    @property
    def signals(self) -> tuple[ZoneNow, ...]:
        """Means, and where they come from, zone by zone: for people, so made when they ask."""
        means = self.means.carbon_g_per_kwh.tolist(), self.means.price_per_mwh.tolist()
        return tuple(
            _signal(state, _known(carbon), _known(price))
            for state, carbon, price in zip(self.states, *means, strict=True)
        )


# zone, seconds since the epoch → where its values come from now; never raises
StateOf = Callable[[str, float], steps.ZoneSignal]
# zones, seconds since the epoch, seconds of the run → means of carbon and price; NaN is no data
MeansOver = Callable[[Sequence[str], float, float], tuple[list[float], list[float]]]


class OutlookCache:
    """Keeps the outlooks of the running second, by runtime.

    Means are those of `means_over` for exactly that runtime, nothing is rounded, so that a
    decision reckons with what a bill would; only their start may lie up to a second back. A
    runtime that is new in the second costs one call for all zones; steps and ages, which do not
    depend on it, are read once a second.
    """

    def __init__(self, state_of: StateOf, means_over: MeansOver) -> None:
        self._state_of = state_of
        self._means_over = means_over
        self._second = -1
        self._zones: tuple[str, ...] = ()
        self._states: tuple[steps.ZoneSignal, ...] = ()
        self._outlooks: dict[float, RunOutlook] = {}

    def outlook(self, zones: tuple[str, ...], now: float, runtime_s: float) -> RunOutlook:
        """Return the outlook for a run of `runtime_s` from `now` (seconds since the epoch)."""
        if int(now) != self._second or zones is not self._zones:
            self._second, self._zones, self._outlooks = int(now), zones, {}
            self._states = tuple(self._state_of(zone, now) for zone in zones)
        outlook = self._outlooks.get(runtime_s)
        if outlook is None:
            carbon, price = self._means_over(zones, now, runtime_s)
            outlook = RunOutlook(ZoneMeans(np.array(carbon), np.array(price)), self._states)
            self._outlooks[runtime_s] = outlook
        return outlook

    def now(self, zones: tuple[str, ...], now: float) -> dict[str, ZoneNow]:
        """Return what holds now in each named zone."""
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
