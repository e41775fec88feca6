"""The spec of GridSignals as the operator reads it: providers in their order, and the interval."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.catalogue import Provider, parse_provider

KINDS: tuple[SignalKind, ...] = ("carbon", "price")
_INTERVAL_S = 900.0


class _Metadata(msgspec.Struct):
    name: str
    generation: int = 0


class _Spec(msgspec.Struct, rename="camel"):
    zone: str = ""
    currency: str = ""
    poll_interval: str | None = None
    carbon: list[dict[str, Any]] | None = None
    price: list[dict[str, Any]] | None = None


class GridSignalObject(msgspec.Struct):
    """The fields of a GridSignal that the operator reads."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
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
    """Return the spec; an entry that cannot be read is left out, and `faults` says why."""
    providers: dict[SignalKind, tuple[Provider, ...]] = {}
    faults: dict[SignalKind, str] = {}
    for kind in KINDS:
        good = []
        for raw in (item.spec.carbon if kind == "carbon" else item.spec.price) or []:
            try:
                good.append(parse_provider(raw, kind))
            except BadInput as fault:
                faults[kind] = str(fault)
        providers[kind] = tuple(good)
    return SignalSpec(
        item.metadata.name,
        item.metadata.generation,
        item.spec.zone,
        item.spec.currency,
        _interval_s(item.spec.poll_interval),
        providers,
        faults,
    )


def _interval_s(written: str | None) -> float:
    try:
        return parse_duration(written) if written else _INTERVAL_S
    except BadInput:
        return _INTERVAL_S  # the API server refuses such a duration
