"""All providers: which serve carbon, which a price, and how each is asked."""

from collections.abc import Mapping
from typing import Any

import msgspec

from greensched_core.errors import BadInput
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.caiso_oasis import CaisoOasis
from greensched_operator.providers.electricity_maps import ElectricityMaps
from greensched_operator.providers.entsoe import Entsoe
from greensched_operator.providers.file import File
from greensched_operator.providers.json_endpoint import JsonEndpoint
from greensched_operator.providers.nord_pool import NordPool
from greensched_operator.providers.static import Static
from greensched_operator.providers.tariff import Tariff
from greensched_operator.providers.uk_carbon_intensity import UkCarbonIntensity
from greensched_operator.providers.watttime import WattTime

Talking = ElectricityMaps | WattTime | UkCarbonIntensity | Entsoe | NordPool | CaisoOasis | Tariff
Provider = Talking | JsonEndpoint | File | Static

_ALL: tuple[type[Provider], ...] = (
    ElectricityMaps,
    WattTime,
    UkCarbonIntensity,
    Entsoe,
    NordPool,
    CaisoOasis,
    Tariff,
    JsonEndpoint,
    File,
    Static,
)
_ONLY_CARBON = {ElectricityMaps.name, WattTime.name, UkCarbonIntensity.name}
_ONLY_PRICE = {Entsoe.name, NordPool.name, CaisoOasis.name, Tariff.name}

NAMES = tuple(kind.name for kind in _ALL)
PROVIDERS: Mapping[SignalKind, Mapping[str, type[Provider]]] = {
    "carbon": {kind.name: kind for kind in _ALL if kind.name not in _ONLY_PRICE},
    "price": {kind.name: kind for kind in _ALL if kind.name not in _ONLY_CARBON},
}


def parse_provider(raw: Mapping[str, Any], kind: SignalKind) -> Provider:
    """Read one entry of a GridSignal's list; raise BadInput that says what is wrong with it.

    The API server has refused most of that already.
    """
    known = PROVIDERS[kind]
    named = [name for name in raw if raw[name] is not None]
    if len(named) != 1 or named[0] not in known:
        given = ", ".join(named)[:60] or "none"
        raise BadInput(f"{kind}: name exactly one of {', '.join(known)} in an entry, not {given}")
    (name,) = named
    try:
        return msgspec.convert(raw[name], known[name])
    except msgspec.ValidationError as fault:
        raise BadInput(f"{kind}: {name}: {fault}") from fault
