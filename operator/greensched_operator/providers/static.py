"""The shipped table of yearly means, for zones without a better provider."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from greensched_core.signals.static import StaticZones
from greensched_core.signals.steps import SignalKind
from greensched_core.units import SECONDS_PER_HOUR
from greensched_operator.providers.answers import (
    Answer,
    FaultReason,
    Interval,
    ProviderFault,
    carbon_answer,
    price_answer,
)
from greensched_operator.providers.secret_keys import SecretKey


class Static(msgspec.Struct, frozen=True, rename="camel"):
    """The shipped table of yearly means."""

    name: ClassVar[str] = "static"
    serves: ClassVar[tuple[SignalKind, ...]] = ("carbon", "price")
    least_interval_s: ClassVar[float] = 900.0

    zone: Annotated[
        str, Meta(max_length=63, description="Zone of the table; spec.zone by default.")
    ] = ""

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return nothing: it needs no key."""
        return ()


def read(static: Static, zone: str, table: StaticZones, kind: SignalKind, now: float) -> Answer:
    """Return the zone's yearly mean, or for carbon the world's if the zone has none.

    Raises ProviderFault if there is neither.
    """
    entries = [each for each in (table.find(static.zone or zone), table.default) if each]
    until = now + 24 * SECONDS_PER_HOUR
    for entry in entries:
        if kind == "carbon" and entry.carbon_g_per_kwh is not None:
            mean = Interval(now, until, entry.carbon_g_per_kwh)
            return carbon_answer([mean], "static/average/life-cycle", is_estimated=True)
        if kind == "price" and entry.price_per_mwh is not None:
            mean = Interval(now, until, entry.price_per_mwh)
            return price_answer([mean], "static", entry.currency, is_estimated=True)
    raise ProviderFault(
        FaultReason.UNKNOWN_ZONE, f"the static table has no {kind} for zone {static.zone or zone}"
    )
