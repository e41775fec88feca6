"""Carbon Intensity API of Great Britain: average, direct, half hours; no key, CC BY 4.0.

Wire: https://carbon-intensity.github.io/api-definitions
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from greensched_core.signals.steps import SignalKind
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    Interval,
    ProviderFault,
    Request,
    carbon_answer,
)
from greensched_operator.providers.decoding import (
    accepted,
    decoded_number,
    decoded_text,
    json_of,
    mapping,
    moment,
    rows,
)
from greensched_operator.providers.secret_keys import SecretKey

_URL = "https://api.carbonintensity.org.uk"
_SLOT_S = 1_800.0
_REFUSALS = {400: FaultReason.UNKNOWN_ZONE}


class UkCarbonIntensity(msgspec.Struct, frozen=True, rename="camel"):
    """Average, direct, half hours, up to 48 hours ahead; Great Britain or one of its regions."""

    name: ClassVar[str] = "ukCarbonIntensity"
    serves: ClassVar[tuple[SignalKind, ...]] = ("carbon",)
    least_interval_s: ClassVar[float] = 300.0

    region_id: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=17,
                description="Region by its number; all of Great Britain by default.",
            ),
        ]
        | None
    ) = None

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return nothing: it needs no key."""
        return ()

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Ask for 48 hours from the current half hour on."""
        since = format_timestamp(now // _SLOT_S * _SLOT_S).replace(":00Z", "Z")
        path = f"/intensity/{since}/fw48h"
        if self.region_id is not None:
            path = f"/regional{path}/regionid/{self.region_id}"
        return read(accepted((yield Request(_URL + path)), refusals=_REFUSALS), now)


def read(body: bytes, now: float) -> Answer:
    """Return measured values, else forecasts. Raises ProviderFault, also for errors with 200."""
    page = mapping(json_of(body), "the answer")
    if "error" in page:
        raise _error(page["error"])
    intervals = []
    is_estimated = True
    for raw in _slots(page.get("data")):
        slot = mapping(raw, "a slot")
        start, end = moment(slot.get("from"), "from"), moment(slot.get("to"), "to")
        intensity = mapping(slot.get("intensity"), "intensity")
        actual = decoded_number(intensity.get("actual"), "actual")
        forecast = decoded_number(intensity.get("forecast"), "forecast")
        if start <= now < end:
            is_estimated = actual is None
        intervals.append(Interval(start, end, forecast if actual is None else actual))
    return carbon_answer(intervals, "uk-carbon-intensity/average/direct", is_estimated=is_estimated)


def _slots(raw: object) -> Sequence[Any]:
    """Return the slots: a list for the nation, or within an object or its list for a region."""
    if raw is None:
        raise ProviderFault(FaultReason.NO_DATA, "the answer is empty")
    regional = raw[0] if isinstance(raw, list) and len(raw) == 1 else raw
    if isinstance(regional, Mapping) and "data" in regional:
        return rows(regional["data"], "data of the region")
    return rows(raw, "data")


def _error(raw: object) -> ProviderFault:
    error = raw if isinstance(raw, Mapping) else {}
    code = decoded_text(error.get("code"))
    reason = FaultReason.SERVER_ERROR if code.startswith("5") else FaultReason.UNKNOWN_ZONE
    return ProviderFault(
        reason, f"refused: {code[:40]}: {decoded_text(error.get('message'))[:120]}"
    )
