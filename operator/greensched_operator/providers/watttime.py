"""WattTime v3: marginal emissions (MOER), direct CO2, in slots of five minutes.

Wire: https://docs.watttime.org; a free account has access to the region CAISO_NORTH.
"""

import base64
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from greensched_core.signals.steps import SignalKind
from greensched_core.units import KWH_PER_MWH
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    Interval,
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
from greensched_operator.providers.secret_keys import LoginRef, SecretKey

_LOGIN_URL = "https://api.watttime.org/login"  # not below /v3
_FORECAST_URL = "https://api.watttime.org/v3/forecast"
_UNITS = "lbs_co2_per_mwh"
_GRAMS_PER_POUND = 453.59237
_SHORTEST_S, _LONGEST_S = 60.0, 3_600.0  # limits of a slot; today's are five minutes


class WattTime(msgspec.Struct, frozen=True, rename="camel"):
    """Marginal, direct, in slots of five minutes, up to 72 hours ahead."""

    name: ClassVar[str] = "wattTime"
    serves: ClassVar[tuple[SignalKind, ...]] = ("carbon",)
    least_interval_s: ClassVar[float] = 300.0

    region: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            description="Region (balancing authority) as WattTime spells it, such as CAISO_NORTH.",
        ),
    ]
    secret_ref: LoginRef
    horizon_hours: Annotated[int, Meta(ge=0, le=72)] = 24

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return the keys of user and password."""
        return self.secret_ref.secret_keys()

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Log in and ask for the forecast, which begins now."""
        user, password = secrets
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        login = yield Request(_LOGIN_URL, headers=(("Authorization", f"Basic {basic}"),))
        token = read_token(accepted(login))
        parameters = (
            ("region", self.region),
            ("signal_type", "co2_moer"),
            ("horizon_hours", str(self.horizon_hours)),
        )
        reply = yield Request(_FORECAST_URL, parameters, (("Authorization", f"Bearer {token}"),))
        refusals = {400: FaultReason.UNKNOWN_ZONE, 404: FaultReason.NO_DATA}
        return read(accepted(reply, refusals=refusals), self.region)


def read_token(body: bytes) -> str:
    """Return the token of a login, which is valid for half an hour. Raises ProviderFault."""
    token = decoded_text(mapping(json_of(body), "the login").get("token"))
    if not token or not token.isascii() or not token.isprintable():
        raise garbage("the answer to the login has no token")
    return token


def read(body: bytes, region: str) -> Answer:
    """Return a forecast in g/kWh. Raises ProviderFault, also for a percentile (signal-index)."""
    page = mapping(json_of(body), "the answer")
    meta = mapping(page.get("meta"), "meta")
    units = decoded_text(meta.get("units"))
    if units != _UNITS:
        raise garbage(f"meta.units is {units[:40]!r}, not {_UNITS}")
    if decoded_text(meta.get("region")) != region:
        raise garbage(f"asked for region {region}, the answer is for another")
    step_s = decoded_number(meta.get("data_point_period_seconds"), "data_point_period_seconds")
    if step_s is None or not _SHORTEST_S <= step_s <= _LONGEST_S:
        raise garbage("data_point_period_seconds is missing or implausible")
    intervals = []
    for raw in rows(page.get("data"), "data"):
        point = mapping(raw, "a point")
        start = moment(point.get("point_time"), "point_time")
        pounds = decoded_number(point.get("value"), "value")
        grams = None if pounds is None else round(pounds * _GRAMS_PER_POUND / KWH_PER_MWH, 3)
        intervals.append(Interval(start, start + step_s, grams))
    generated_at = moment_if_any(meta.get("generated_at"))
    return carbon_answer(
        intervals, "watttime/marginal/direct", observed_at=generated_at, is_estimated=True
    )
