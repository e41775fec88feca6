"""Finds each zone's signals: a fresh GridSignal, else last good values, else the static table.

Each signal falls back separately: carbon may be fresh while the price is absent.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from greensched_core.signals.currencies import Currencies
from greensched_core.signals.grid import (
    GridFault,
    SignalFault,
    SignalOrigin,
    ZoneForecast,
    object_name,
    parse_grid_signal,
)
from greensched_core.signals.series import SignalSeries
from greensched_core.signals.static import StaticZone, StaticZones
from greensched_core.signals.steps import (
    NO_DATA,
    AgeLimits,
    SignalKind,
    SignalState,
    Step,
    ZoneSignal,
)


@dataclass(frozen=True, slots=True)
class _Held:
    """The last good values of one signal of one zone; times in epoch seconds."""

    series: SignalSeries
    factor: float  # exchange rate; 1 for carbon
    known_at: float  # when it was observed, or its last slot ended if that is earlier
    source: str
    is_estimated: bool  # by its source
    fresh_until: float  # minus infinity once the object is gone or lacks this signal
    good_until: float

    def is_fresh(self, now: float) -> bool:
        """Return whether the object still has these values and they are young enough."""
        return now <= self.fresh_until


@dataclass(frozen=True, slots=True)
class Forecast:
    """One signal of a zone over time, from a GridSignal."""

    series: SignalSeries
    factor: float  # exchange rate; 1 for carbon
    known_at: float  # when it was observed, in epoch seconds
    source: str

    def mean(self, begin: float, until: float) -> float:
        """Return the mean over [begin, until) in g/kWh, or per MWh in the chain's currency."""
        return self.series.mean(begin, until) * self.factor


CountSteps = Callable[[SignalKind, Step, int], None]
CountFault = Callable[[str, SignalFault], None]


def _ignore(*_: object) -> None:
    return None


class GridSignals:
    """The zones' signals; the watch writes them, requests read them. Not thread-safe."""

    def __init__(
        self,
        static: StaticZones,
        *,
        currencies: Currencies | None = None,
        limits: AgeLimits | None = None,
        count_steps: CountSteps = _ignore,
        count_fault: CountFault = _ignore,
    ) -> None:
        """`count_steps` gets signal, step and number of answers; `count_fault` zone and fault."""
        self._static = static
        self._currencies = currencies or Currencies()
        self._limits = limits or AgeLimits()
        self._count_steps = count_steps
        self._count_fault = count_fault
        self._carbon: dict[str, _Held] = {}  # by `object_name` of the zone
        self._price: dict[str, _Held] = {}
        self._static_of: dict[str, tuple[SignalState, SignalState]] = {}
        self._zone_of: dict[str, str] = {}  # zone by metadata.name, both as object names
        self._sweep_at = -math.inf  # when to drop old values next; epoch seconds

    @property
    def held_zones(self) -> frozenset[str]:
        """The zones (as object names) with a value from a GridSignal."""
        return frozenset(self._carbon.keys() | self._price.keys())

    @property
    def currency(self) -> str:
        """The currency of all returned prices."""
        return self._currencies.target

    def upsert(self, name: str, raw: object, now: float) -> tuple[SignalFault, ...]:
        """Take in the GridSignal `name` (JSON bytes or decoded); return and count its faults."""
        forecast, faults = parse_grid_signal(raw, now)
        zone = object_name(forecast.zone) if forecast else self._zone_of.get(name, name)
        if self._zone_of.get(name, zone) != zone:
            self.delete(name)
        self._zone_of[name] = zone
        if forecast is None:
            self._expire(zone)
        else:
            faults += self._hold(zone, forecast, now)
        for fault in faults:
            self._count_fault(zone, fault)
        self._drop_too_old(now)
        return faults

    def delete(self, name: str) -> None:
        """Forget the object; its values stay the last good ones until they are too old."""
        self._expire(self._zone_of.pop(name, name))

    def keep_only(self, names: Iterable[str]) -> None:
        """Delete every object that is not in `names`, the result of a new list."""
        for name in self._zone_of.keys() - set(names):
            self.delete(name)

    def zone(self, zone: str, now: float) -> ZoneSignal:
        """Return a zone's signals at `now`; "" is an unknown zone."""
        name = object_name(zone)
        held_carbon = _good(self._carbon, name, now)
        held_price = _good(self._price, name, now)
        static_carbon, static_price = self._static_states(name)
        carbon = self._state(held_carbon, now) if held_carbon else static_carbon
        price = self._state(held_price, now) if held_price else static_price
        self._count_steps("carbon", carbon.step, 1)
        self._count_steps("price", price.step, 1)
        return ZoneSignal(zone, carbon, price, self.currency)

    def zone_means(
        self, zones: Sequence[str], now: float, runtime_s: float
    ) -> tuple[list[float], list[float]]:
        """Return the means over [now, now + runtime_s] of carbon (g/kWh) and price (per MWh).

        One entry per zone; NaN means no data.
        """
        until = now + max(runtime_s, 0.0)
        names = [object_name(zone) for zone in zones]
        carbon = self._means("carbon", self._carbon, names, now, until)
        return carbon, self._means("price", self._price, names, now, until)

    def forecasts(self, zone: str, now: float) -> tuple[Forecast | None, Forecast | None]:
        """Return carbon and price of a zone over time; None if there is only a static value."""
        name = object_name(zone)
        carbon, price = (_good(known, name, now) for known in (self._carbon, self._price))
        return _forecast(carbon), _forecast(price)

    def _means(
        self,
        kind: SignalKind,
        known: dict[str, _Held],
        names: Sequence[str],
        now: float,
        until: float,
    ) -> list[float]:
        means: list[float] = []
        steps: list[Step] = []
        fresh = 0
        for name in names:
            held = known.get(name)
            if held is not None and now <= held.good_until:
                means.append(held.series.mean(now, until) * held.factor)
                if now <= held.fresh_until:
                    fresh += 1
                else:
                    steps.append(Step.LAST_GOOD)
            else:
                state = self._static_states(name)[kind == "price"]
                means.append(math.nan if state.value is None else state.value)
                steps.append(state.step)
        if fresh:  # counted separately: hashing an enum member takes as long as a mean
            self._count_steps(kind, Step.GRID_SIGNAL, fresh)
        for step, count in Counter(steps).items():
            self._count_steps(kind, step, count)
        return means

    def _hold(self, zone: str, forecast: ZoneForecast, now: float) -> tuple[SignalFault, ...]:
        faults = []
        carbon, price = forecast.carbon(), forecast.price()
        currency = forecast.price_origin.currency
        rate = self._currencies.rate(currency)
        if price is not None and rate is None:
            faults.append(self._no_rate(currency, "its prices count"))
            price = None
        self._keep(self._carbon, zone, carbon, 1.0, forecast.carbon_origin)
        self._keep(self._price, zone, price, rate or 1.0, forecast.price_origin)
        known = ((carbon, forecast.carbon_origin), (price, forecast.price_origin))
        observed = {origin.observed_at for series, origin in known if series is not None}
        for age_s in sorted(now - at for at in observed or {forecast.observed_at}):
            if age_s > self._limits.fresh_s:
                faults.append(SignalFault(
                    GridFault.STALE, f"observed {age_s:.0f} s ago, above "
                                     f"{self._limits.fresh_s:.0f} s"
                ))  # fmt: skip
        return tuple(faults)

    def _keep(
        self,
        known: dict[str, _Held],
        zone: str,
        series: SignalSeries | None,
        factor: float,
        origin: SignalOrigin,
    ) -> None:
        if series is None:
            _expire_signal(known, zone)
            return
        known_at = min(origin.observed_at, series.end)
        known[zone] = _Held(
            series,
            factor,
            known_at,
            origin.source,
            origin.is_estimated,
            fresh_until=known_at + self._limits.fresh_s,
            good_until=known_at + self._limits.max_stale_s,
        )

    def _drop_too_old(self, now: float) -> None:
        """Drop values that are too old to be used, so that deleted zones do not pile up.

        Runs only every `fresh_s`, since it visits all zones.
        """
        if now < self._sweep_at:
            return
        self._sweep_at = now + self._limits.fresh_s
        for known in (self._carbon, self._price):
            for zone in [zone for zone, held in known.items() if now > held.good_until]:
                del known[zone]

    def _expire(self, zone: str) -> None:
        _expire_signal(self._carbon, zone)
        _expire_signal(self._price, zone)

    def _state(self, held: _Held, now: float) -> SignalState:
        return SignalState(
            value=held.series.at(now) * held.factor,
            step=Step.GRID_SIGNAL if held.is_fresh(now) else Step.LAST_GOOD,
            age_s=max(now - held.known_at, 0.0),
            source=held.source,
            is_estimated=held.is_estimated or held.series.is_estimated_at(now),
        )

    def _static_states(self, name: str) -> tuple[SignalState, SignalState]:
        """Return carbon and price of the static table, computed once per zone."""
        states = self._static_of.get(name)
        if states is None:
            zone, default = self._static.find(name), self._static.default
            entries = [(default, Step.STATIC_DEFAULT)]
            if zone is not None:
                entries.insert(0, (zone, Step.STATIC_ZONE))
            states = self._static_carbon(entries), self._static_price(name, entries)
            self._static_of[name] = states
        return states

    def _static_carbon(self, entries: Sequence[tuple[StaticZone, Step]]) -> SignalState:
        for entry, step in entries:
            if entry.carbon_g_per_kwh is not None:
                return SignalState(
                    entry.carbon_g_per_kwh, step, None, entry.source, is_estimated=True
                )
        return NO_DATA

    def _static_price(self, name: str, entries: Sequence[tuple[StaticZone, Step]]) -> SignalState:
        for entry, step in entries:
            if entry.price_per_mwh is None:
                continue
            rate = self._currencies.rate(entry.currency)
            if rate is not None:
                return SignalState(
                    entry.price_per_mwh * rate, step, None, entry.source, is_estimated=True
                )
            self._count_fault(name, self._no_rate(entry.currency, "its static price counts"))
        return NO_DATA

    def _no_rate(self, currency: str, what: str) -> SignalFault:
        return SignalFault(
            GridFault.UNKNOWN_CURRENCY,
            f"no exchange rate from {currency} to {self.currency}: set one, or {what} as no data",
        )


def _good(known: dict[str, _Held], name: str, now: float) -> _Held | None:
    held = known.get(name)
    return held if held is not None and now <= held.good_until else None


def _forecast(held: _Held | None) -> Forecast | None:
    if held is None:
        return None
    return Forecast(held.series, held.factor, held.known_at, held.source)


def _expire_signal(known: dict[str, _Held], zone: str) -> None:
    held = known.get(zone)
    if held is not None:
        known[zone] = replace(held, fresh_until=-math.inf)
