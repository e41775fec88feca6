"""ENTSO-E transparency platform: day-ahead prices of a European bidding zone (SDAC).

Wire: https://transparencyplatform.zendesk.com, document type A44. Prices may not be republished
freely.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar
from xml.etree.ElementTree import Element

import msgspec

from greensched_core.quoting import quoted
from greensched_core.signals.steps import SignalKind
from greensched_core.units import SECONDS_PER_HOUR
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
from greensched_operator.providers.decoding import garbage, moment
from greensched_operator.providers.fields import checked
from greensched_operator.providers.secret_keys import SecretKey, TokenRef

_URL = "https://web-api.tp.entsoe.eu/api"
_BEFORE_S, _AHEAD_S = 24 * SECONDS_PER_HOUR, 48 * SECONDS_PER_HOUR
_NO_DATA_CODE = "999"
_DAY_AHEAD_AUCTION = "1"  # 2 is EXAA's, which DE-LU and AT also send
_REPEATS = "A03"  # a missing position repeats the previous value
_RESOLUTION = re.compile(r"PT(\d{1,4})M", re.ASCII)
_MOST_POSITIONS = 10_000


class Entsoe(msgspec.Struct, frozen=True, rename="camel"):
    """Day-ahead auction of a European bidding zone."""

    name: ClassVar[str] = "entsoe"
    serves: ClassVar[tuple[SignalKind, ...]] = ("price",)
    least_interval_s: ClassVar[float] = 900.0

    domain: Annotated[
        str,
        checked(
            "self.matches('^[0-9]{2}[A-Z][A-Z0-9-]{13}$')",
            "domain must be an EIC code of 16 characters, such as 10Y1001A1001A82H for DE-LU",
            description="EIC code of the bidding zone (10Y1001A1001A82H is DE-LU).",
            max_length=16,
        ),
    ]
    secret_ref: TokenRef

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return the key of the security token."""
        return (self.secret_ref.secret_key(),)

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Ask for yesterday to the day after tomorrow; the answer has whole local days."""
        hour = now // SECONDS_PER_HOUR * SECONDS_PER_HOUR
        parameters = (
            ("securityToken", secrets[0]),
            ("documentType", "A44"),
            ("in_Domain", self.domain),
            ("out_Domain", self.domain),
            ("contract_MarketAgreement.type", "A01"),  # else Spain mixes in intraday prices
            ("periodStart", _minute(hour - _BEFORE_S)),
            ("periodEnd", _minute(hour + _AHEAD_S)),
        )
        reply = yield Request(_URL, parameters)
        return read(reply)


def _minute(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y%m%d%H%M")


def read(reply: Reply) -> Answer:
    """Return the prices of the day-ahead auction. Raises ProviderFault.

    A refusal has the same document with status 200 and with 400.
    """
    if reply.status in (401, 403):
        raise ProviderFault(FaultReason.UNAUTHORISED, f"HTTP {reply.status}: the token is refused")
    document = _document(reply)
    if _local(document.tag) == "Acknowledgement_MarketDocument":
        raise _refusal(document)
    if reply.status >= 300 or _local(document.tag) != "Publication_MarketDocument":
        raise garbage(
            f"HTTP {reply.status}: {quoted(_local(document.tag))} is not a price document"
        )
    periods = [period for series in _named(document, "TimeSeries") for period in _periods(series)]
    currencies = {period.currency for period in periods}
    if len(currencies) > 1:
        raise garbage(f"prices in several currencies: {', '.join(sorted(currencies))[:40]}")
    kept = [p for p in periods if not any(o.step_s < p.step_s and o.covers(p) for o in periods)]
    finest_last = sorted(kept, key=lambda period: -period.step_s)
    intervals = [each for period in finest_last for each in period.intervals]
    return price_answer(intervals, "entsoe/day-ahead", currencies.pop() if currencies else "")


@dataclass(frozen=True, slots=True)
class _Period:
    start: float
    end: float
    step_s: float
    currency: str
    intervals: tuple[Interval, ...]

    def covers(self, other: "_Period") -> bool:
        return self.start <= other.start and other.end <= self.end


def _document(reply: Reply) -> Element:
    if b"<!DOCTYPE" in reply.body or b"<!ENTITY" in reply.body:
        raise garbage("the answer's XML has a DOCTYPE or ENTITY, which is refused")
    try:
        return ElementTree.fromstring(reply.body)
    except (ElementTree.ParseError, ValueError, LookupError) as fault:  # an odd encoding too
        raise garbage(f"HTTP {reply.status}: the answer is not XML") from fault


def _refusal(document: Element) -> ProviderFault:
    reason = next(_named(document, "Reason"), None)
    code, words = _text(reason, "code"), _text(reason, "text")
    if code == _NO_DATA_CODE and "No matching data" in words:
        return ProviderFault(FaultReason.NO_DATA, "no matching data found")
    return ProviderFault(FaultReason.UNKNOWN_ZONE, f"refused: {code[:10]}: {quoted(words)}")


def _periods(series: Element) -> Iterator[_Period]:
    sequence = _text(series, "classificationSequence_AttributeInstanceComponent.position")
    if sequence not in ("", _DAY_AHEAD_AUCTION):
        return
    if _text(series, "price_Measure_Unit.name").upper() not in ("", "MWH"):
        raise garbage("prices are not per MWh")
    currency = _text(series, "currency_Unit.name")
    repeats = _text(series, "curveType") == _REPEATS
    for period in _named(series, "Period"):
        yield _period(period, currency, repeats)


def _period(period: Element, currency: str, repeats: bool) -> _Period:
    span = next(_named(period, "timeInterval"), None)
    start, end = moment(_text(span, "start"), "start"), moment(_text(span, "end"), "end")
    found = _RESOLUTION.fullmatch(_text(period, "resolution"))
    step_s = int(found[1]) * 60.0 if found else 0.0
    if step_s <= 0 or not 0 < end - start <= _MOST_POSITIONS * step_s:
        raise garbage("a period's resolution or interval is implausible")
    prices = {}
    for point in _named(period, "Point"):
        place = _number(_text(point, "position"))
        prices[int(place)] = _number(_text(point, "price.amount"))
    intervals = []
    price: float | None = None
    for place in range(1, round((end - start) / step_s) + 1):
        price = prices.get(place, price if repeats else None)
        begin = start + (place - 1) * step_s
        intervals.append(Interval(begin, begin + step_s, price))
    return _Period(start, end, step_s, currency, tuple(intervals))


def _number(written: str) -> float:
    try:
        value = float(written)
    except ValueError:
        raise garbage(f"{quoted(written)} is not a number") from None
    if not abs(value) < 1e9:
        raise garbage(f"{quoted(written)} is implausible")
    return value


def _local(tag: str) -> str:
    """Return a tag without its namespace, whose version changes."""
    return tag.rpartition("}")[2]


def _named(parent: Element, name: str) -> Iterator[Element]:
    return (child for child in parent if _local(child.tag) == name)


def _text(parent: Element | None, name: str) -> str:
    child = None if parent is None else next(_named(parent, name), None)
    return "" if child is None or child.text is None else child.text.strip()
