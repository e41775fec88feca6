"""Yearly averages of carbon and price by grid zone, the last fallback."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from greensched_core.errors import BadInput
from greensched_core.signals.grid import MOST_GRAMS_PER_KWH, object_name

_KEYS = frozenset({"carbon_grams_per_kwh", "price_per_mwh", "currency", "source", "year"})
_SHIPPED = "static_zones.toml"


@dataclass(frozen=True, slots=True)
class StaticZone:
    """Yearly averages of one zone; None means no data."""

    zone: str
    carbon_g_per_kwh: float | None
    price_per_mwh: float | None
    currency: str  # of the price, ISO 4217; "" if unknown
    source: str


@dataclass(frozen=True)
class StaticZones:
    """A table of zones, and the default for all other zones."""

    zones: Mapping[str, StaticZone]  # by `object_name` of the zone
    default: StaticZone

    def find(self, zone: str) -> StaticZone | None:
        """Return the zone's own entry, else its country's (NO for NO-NO1), else None."""
        name = object_name(zone)
        return self.zones.get(name) or self.zones.get(name.partition("-")[0])


def load_static_zones(user_file: Path | None = None) -> StaticZones:
    """Return the shipped table, overridden by a user's zones and default.

    Raises BadInput that lists every fault of the user's file.
    """
    shipped = _shipped()
    if user_file is None:
        return shipped
    try:
        text = user_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"static zones: cannot read {user_file}: {fault}") from fault
    mine = parse_static_zones(text, str(user_file), default=shipped.default)
    return StaticZones({**shipped.zones, **mine.zones}, mine.default)


def parse_static_zones(text: str, where: str, *, default: StaticZone | None = None) -> StaticZones:
    """Read a table of zones (TOML); raise BadInput that lists every fault in `where`.

    `default` is used if the table has none.
    """
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise BadInput(f"static zones: {where} is not TOML: {fault}") from fault
    faults = [f"unknown table {key!r}" for key in sorted(table.keys() - {"zones", "default"})]
    entries = table.get("zones", {})
    if not isinstance(entries, Mapping):
        faults.append("zones must be tables: write [zones.DE]")
        entries = {}
    faults += _doubled(entries)
    zones = {
        object_name(name): _zone(name, entry, f"zones.{name}", where, faults)
        for name, entry in entries.items()
    }
    if "default" in table:
        default = _zone("", table["default"], "default", where, faults)
    if default is None:
        faults.append("no [default]")
        default = StaticZone("", None, None, "", where)
    if faults:
        raise BadInput(f"static zones: {where}: " + "; ".join(faults))
    return StaticZones(zones, default)


def _doubled(names: Iterable[str]) -> list[str]:
    """Return a fault for each zone that is written twice, such as `DE` and `de`."""
    first: dict[str, str] = {}
    return [
        f"zones.{name} is the same zone as zones.{first[object_name(name)]}: leave one out"
        for name in names
        if first.setdefault(object_name(name), name) != name
    ]


@cache
def _shipped() -> StaticZones:
    text = resources.files("greensched_core.signals").joinpath(_SHIPPED).read_text("utf-8")
    return parse_static_zones(text, _SHIPPED)


def _zone(name: str, entry: object, path: str, where: str, faults: list[str]) -> StaticZone:
    if not isinstance(entry, Mapping):
        faults.append(f"{path} must be a table with carbon_grams_per_kwh or price_per_mwh")
        return StaticZone(name, None, None, "", where)
    unknown = ", ".join(sorted(entry.keys() - _KEYS))
    if unknown:
        faults.append(f"{path}: unknown {unknown}; known are {', '.join(sorted(_KEYS))}")
    carbon = _number(entry, "carbon_grams_per_kwh", path, faults)
    price = _number(entry, "price_per_mwh", path, faults)
    if carbon is not None and not 0 <= carbon <= MOST_GRAMS_PER_KWH:
        faults.append(f"{path}.carbon_grams_per_kwh is {carbon:g}: it must be 0 … 10000")
    if "carbon_grams_per_kwh" not in entry and "price_per_mwh" not in entry:
        faults.append(f"{path} holds neither carbon_grams_per_kwh nor price_per_mwh")
    currency = entry.get("currency", "")
    if not isinstance(currency, str):
        faults.append(f'{path}.currency must be text such as "EUR"')
        currency = ""
    year = f" {entry['year']}" if "year" in entry else ""
    return StaticZone(name, carbon, price, currency, f"{entry.get('source', where)}{year}")


def _number(entry: Mapping[str, Any], key: str, path: str, faults: list[str]) -> float | None:
    raw = entry.get(key)
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, int | float) or abs(raw) > 1e9:
        faults.append(f"{path}.{key} is {raw!r}: it must be a number")
        return None
    if not math.isfinite(raw):
        faults.append(f"{path}.{key} is {raw!r}: it must be finite")
        return None
    return float(raw)
