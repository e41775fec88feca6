"""A time-of-use tariff: prices by the local clock, computed two days ahead."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta

from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    Interval,
    ProviderFault,
    price_answer,
)
from greensched_operator.providers.fields import Currency, checked
from greensched_operator.providers.secret_keys import SecretKey

_STEP_S = 900.0  # all clocks of the world change by multiples of 15 minutes
_STEPS = 192  # 48 h
Weekday = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_DAYS: tuple[Weekday, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class TariffPeriod(msgspec.Struct, frozen=True, rename="camel"):
    """A price between two times of the local clock; one that ends before it starts spans midnight.

    Periods with their prices; where they overlap, the first counts.
    """

    start: Annotated[
        str,
        checked(
            "self.matches('^([01][0-9]|2[0-3]):(00|15|30|45)$')",
            "start must be a time of day on a quarter of an hour, such as 06:00 (in quotes)",
            description="Local time, inclusive.",
            max_length=5,
        ),
    ]
    end: Annotated[
        str,
        checked(
            "self.matches('^(([01][0-9]|2[0-3]):(00|15|30|45)|24:00)$')",
            "end must be a time of day on a quarter of an hour, such as 22:00 (in quotes), or "
            "24:00",
            description="Local time, exclusive; on the next day if before start.",
            max_length=5,
        ),
    ]
    price_per_mwh: float
    days: Annotated[
        tuple[Weekday, ...],
        Meta(
            min_length=1,
            max_length=7,
            description="Days on which the period starts; every day by default.",
            extra_json_schema={"x-kubernetes-list-type": "set"},
        ),
    ] = _DAYS


_ONE_PERIOD = checked(
    "self.start != self.end",
    "a period's start and end must differ; a whole day is 00:00 to 24:00",
)


class Tariff(msgspec.Struct, frozen=True, rename="camel"):
    """Time of use, by the local clock."""

    name: ClassVar[str] = "tariff"
    serves: ClassVar[tuple[SignalKind, ...]] = ("price",)
    least_interval_s: ClassVar[float] = 60.0

    time_zone: Annotated[
        str,
        checked(
            "self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",
            "timeZone must be an IANA name, such as Europe/Berlin",
            description="IANA name, such as Europe/Berlin.",
            max_length=60,
        ),
    ]
    price_per_mwh: Annotated[float, Meta(description="Price at times that no period covers.")]
    periods: Annotated[
        tuple[Annotated[TariffPeriod, _ONE_PERIOD], ...],
        Meta(
            max_length=20,
            description="Periods with their prices; where they overlap, the first counts.",
            extra_json_schema={"x-kubernetes-list-type": "atomic"},
        ),
    ] = ()
    currency: Currency = ""

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return nothing: it needs no key."""
        return ()

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Compute the answer without any request."""
        return compute(self, now)
        yield  # makes this function a generator


def compute(tariff: Tariff, now: float) -> Answer:
    """Return the prices from the current quarter of an hour on. Raises ProviderFault.

    Days of 23 and 25 hours are right, since each quarter of an hour reads the local clock.
    """
    try:
        zone = ZoneInfo(tariff.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # "../x", a folder of zones
        raise ProviderFault(
            FaultReason.UNKNOWN_ZONE,
            f"{tariff.time_zone!r} is not a time zone; use one such as Europe/Berlin",
        ) from None
    first = now // _STEP_S * _STEP_S
    intervals: list[Interval] = []
    for step in range(_STEPS):
        start = first + step * _STEP_S
        price = _price(tariff, datetime.fromtimestamp(start, zone))
        if intervals and intervals[-1].value == price:
            intervals[-1] = Interval(intervals[-1].start, start + _STEP_S, price)
        else:
            intervals.append(Interval(start, start + _STEP_S, price))
    return price_answer(intervals, "tariff", tariff.currency)


def _price(tariff: Tariff, local: datetime) -> float:
    clock, day = f"{local:%H:%M}", local.weekday()
    for period in tariff.periods:
        if period.start < period.end:
            holds = period.start <= clock < period.end and _DAYS[day] in period.days
        else:
            holds = (clock >= period.start and _DAYS[day] in period.days) or (
                clock < period.end and _DAYS[day - 1] in period.days
            )
        if holds:
            return period.price_per_mwh
    return tariff.price_per_mwh
