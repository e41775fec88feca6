"""Electricity Maps: average carbon intensity by flow tracing, life-cycle or direct.

Wire: https://app.electricitymaps.com/docs, v4. A free key has access to one zone, or to all without
history.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from greensched_core.signals.grid import object_name
from greensched_core.signals.steps import SignalKind
from greensched_core.units import SECONDS_PER_HOUR
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
    garbage,
    json_of,
    mapping,
    moment,
    moment_if_any,
    rows,
)
from greensched_operator.providers.secret_keys import SecretKey, TokenRef

_URL = "https://api.electricitymaps.com/v4/carbon-intensity/"
_LABELS = {"lifecycle": "life-cycle", "direct": "direct"}
_NO_FORECAST = {  # the plan does not include forecasts
    FaultReason.UNAUTHORISED,
    FaultReason.NO_DATA,
    FaultReason.UNKNOWN_ZONE,
}
_FINAL = {  # a second request would fail as well
    FaultReason.UNREACHABLE,
    FaultReason.RATE_LIMITED,
    FaultReason.SERVER_ERROR,
    FaultReason.UNKNOWN_ZONE,
}


class ElectricityMaps(msgspec.Struct, frozen=True, rename="camel"):
    """Average, by flow tracing, life-cycle or direct, by the hour, up to 72 hours ahead."""

    name: ClassVar[str] = "electricityMaps"
    serves: ClassVar[tuple[SignalKind, ...]] = ("carbon",)
    least_interval_s: ClassVar[float] = 300.0

    zone: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            description="Zone as Electricity Maps spells it, such as DE or US-CAL-CISO.",
        ),
    ]
    secret_ref: TokenRef
    emission_factor_type: Literal["lifecycle", "direct"] = "lifecycle"
    horizon_hours: Literal[6, 24, 48, 72] = 24

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return the key of the API token."""
        return (self.secret_ref.secret_key(),)

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Ask for the current hour and, if the plan includes it, the forecast.

        If the forecast fails temporarily, the whole answer fails: the last good answer may have
        later hours, which the current hour alone would remove.
        """
        refused: ProviderFault | None = None
        latest = forecast = None
        try:
            latest = accepted((yield self._request("latest", secrets[0])), refusals=_REFUSALS)
        except ProviderFault as fault:
            if fault.reason in _FINAL:
                raise
            refused = fault
        try:
            forecast = accepted((yield self._request("forecast", secrets[0])), refusals=_REFUSALS)
        except ProviderFault as fault:
            if fault.reason not in _NO_FORECAST:
                raise
            refused = refused or fault
        if latest is None and forecast is None and refused is not None:
            raise refused
        return read(latest, forecast, self.zone, self.emission_factor_type)

    def _request(self, what: str, token: str) -> Request:
        parameters = [
            ("zone", self.zone),
            ("emissionFactorType", self.emission_factor_type),
            ("temporalGranularity", "hourly"),
            # Otherwise the zone of our own address replaces a zone that it cannot resolve.
            ("disableCallerLookup", "true"),
        ]
        if what == "forecast":
            parameters.append(("horizonHours", str(self.horizon_hours)))
        return Request(_URL + what, tuple(parameters), (("auth-token", token),))


_REFUSALS: Mapping[int, FaultReason] = {400: FaultReason.UNKNOWN_ZONE, 404: FaultReason.NO_DATA}


def read(
    latest: bytes | None, forecast: bytes | None, zone: str, factor_type: str = "lifecycle"
) -> Answer:
    """Return both bodies as one answer; either may be missing. Raises ProviderFault."""
    intervals = []
    observed_at, is_estimated = None, True
    for body in (forecast, latest):  # the later one counts: an observation replaces its forecast
        if body is None:
            continue
        page = mapping(json_of(body), "the answer")
        found = _intervals(page)
        _refuse_other_zone(page, zone)
        intervals += found
        factor_type = decoded_text(page.get("emissionFactorType")) or factor_type
        observed_at = moment_if_any(page.get("updatedAt")) or observed_at
        is_estimated = body is forecast or page.get("isEstimated") is True
    source = f"electricity-maps/average/{_LABELS.get(factor_type, 'unknown')}"
    return carbon_answer(intervals, source, observed_at=observed_at, is_estimated=is_estimated)


def _intervals(page: Mapping[str, Any]) -> list[Interval]:
    if page.get("estimationMethod") == "SANDBOX_MODE_DATA":
        raise ProviderFault(
            FaultReason.NO_DATA,
            "the key is a sandbox key, whose values are not real; use a production key",
        )
    points = rows(page["forecast"], "forecast") if "forecast" in page else [page]
    intervals = []
    for raw in points:
        point = mapping(raw, "a forecast's row")
        start = moment(point.get("datetime"), "datetime")
        value = decoded_number(point.get("carbonIntensity"), "carbonIntensity")
        intervals.append(Interval(start, start + SECONDS_PER_HOUR, value))
    return intervals


def _refuse_other_zone(page: Mapping[str, Any], zone: str) -> None:
    answered = decoded_text(page.get("zone"))
    if object_name(answered) != object_name(zone):
        raise garbage(f"asked for zone {zone}, the answer is for {answered[:63]!r}")
