"""Nord Pool's data portal: day-ahead prices of the Nordics and beyond; no key, unofficial.

Wire: as gjohansson-ST/pynordpool reads it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo

import msgspec

from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    Interval,
    ProviderFault,
    Reply,
    Request,
    price_answer,
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
from greensched_operator.providers.fields import checked
from greensched_operator.providers.secret_keys import SecretKey

_URL = "https://dataportal-api.nordpoolgroup.com/api/DayAheadPrices"
_MARKET_ZONE = "Europe/Oslo"  # CET: market days are its days
_NOT_PUBLISHED = 204  # before about 13:00 CET


class NordPool(msgspec.Struct, frozen=True, rename="camel"):
    """Day-ahead auction of a delivery area; the portal is unofficial."""

    name: ClassVar[str] = "nordPool"
    serves: ClassVar[tuple[SignalKind, ...]] = ("price",)
    least_interval_s: ClassVar[float] = 900.0

    area: Annotated[
        str,
        checked(
            "self.matches('^[A-Z0-9-]{2,10}$')",
            "area must be one delivery area in capital letters, such as SE3",
            description="Delivery area, such as SE3 or FI.",
            max_length=10,
        ),
    ]
    currency: Literal["EUR", "DKK", "NOK", "SEK", "PLN", "GBP"] = "EUR"

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return nothing: it needs no key."""
        return ()

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Ask for today and tomorrow; it is no fault if tomorrow is not published yet."""
        today = datetime.fromtimestamp(now, ZoneInfo(_MARKET_ZONE)).date()
        first = _page((yield self._request(today.isoformat())))
        if first is None:
            raise ProviderFault(FaultReason.NO_DATA, "today's prices are not published")
        # A failure here fails the whole answer: the last good one may already have tomorrow.
        tomorrow = _page((yield self._request((today + timedelta(days=1)).isoformat())))
        return read([first] if tomorrow is None else [first, tomorrow], self.area)

    def _request(self, date: str) -> Request:
        asked = (
            ("date", date),
            ("market", "DayAhead"),
            ("deliveryArea", self.area),
            ("currency", self.currency),
        )
        return Request(_URL, asked)


def _page(reply: Reply) -> bytes | None:
    if reply.status == _NOT_PUBLISHED:
        return None
    return accepted(reply, refusals={400: FaultReason.UNKNOWN_ZONE})


def read(pages: list[bytes], area: str) -> Answer:
    """Return the prices of one or two days. Raises ProviderFault."""
    intervals: list[Interval] = []
    currencies = set()
    observed_at, is_preliminary = None, False
    for body in pages:
        page = mapping(json_of(body), "the answer")
        intervals += _intervals(page, area)
        currencies.add(decoded_text(page.get("currency")))
        observed_at = moment_if_any(page.get("updatedAt")) or observed_at
        is_preliminary = is_preliminary or _is_preliminary(page, area)
    if len(currencies) != 1:
        raise garbage("prices of the days are in several currencies")
    return price_answer(
        intervals,
        "nord-pool/day-ahead",
        currencies.pop(),
        observed_at=observed_at,
        is_estimated=is_preliminary,
    )


def _intervals(page: Mapping[str, Any], area: str) -> list[Interval]:
    intervals = []
    for raw in rows(page.get("multiAreaEntries"), "multiAreaEntries"):
        entry = mapping(raw, "an entry")
        prices = mapping(entry.get("entryPerArea"), "entryPerArea")
        if area not in prices:
            raise ProviderFault(FaultReason.UNKNOWN_ZONE, f"no prices of area {area}")
        start = moment(entry.get("deliveryStart"), "deliveryStart")
        end = moment(entry.get("deliveryEnd"), "deliveryEnd")
        intervals.append(Interval(start, end, decoded_number(prices[area], "a price")))
    return intervals


def _is_preliminary(page: Mapping[str, Any], area: str) -> bool:
    states = page.get("areaStates")
    for raw in states if isinstance(states, list) else []:
        state = raw if isinstance(raw, Mapping) else {}
        areas = state.get("areas")
        if isinstance(areas, list) and area in areas:
            return state.get("state") == "Preliminary"
    return False
