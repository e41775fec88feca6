"""Converts between GridSignal objects and ZoneForecast: a zone's carbon and price by slot."""

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from greensched_core.errors import BadInput
from greensched_core.signals.series import SignalSeries
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp

MOST_GRAMS_PER_KWH = 10_000.0  # same as the CRD; the dirtiest coal has about 1,500
_MOST_PER_MWH = 1e9  # keeps integrals finite; the record price is about 2e4
_CLOCK_SKEW_S = 300.0  # observedAt may be this far ahead of our clock


class GridFault(StrEnum):
    """Why a part of a GridSignal was not used; a counter has one label value for each."""

    UNREADABLE = "unreadable"  # not an object of the expected shape
    NO_ZONE = "no-zone"
    ABSENT = "absent"  # neither carbon nor price in it
    BAD_TIMESTAMP = "bad-timestamp"
    FUTURE = "future"  # observed later than now
    BAD_NUMBER = "bad-number"  # not a number, not finite, or implausible
    NEGATIVE_CARBON = "negative-carbon"
    ALL_ZERO = "all-zero"  # providers send zeros for "no data" (WattTime did)
    UNSORTED = "unsorted"
    DUPLICATE = "duplicate"  # two slots with one start; the later in the list counts
    UNKNOWN_CURRENCY = "unknown-currency"  # no exchange rate
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class SignalFault:
    """One fault of a GridSignal: a reason to count by, and a sentence to read."""

    reason: GridFault
    text: str


@dataclass(frozen=True, slots=True)
class GridSlot:
    """The values from `start` until the next slot; None, never 0, means no data."""

    start: float  # seconds since the Unix epoch
    carbon_g_per_kwh: float | None
    price_per_mwh: float | None


@dataclass(frozen=True, slots=True)
class SignalOrigin:
    """The source of one signal of a zone; carbon and price may have different providers."""

    source: str
    observed_at: float  # when the source was read, seconds since the Unix epoch
    end: float | None = None  # end of its last slot
    is_estimated: bool = False  # the source estimated the current value
    currency: str = ""  # ISO 4217 of a price; "" if unknown


@dataclass(frozen=True, slots=True)
class ZoneForecast:
    """Carbon and price of one zone, current and forecast.

    A signal without its own origin is from `source`, observed at `observed_at`.
    """

    zone: str
    currency: str  # ISO 4217 of the prices; "" if unknown
    observed_at: float  # when the source was read, seconds since the Unix epoch
    source: str
    current: GridSlot | None
    forecast: tuple[GridSlot, ...]  # by ascending start
    forecast_end: float | None = None  # end of the last slot
    is_estimated: bool = False  # the source estimated the current values
    own_carbon_origin: SignalOrigin | None = None
    own_price_origin: SignalOrigin | None = None

    @property
    def carbon_origin(self) -> SignalOrigin:
        """The origin of the carbon intensity."""
        return self.own_carbon_origin or self._origin()

    @property
    def price_origin(self) -> SignalOrigin:
        """The origin of the price."""
        return self.own_price_origin or self._origin()

    def _origin(self) -> SignalOrigin:
        return SignalOrigin(
            self.source, self.observed_at, self.forecast_end, self.is_estimated, self.currency
        )

    def carbon(self) -> SignalSeries | None:
        """Return the carbon intensity in g/kWh over time; None without any value."""
        return self._series([slot.carbon_g_per_kwh for slot in self.forecast],
                            self.current.carbon_g_per_kwh if self.current else None,
                            self.carbon_origin.end)  # fmt: skip

    def price(self) -> SignalSeries | None:
        """Return the price per MWh in `currency` over time; None without any value."""
        return self._series([slot.price_per_mwh for slot in self.forecast],
                            self.current.price_per_mwh if self.current else None,
                            self.price_origin.end)  # fmt: skip

    def _series(
        self, ahead: Sequence[float | None], now: float | None, end: float | None
    ) -> SignalSeries | None:
        slots = {slot.start: value for slot, value in zip(self.forecast, ahead, strict=True)}
        if self.current is not None and now is not None:
            slots[self.current.start] = now  # it splits the forecast slot that it falls in
        if all(value is None for value in slots.values()):
            return None
        last = math.inf if end is None else end  # the other signal may be known for longer
        known = [(at, value) for at, value in slots.items() if value is not None or at < last]
        return SignalSeries(sorted(known), end)


def to_status(forecast: ZoneForecast) -> dict[str, Any]:
    """Return the forecast as the status of a GridSignal; raise BadInput for a time out of range.

    `parse_grid_signal` of it returns an equal forecast, to the microsecond.
    """
    status: dict[str, Any] = {
        "observedAt": format_timestamp(forecast.observed_at),
        "source": forecast.source,
    }
    if forecast.current is not None:
        status["current"] = {
            "startedAt": format_timestamp(forecast.current.start),
            **_values(forecast.current),
            "estimated": forecast.is_estimated,
        }
    if forecast.forecast:
        status["forecast"] = [
            {"start": format_timestamp(slot.start), **_values(slot)} for slot in forecast.forecast
        ]
    if forecast.forecast_end is not None:
        status["forecastEnd"] = format_timestamp(forecast.forecast_end)
    if forecast.own_carbon_origin is not None:
        status["carbon"] = _origin_status(forecast.own_carbon_origin)
    if forecast.own_price_origin is not None:
        status["price"] = _origin_status(forecast.own_price_origin)
    return status


def _origin_status(origin: SignalOrigin) -> dict[str, Any]:
    status: dict[str, Any] = {
        "source": origin.source,
        "observedAt": format_timestamp(origin.observed_at),
        "estimated": origin.is_estimated,
    }
    if origin.end is not None:
        status["end"] = format_timestamp(origin.end)
    if origin.currency:
        status["currency"] = origin.currency
    return status


@lru_cache(maxsize=4096)  # called for each zone on each request
def object_name(zone: str) -> str:
    """Return the metadata.name of a zone's GridSignal; zones are compared by it too."""
    return zone.lower().replace("_", "-")


def parse_grid_signal(
    raw: object, received_at: float
) -> tuple[ZoneForecast | None, tuple[SignalFault, ...]]:
    """Read a GridSignal (JSON bytes or decoded) and return its faults; never raises.

    What cannot be read counts as no data. The forecast is None if the zone, the time of
    observation or all values are missing.
    """
    reader = _Reader()
    try:
        decoded = msgspec.json.decode(raw) if isinstance(raw, bytes | str) else raw
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        reader.fault(GridFault.UNREADABLE, f"not JSON: {fault}")
        return None, tuple(reader.faults)
    return reader.forecast(decoded, received_at), tuple(reader.faults)


class _Reader:
    """Reads one object and collects its faults."""

    def __init__(self) -> None:
        self.faults: list[SignalFault] = []

    def fault(self, reason: GridFault, text: str) -> None:
        self.faults.append(SignalFault(reason, text))

    def forecast(self, raw: object, received_at: float) -> ZoneForecast | None:
        if not isinstance(raw, Mapping):
            self.fault(GridFault.UNREADABLE, f"a GridSignal is {_short(raw)}: it must be an object")
            return None
        spec, status = self._part(raw, "spec"), self._part(raw, "status")
        zone = spec.get("zone")
        if not isinstance(zone, str) or not zone:
            self.fault(GridFault.NO_ZONE, f"spec.zone is {_short(zone)}: name the grid zone there")
            return None
        now = self._part(status, "current")
        started_at = self._time(now, "startedAt", "status.current.")
        observed_at = self._time(status, "observedAt", "status.")
        started_at = observed_at if started_at is None else started_at
        observed_at = started_at if observed_at is None else observed_at
        current = self._slot(now, "status.current", started_at)
        forecast = self._forecast(status.get("forecast"))
        current, forecast = self._without_zeros(current, forecast)
        if current is None and all(
            slot.carbon_g_per_kwh is None and slot.price_per_mwh is None for slot in forecast
        ):
            self.fault(GridFault.ABSENT, "status holds neither carbon nor price")
            return None
        if observed_at is None:
            self.fault(
                GridFault.BAD_TIMESTAMP, "status.observedAt is missing, so the age is unknown"
            )
            return None
        currency = _text(spec.get("currency"))
        return ZoneForecast(
            zone=zone,
            currency=currency,
            observed_at=self._past(observed_at, received_at, "status.observedAt"),
            source=_text(status.get("source")) or "unnamed",
            current=current,
            forecast=tuple(forecast),
            forecast_end=self._time(status, "forecastEnd", "status."),
            is_estimated=now.get("estimated") is True,
            own_carbon_origin=self._origin(status, "carbon", "", received_at),
            own_price_origin=self._origin(status, "price", currency, received_at),
        )

    def _origin(
        self, status: Mapping[str, Any], name: str, currency: str, received_at: float
    ) -> SignalOrigin | None:
        """Return the origin of one signal; None if it has no time of observation."""
        where = f"status.{name}."
        part = self._part(status, name)
        observed_at = self._time(part, "observedAt", where)
        if observed_at is None:
            return None
        return SignalOrigin(
            source=_text(part.get("source")) or _text(status.get("source")) or "unnamed",
            observed_at=self._past(observed_at, received_at, f"{where}observedAt"),
            end=self._time(part, "end", where),
            is_estimated=part.get("estimated") is True,
            currency=_text(part.get("currency")) or currency,
        )

    def _past(self, observed_at: float, received_at: float, where: str) -> float:
        """Return the time of observation, at most that of receipt; add a fault if far ahead."""
        if observed_at > received_at + _CLOCK_SKEW_S:
            ahead_s = observed_at - received_at
            self.fault(GridFault.FUTURE, f"{where} is {ahead_s:.0f} s ahead of our clock: "
                                         f"counted as "
                       "observed when received")  # fmt: skip
        return min(observed_at, received_at)

    def _part(self, raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        part = raw.get(name)
        if isinstance(part, Mapping):
            return part
        if part is not None:
            self.fault(GridFault.UNREADABLE, f"{name} is {_short(part)}: it must be an object")
        return {}

    def _time(self, part: Mapping[str, Any], name: str, where: str) -> float | None:
        raw = part.get(name)
        if raw is None:
            return None
        try:
            return parse_timestamp(raw if isinstance(raw, str) else _short(raw))
        except BadInput as fault:
            self.fault(GridFault.BAD_TIMESTAMP, f"{where}{name}: {fault}")
            return None

    def _forecast(self, raw: object) -> list[GridSlot]:
        if raw is None:
            return []
        if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
            self.fault(GridFault.UNREADABLE, f"status.forecast is {_short(raw)}: it must be a list")
            return []
        slots: dict[float, GridSlot] = {}
        latest = -math.inf
        for index, item in enumerate(raw):
            where = f"status.forecast[{index}]"
            if not isinstance(item, Mapping):
                self.fault(GridFault.UNREADABLE, f"{where} is {_short(item)}: it must be an object")
                continue
            start = self._time(item, "start", f"{where}.")
            if start is None:
                if item.get("start") is None:
                    self.fault(GridFault.BAD_TIMESTAMP, f"{where}.start is missing")
                continue
            if start in slots:
                self.fault(
                    GridFault.DUPLICATE, f"{where}.start {_short(item['start'])} is there twice"
                )
            elif start < latest:
                self.fault(
                    GridFault.UNSORTED,
                    f"{where}.start {_short(item['start'])} is before the last one",
                )
            latest = max(latest, start)
            slots[start] = self._slot(item, where, start) or GridSlot(start, None, None)
        return [slots[start] for start in sorted(slots)]

    def _slot(self, part: Mapping[str, Any], where: str, start: float | None) -> GridSlot | None:
        """Return the slot's values; None without a start or without any value."""
        carbon = self._carbon(part.get("carbonGramsPerKwh"), f"{where}.carbonGramsPerKwh")
        price = self._number(part.get("pricePerMwh"), f"{where}.pricePerMwh", _MOST_PER_MWH)
        if start is None or (carbon is None and price is None):
            return None
        return GridSlot(start, carbon, price)

    def _carbon(self, raw: object, where: str) -> float | None:
        grams = self._number(raw, where, MOST_GRAMS_PER_KWH)
        if grams is not None and grams < 0:
            self.fault(GridFault.NEGATIVE_CARBON, f"{where} is {grams}: leave it out where unknown")
            return None
        return grams

    def _number(self, raw: object, where: str, most: float) -> float | None:
        if raw is None:
            return None
        if isinstance(raw, int | float) and not isinstance(raw, bool) and abs(raw) <= most:
            return float(raw)  # abs(nan) <= most is false
        self.fault(GridFault.BAD_NUMBER, f"{where} is {_short(raw)}: it must be a number, at most "
                   f"{most:g} in size")  # fmt: skip
        return None

    def _without_zeros(
        self, current: GridSlot | None, forecast: list[GridSlot]
    ) -> tuple[GridSlot | None, list[GridSlot]]:
        slots = [*forecast, *([current] if current else [])]
        known = [slot.carbon_g_per_kwh for slot in slots if slot.carbon_g_per_kwh is not None]
        if not known or any(known):
            return current, forecast
        self.fault(GridFault.ALL_ZERO, "every carbon value is 0: taken as no data")
        if current is not None:
            current = _dropped_carbon([current])[0]
            current = None if current.price_per_mwh is None else current
        return current, _dropped_carbon(forecast)


def _dropped_carbon(slots: Iterable[GridSlot]) -> list[GridSlot]:
    return [GridSlot(slot.start, None, slot.price_per_mwh) for slot in slots]


def _values(slot: GridSlot) -> dict[str, float]:
    """Return the values by their names in the object, without missing ones."""
    values = {
        "carbonGramsPerKwh": slot.carbon_g_per_kwh,
        "pricePerMwh": slot.price_per_mwh,
    }
    return {name: value for name, value in values.items() if value is not None}


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _short(raw: object) -> str:
    return "missing" if raw is None else reprlib.repr(raw)  # short, and safe for deep nesting
