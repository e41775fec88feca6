"""The spec of GridSignals as the operator reads it: providers in their order, and the interval."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from greensched_core.custom_resources.fields import (
    FieldDefinition,
    FieldKind,
    SchemaRule,
    as_read,
    custom_field,
    group,
    many,
    plain,
    text,
)
from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.catalogue import Provider, parse_provider

KINDS: tuple[SignalKind, ...] = ("carbon", "price")
_INTERVAL = "15m"
_INTERVAL_S = parse_duration(_INTERVAL)


def _interval_s(raw: object, where: str) -> float:
    try:
        return parse_duration(plain(str, raw, where))
    except BadInput:
        return _INTERVAL_S  # the API server refuses such a duration


def _entry(raw: object, where: str) -> dict[str, Any]:
    return plain(dict, raw, where)  # `parse_spec` reads on: one bad entry leaves the others


_PROVIDERS = many(
    FieldKind(_entry, {"type": "object"}, "provider"), 8, as_read, unit="list of providers"
)


@dataclass(frozen=True, slots=True)
class SpecFields:
    """The spec of a GridSignal, as users write it."""

    zone: str = custom_field(
        "zone",
        replace(
            text(
                63,
                "text",
                SchemaRule(
                    "self.matches('^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$')",
                    "zone may hold letters, digits, '-' and '_', and starts and ends with a letter "
                    "or digit",
                ),
                SchemaRule(
                    "self == oldSelf",
                    "zone cannot change; delete this GridSignal and create one for the other zone",
                ),
            ),
            schema={"type": "string", "minLength": 1, "maxLength": 63},
        ),
        "Grid zone, spelt as its provider does (DE, US-CAL-CISO, CAISO_NORTH).",
        needed="a GridSignal needs the zone it is of",
    )
    currency: str = custom_field(
        "currency",
        text(
            10,
            "ISO 4217 code",
            SchemaRule(
                "self.matches('^[A-Z]{3}$')",
                "currency must be three capital letters, such as EUR",
            ),
        ),
        "Currency of the prices (EUR).",
        unset="",
        absent="that of the provider",
    )
    interval_s: float = custom_field(
        "pollInterval",
        FieldKind(
            _interval_s,
            {"type": "string", "maxLength": 20},
            "duration, 1m to 24h",
            (
                SchemaRule(
                    "self.matches('^([0-9]+(h|m|s))+$') && duration(self) >= duration('1m') "
                    "&& duration(self) <= duration('24h')",
                    f"pollInterval must be a duration from 1m to 24h, such as {_INTERVAL} or 1h30m",
                ),
            ),
        ),
        f"How often providers are asked, {_INTERVAL} by default; some are never asked that often.",
        unset=_INTERVAL_S,
        absent=f"`{_INTERVAL}`",
    )
    carbon: tuple[dict[str, Any], ...] = custom_field(
        "carbon",
        _PROVIDERS,
        "Providers of the carbon intensity, best first; the next one serves while those before it "
        "fail.",
        unset=(),
        absent="none",
    )
    price: tuple[dict[str, Any], ...] = custom_field(
        "price",
        _PROVIDERS,
        "Providers of the price, best first; the next one serves while those before it fail.",
        unset=(),
        absent="none",
    )


_SPEC = group(SpecFields, as_read)
SPEC = FieldDefinition("spec", replace(_SPEC, schema={"type": "object", "required": ["zone"]}), "")


class _Metadata(msgspec.Struct):
    name: str
    generation: int = 0


class GridSignalObject(msgspec.Struct):
    """The fields of a GridSignal that the operator reads."""

    metadata: _Metadata
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] | None = None


decode_grid_signal = msgspec.json.Decoder(GridSignalObject).decode


@dataclass(frozen=True, slots=True)
class SignalSpec:
    """The spec of a GridSignal; the operator does not fill one without providers."""

    name: str
    generation: int
    zone: str
    currency: str  # of prices whose provider names none
    interval_s: float
    providers: Mapping[SignalKind, tuple[Provider, ...]]
    faults: Mapping[SignalKind, str] = field(default_factory=dict)  # entries that were not read

    @property
    def is_ours(self) -> bool:
        """Return whether the operator fills it."""
        return any(self.providers.values()) or bool(self.faults)


def parse_spec(item: GridSignalObject) -> SignalSpec:
    """Return the spec; an entry that cannot be read is left out, and `faults` says why.

    Raises BadInput for a spec that the API server would refuse otherwise.
    """
    spec = _SPEC.read(item.spec, "spec")
    entries: Mapping[SignalKind, tuple[dict[str, Any], ...]] = {
        "carbon": spec.carbon,
        "price": spec.price,
    }
    providers: dict[SignalKind, tuple[Provider, ...]] = {}
    faults: dict[SignalKind, str] = {}
    for kind, listed in entries.items():
        good = []
        for raw in listed:
            try:
                good.append(parse_provider(raw, kind))
            except BadInput as fault:
                faults[kind] = str(fault)
        providers[kind] = tuple(good)
    return SignalSpec(
        item.metadata.name,
        item.metadata.generation,
        spec.zone,
        spec.currency,
        spec.interval_s,
        providers,
        faults,
    )
