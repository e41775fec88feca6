"""ENTSO-E, Nord Pool, CAISO OASIS and the tariff: prices, days of 23 hours, and refusals."""

import pytest

from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.providers import caiso_oasis, entsoe
from greensched_operator.providers.answers import (
    Answer,
    FaultReason,
    ProviderFault,
    Reply,
)
from greensched_operator.providers.caiso_oasis import CaisoOasis
from greensched_operator.providers.entsoe import Entsoe
from greensched_operator.providers.nord_pool import NordPool
from greensched_operator.providers.secret_keys import TokenRef
from greensched_operator.providers.tariff import Tariff, TariffPeriod, compute
from tests.operator.providers.fixture_types import Golden, Talk

NODE = "TH_NP15_GEN-APND"
HOUR = 3_600.0


def price(answer: Answer, when: str) -> float | None:
    slot = answer.at(parse_timestamp(when))
    return slot.value if slot else None


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param("2026-01-18T23:00:00Z", 69.6, id="first-position"),
        pytest.param("2026-01-18T23:59:59Z", 69.6, id="missing-position-repeats"),
        pytest.param("2026-01-19T00:00:00Z", 64.02, id="fifth-position"),
        pytest.param("2026-01-19T12:10:00Z", -3.5, id="negative"),
        pytest.param("2026-01-19T22:59:00Z", 71.0, id="repeats-to-the-end"),
        pytest.param("2026-01-19T23:00:00Z", None, id="over"),
    ],
)
def test_entsoe_missing_position_repeats_the_value_before(
    golden: Golden, when: str, expected: float | None
) -> None:
    answer = entsoe.read(Reply(200, golden("entsoe-prices.xml")))
    assert price(answer, when) == expected
    assert (answer.unit, answer.currency, answer.source) == ("EUR/MWh", "EUR", "entsoe/day-ahead")


def test_entsoe_is_asked_for_the_day_ahead_auction_alone(
    golden: Golden, talk: Talk, now: float
) -> None:
    zone = Entsoe("10YES-REE------0", TokenRef("entsoe"))
    _, (asked,) = talk(zone.ask(now, ("token",)), golden("entsoe-prices.xml"))
    parameters = dict(asked.parameters)
    assert parameters["contract_MarketAgreement.type"] == "A01"
    assert parameters["in_Domain"] == parameters["out_Domain"] == "10YES-REE------0"
    assert (parameters["periodStart"], parameters["periodEnd"]) == ("202601181200", "202601211200")
    assert "token" not in repr(asked)


def test_entsoe_prices_of_another_auction_are_never_taken(golden: Golden) -> None:
    both = entsoe.read(Reply(200, golden("entsoe-two-auctions.xml")))
    assert {slot.value for slot in both.slots} == {60.0}
    with pytest.raises(ProviderFault) as fault:
        entsoe.read(Reply(200, golden("entsoe-only-exaa.xml")))
    assert fault.value.reason is FaultReason.NO_DATA


def test_entsoe_day_of_23_hours_has_23_prices(golden: Golden) -> None:
    answer = entsoe.read(Reply(200, golden("entsoe-spring-day.xml")))
    assert [slot.value for slot in answer.slots] == [10.0 + hour for hour in range(23)]
    assert answer.end == parse_timestamp("2026-03-29T22:00:00Z")


def test_entsoe_missing_position_of_a_fixed_curve_is_a_gap(golden: Golden) -> None:
    body = golden("entsoe-spring-day.xml").replace(
        b"<position>5</position>", b"<position>50</position>"
    )
    answer = entsoe.read(Reply(200, body))
    assert price(answer, "2026-03-29T03:30:00Z") is None
    assert answer.gaps() == 1


def test_entsoe_quarter_hours_count_before_the_hours_of_the_same_day(golden: Golden) -> None:
    quarters, hours = golden("entsoe-prices.xml"), golden("entsoe-two-auctions.xml")
    series = (
        hours[hours.rindex(b"<TimeSeries>") : hours.rindex(b"</TimeSeries>")] + b"</TimeSeries>"
    )
    body = quarters.replace(b"</Publication", series + b"</Publication")
    assert entsoe.read(Reply(200, body)) == entsoe.read(Reply(200, quarters))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param((200, "entsoe-no-data.xml"), FaultReason.NO_DATA, id="no-data-with-200"),
        pytest.param((400, "entsoe-no-data.xml"), FaultReason.NO_DATA, id="no-data-with-400"),
        pytest.param((400, "entsoe-refused.xml"), FaultReason.UNKNOWN_ZONE, id="bad-domain"),
        pytest.param((401, "caiso-too-often.html"), FaultReason.UNAUTHORISED, id="bad-token"),
        pytest.param((200, "uk-error.json"), FaultReason.GARBAGE, id="no-xml"),
        pytest.param((200, "caiso-no-data.xml"), FaultReason.GARBAGE, id="other-xml"),
    ],
)
def test_entsoe_refusals_are_distinguished(
    golden: Golden, reply: tuple[int, str], reason: FaultReason
) -> None:
    with pytest.raises(ProviderFault) as fault:
        entsoe.read(Reply(reply[0], golden(reply[1])))
    assert fault.value.reason is reason


def test_entsoe_definitions_of_entities_are_not_read() -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb">]><a>&b;</a>'
    with pytest.raises(ProviderFault, match="DOCTYPE"):
        entsoe.read(Reply(200, bomb))


def test_nord_pool_gives_today_and_tomorrow(golden: Golden, talk: Talk, now: float) -> None:
    pages = golden("nord-pool-today.json"), golden("nord-pool-tomorrow.json")
    answer, asked = talk(NordPool("SE3").ask(now, ()), *pages)
    assert [dict(request.parameters)["date"] for request in asked] == ["2026-01-19", "2026-01-20"]
    assert price(answer, "2026-01-19T12:10:00Z") == pytest.approx(21.54 - 26)
    assert price(answer, "2026-01-19T23:30:00Z") == 40.0
    assert answer.is_estimated, "tomorrow is preliminary"
    assert answer.observed_at == pytest.approx(parse_timestamp("2026-01-19T11:57:03.88324Z"))


@pytest.mark.parametrize(
    "tomorrow",
    [
        pytest.param(Reply(429, b""), id="rate-limited"),
        pytest.param(ProviderFault(FaultReason.UNREACHABLE, "gone"), id="unreachable"),
        pytest.param(Reply(200, b"<html>"), id="garbage"),
    ],
)
def test_nord_pool_takes_no_tomorrow_away_that_was_known(
    golden: Golden, talk: Talk, now: float, tomorrow: Reply | ProviderFault
) -> None:
    with pytest.raises(ProviderFault):
        talk(NordPool("SE3").ask(now, ()), golden("nord-pool-today.json"), tomorrow)


def test_nord_pool_before_tomorrow_is_published_gives_today(
    golden: Golden, talk: Talk, now: float
) -> None:
    not_yet = Reply(204, b"")
    answer, _ = talk(NordPool("SE3").ask(now, ()), golden("nord-pool-today.json"), not_yet)
    assert answer.end == parse_timestamp("2026-01-19T23:00:00Z")
    assert not answer.is_estimated


@pytest.mark.parametrize(
    ("area", "reply", "reason"),
    [
        pytest.param("FI", "nord-pool-today.json", FaultReason.UNKNOWN_ZONE, id="area-not-in-it"),
        pytest.param("SE3", Reply(204, b""), FaultReason.NO_DATA, id="nothing-today"),
        pytest.param(
            "SE3", Reply(400, b'{"title":"x"}'), FaultReason.UNKNOWN_ZONE, id="bad-request"
        ),
        pytest.param("SE3", Reply(401, b""), FaultReason.UNAUTHORISED, id="beyond-two-months"),
    ],
)
def test_nord_pool_says_why_there_is_nothing(
    golden: Golden, talk: Talk, now: float, area: str, reply: str | Reply, reason: FaultReason
) -> None:
    first = golden(reply) if isinstance(reply, str) else reply
    replies = [first, Reply(204, b"")] if isinstance(reply, str) else [first]
    with pytest.raises(ProviderFault) as fault:
        talk(NordPool(area).ask(now, ()), *replies)
    assert fault.value.reason is reason


def test_caiso_prices_come_unsorted_with_their_parts(
    golden: Golden, talk: Talk, now: float
) -> None:
    answer, (asked,) = talk(CaisoOasis(NODE).ask(now, ()), golden("caiso-prices.zip"))
    assert [slot.value for slot in answer.slots] == pytest.approx(
        [55.51 - 10 * hour for hour in range(8)]
    )
    assert answer.slots[0].start == parse_timestamp("2026-01-19T08:00:00Z")
    assert (answer.currency, answer.source) == ("USD", "caiso-oasis/day-ahead")
    parameters = dict(asked.parameters)
    assert parameters["startdatetime"] == "20260119T08:00-0000", "midnight in California"
    assert parameters["enddatetime"] == "20260121T08:00-0000"


def test_caiso_day_starts_an_hour_earlier_in_summer(talk: Talk) -> None:
    asked = next(CaisoOasis(NODE).ask(parse_timestamp("2026-07-14T20:00:00Z"), ()))
    assert dict(asked.parameters)["startdatetime"] == "20260714T07:00-0000"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("caiso-no-data.zip", FaultReason.NO_DATA, id="no-data-with-200"),
        pytest.param("caiso-too-often.html", FaultReason.RATE_LIMITED, id="too-often-with-200"),
        pytest.param("caiso-prices.csv", FaultReason.GARBAGE, id="no-zip"),
    ],
)
def test_caiso_refusals_come_with_status_200(
    golden: Golden, name: str, reason: FaultReason
) -> None:
    with pytest.raises(ProviderFault) as fault:
        caiso_oasis.read(golden(name), NODE)
    assert fault.value.reason is reason


DAY_AND_NIGHT = Tariff(
    "Europe/Berlin",
    300.0,
    (TariffPeriod("22:00", "06:00", 200.0), TariffPeriod("10:00", "12:00", -5.0, ("Sun",))),
    "EUR",
)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param("2026-01-19T04:59:00Z", 200.0, id="night-before-six"),
        pytest.param("2026-01-19T05:00:00Z", 300.0, id="day-from-six"),
        pytest.param("2026-01-19T21:00:00Z", 200.0, id="night-from-ten"),
        pytest.param("2026-01-18T09:30:00Z", -5.0, id="negative-on-a-sunday"),
        pytest.param("2026-01-19T09:30:00Z", 300.0, id="not-on-a-monday"),
        pytest.param("2026-03-29T03:59:00Z", 200.0, id="spring-night-is-an-hour-shorter"),
        pytest.param("2026-03-29T04:00:00Z", 300.0, id="spring-day-starts-at-six-summer-time"),
        pytest.param("2026-10-25T04:59:00Z", 200.0, id="autumn-night-is-an-hour-longer"),
    ],
)
def test_a_tariff_follows_the_local_clock(when: str, expected: float) -> None:
    now = parse_timestamp(when)
    assert price(compute(DAY_AND_NIGHT, now), when) == expected
    assert price(compute(DAY_AND_NIGHT, now - 20 * HOUR), when) == expected


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param("2026-01-23T23:00:00Z", 100.0, id="friday-night"),
        pytest.param("2026-01-24T02:00:00Z", 100.0, id="saturday-morning-belongs-to-it"),
        pytest.param("2026-01-23T02:00:00Z", 300.0, id="friday-morning-does-not"),
        pytest.param("2026-01-24T23:00:00Z", 300.0, id="nor-does-saturday-night"),
    ],
)
def test_a_period_over_midnight_belongs_to_the_day_it_starts_on(when: str, expected: float) -> None:
    friday = Tariff("UTC", 300.0, (TariffPeriod("22:00", "06:00", 100.0, ("Fri",)),))
    assert price(compute(friday, parse_timestamp(when)), when) == expected


def test_a_tariff_of_one_price_is_one_slot(now: float) -> None:
    answer = compute(Tariff("UTC", 250.0), now)
    assert [slot.value for slot in answer.slots] == [250.0]
    assert answer.end - answer.slots[0].start == 48 * HOUR


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../../etc/passwd", "Europe", ""])
def test_a_tariff_without_a_time_zone_says_so(now: float, zone: str) -> None:
    with pytest.raises(ProviderFault, match="time zone") as fault:
        compute(Tariff(zone, 1.0), now)
    assert fault.value.reason is FaultReason.UNKNOWN_ZONE
