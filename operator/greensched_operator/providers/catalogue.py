"""All providers by their name in GridSignals; a new one takes one file and one line here."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, get_args

import msgspec

from greensched_core.errors import BadInput
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import Conversation
from greensched_operator.providers.caiso_oasis import CaisoOasis
from greensched_operator.providers.electricity_maps import ElectricityMaps
from greensched_operator.providers.entsoe import Entsoe
from greensched_operator.providers.file import File
from greensched_operator.providers.json_endpoint import JsonEndpoint
from greensched_operator.providers.nord_pool import NordPool
from greensched_operator.providers.secret_keys import SecretKey
from greensched_operator.providers.static import Static
from greensched_operator.providers.tariff import Tariff
from greensched_operator.providers.uk_carbon_intensity import UkCarbonIntensity
from greensched_operator.providers.watttime import WattTime


class Talking(Protocol):
    """A provider with a web API: a frozen msgspec.Struct of an entry's fields.

    Its docstring's first paragraph and its fields' types, limits and descriptions make the
    GridSignal's definition and a row of docs/signals.md.
    """

    name: ClassVar[str]  # of the entry's field
    serves: ClassVar[tuple[SignalKind, ...]]
    least_interval_s: ClassVar[float]  # the shortest interval between two requests

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return the keys of Secrets that it needs, in the order in which `ask` takes them."""

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Yield requests, receive their replies, and return the answer; raises ProviderFault.

        `now` is in epoch seconds.
        """


Provider = Talking | JsonEndpoint | File | Static

ALL: tuple[type[Provider], ...] = (
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

BY_NAME: Mapping[str, type[Provider]] = {each.name: each for each in ALL}
NAMES = tuple(BY_NAME)
PROVIDERS: Mapping[SignalKind, Mapping[str, type[Provider]]] = {
    kind: {name: each for name, each in BY_NAME.items() if kind in each.serves}
    for kind in get_args(SignalKind)
}


def parse_provider(raw: Mapping[str, Any], kind: SignalKind) -> Provider:
    """Read one entry of a GridSignal's list; raise BadInput with what is wrong with it.

    The API server has already refused most invalid entries.
    """
    known = PROVIDERS[kind]
    named = [name for name in raw if raw[name] is not None]
    if len(named) != 1 or named[0] not in known:
        given = ", ".join(named)[:60] or "none"
        raise BadInput(
            f"{kind}: an entry must have exactly one of {', '.join(known)}; found {given}"
        )
    (name,) = named
    try:
        return msgspec.convert(raw[name], known[name])
    except msgspec.ValidationError as fault:
        raise BadInput(f"{kind}: {name}: {fault}") from fault
