"""Electricity Maps, WattTime and UK Carbon Intensity, as each documents its wire."""

import base64
import json
from typing import Any

import pytest

from greensched_operator.providers import uk_carbon_intensity, watttime
from greensched_operator.providers.answers import (
    FaultReason,
    ProviderFault,
    Reply,
)
from greensched_operator.providers.electricity_maps import ElectricityMaps
from greensched_operator.providers.secret_keys import LoginRef, SecretKey, TokenRef
from greensched_operator.providers.uk_carbon_intensity import UkCarbonIntensity
from greensched_operator.providers.watttime import WattTime
from tests.operator.providers.fixture_types import Golden, Talk

MAPS = ElectricityMaps("DE", TokenRef("maps"))
WATTTIME = WattTime("CAISO_NORTH", LoginRef("watttime"))
NOON = 1_768_824_000.0  # 2026-01-19T12:00:00Z
HALF_HOUR, HOUR = 1_800.0, 3_600.0
AT = ("when", "grams")


def test_electricity_maps_gives_the_hour_now_and_the_forecast(
    golden: Golden, talk: Talk, now: float
) -> None:
    replies = golden("electricity-maps-latest.json"), golden("electricity-maps-forecast.json")
    answer, asked = talk(MAPS.ask(now, ("key",)), *replies)
    assert answer.source == "electricity-maps/average/life-cycle"
    assert (answer.slots[0].start, answer.end) == (NOON, NOON + 25 * HOUR)
    assert [slot.value for slot in answer.slots[:3]] == [302.0, 295.0, 300.0]
    assert answer.gaps() == 1, "a null is no data"
    assert answer.is_estimated
    assert answer.observed_at == pytest.approx(NOON + 311.214)
    for request in asked:
        assert request.headers == (("auth-token", "key"),)
        assert ("disableCallerLookup", "true") in request.parameters
    assert ("horizonHours", "24") in asked[1].parameters


def test_electricity_maps_without_a_forecast_in_the_plan_gives_the_hour_now(
    golden: Golden, talk: Talk, now: float
) -> None:
    refused = Reply(401, golden("electricity-maps-outside-plan.json"))
    answer, _ = talk(MAPS.ask(now, ("key",)), golden("electricity-maps-latest.json"), refused)
    assert [slot.value for slot in answer.slots] == [302.0]
    assert answer.end == NOON + HOUR


@pytest.mark.parametrize("refused", [
    pytest.param(Reply(429, b""), id="rate-limited"),
    pytest.param(ProviderFault(FaultReason.SERVER_ERROR, "503"), id="server-error"),
    pytest.param(ProviderFault(FaultReason.UNREACHABLE, "slow"), id="unreachable"),
])  # fmt: skip
def test_electricity_maps_takes_no_forecast_away_that_fails_for_the_moment(
    golden: Golden, talk: Talk, now: float, refused: Reply | ProviderFault
) -> None:
    with pytest.raises(ProviderFault):
        talk(MAPS.ask(now, ("key",)), golden("electricity-maps-latest.json"), refused)


def test_electricity_maps_without_recent_data_still_gives_the_forecast(
    golden: Golden, talk: Talk, now: float
) -> None:
    nothing = Reply(404, golden("electricity-maps-no-recent-data.json"))
    answer, _ = talk(MAPS.ask(now, ("k",)), nothing, golden("electricity-maps-forecast.json"))
    assert answer.slots[0].value == 290.0
    assert answer.is_estimated


def test_electricity_maps_direct_emissions_are_asked_for_and_said(
    golden: Golden, talk: Talk, now: float
) -> None:
    direct = ElectricityMaps("DE", TokenRef("maps"), "direct")
    nothing = Reply(404, golden("electricity-maps-no-recent-data.json"))
    forecast = golden("electricity-maps-forecast.json")
    answer, asked = talk(direct.ask(now, ("k",)), nothing, forecast)
    assert answer.source == "electricity-maps/average/direct"
    assert ("emissionFactorType", "direct") in asked[0].parameters


@pytest.mark.parametrize(
    ("status", "name", "reason", "words"),
    [
        pytest.param(401, "bad-token", FaultReason.UNAUTHORISED, "Sign up", id="bad-token"),
        pytest.param(401, "outside-plan", FaultReason.UNAUTHORISED, "zoneKey=FR", id="plan"),
        pytest.param(404, "no-recent-data", FaultReason.NO_DATA, "No recent data", id="no-data"),
    ],
)
def test_electricity_maps_says_why_it_refuses(
    golden: Golden, talk: Talk, now: float, status: int, name: str, reason: FaultReason, words: str
) -> None:
    refusal = Reply(status, golden(f"electricity-maps-{name}.json"))
    with pytest.raises(ProviderFault, match=words) as fault:
        talk(MAPS.ask(now, ("key",)), refusal, refusal)
    assert fault.value.reason is reason


def test_electricity_maps_is_asked_only_once_about_a_zone_that_it_does_not_know(
    golden: Golden, talk: Talk, now: float
) -> None:
    refusal = Reply(400, golden("electricity-maps-unknown-zone.json"))
    with pytest.raises(ProviderFault, match="does not exist") as fault:
        talk(MAPS.ask(now, ("key",)), refusal)
    assert fault.value.reason is FaultReason.UNKNOWN_ZONE


def test_electricity_maps_made_up_data_of_a_sandbox_is_no_data(
    golden: Golden, talk: Talk, now: float
) -> None:
    forecast = golden("electricity-maps-forecast.json")
    with pytest.raises(ProviderFault, match="sandbox") as fault:
        talk(MAPS.ask(now, ("key",)), golden("electricity-maps-sandbox.json"), forecast)
    assert fault.value.reason is FaultReason.NO_DATA


def test_electricity_maps_answer_for_another_zone_is_garbage(
    golden: Golden, talk: Talk, now: float
) -> None:
    other = ElectricityMaps("FR", TokenRef("maps"))
    latest, forecast = golden("electricity-maps-latest.json"), Reply(404, b"{}")
    with pytest.raises(ProviderFault, match="asked for zone FR") as fault:
        talk(other.ask(now, ("key",)), latest, forecast)
    assert fault.value.reason is FaultReason.GARBAGE


def test_watttime_logs_in_and_turns_pounds_per_mwh_into_grams_per_kwh(
    golden: Golden, talk: Talk, now: float
) -> None:
    replies = golden("watttime-login.json"), golden("watttime-forecast.json")
    answer, (login, forecast) = talk(WATTTIME.ask(now, ("me", "pass")), *replies)
    assert login.url == "https://api.watttime.org/login"
    basic = base64.b64encode(b"me:pass").decode()
    assert login.headers == (("Authorization", f"Basic {basic}"),)
    assert forecast.headers == (("Authorization", "Bearer eyJhbGciOiJSUzI1NiJ9.example.signature"),)
    assert answer.source == "watttime/marginal/direct"
    assert answer.slots[0].value == pytest.approx(394.716, abs=1e-3)
    assert answer.slots[0].start == now
    assert answer.slots[2].value == 0.0, "one zero among others is a grid without emissions"
    assert answer.end == now + 12 * 300
    assert WATTTIME.secret_keys() == (
        SecretKey("watttime", "username"),
        SecretKey("watttime", "password"),
    )


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        pytest.param([Reply(401, b"Unauthorized")], FaultReason.UNAUTHORISED, id="login-refused"),
        pytest.param([Reply(403, b"Forbidden")], FaultReason.UNAUTHORISED, id="login-forbidden"),
        pytest.param([b'{"token": ""}'], FaultReason.GARBAGE, id="no-token"),
        pytest.param(
            [b'{"token": "t"}', Reply(401, b"Jwt is missing")], FaultReason.UNAUTHORISED,
                id="no-jwt"
        ),
        pytest.param(
            [b'{"token": "t"}', Reply(403, b'{"error":"x","message":"plan"}')],
            FaultReason.UNAUTHORISED, id="outside-the-plan",
        ),
        pytest.param(
            [b'{"token": "t"}', Reply(400, b'{"error":"x","msg":"no region"}')],
            FaultReason.UNKNOWN_ZONE, id="unknown-region",
        ),
    ],
)  # fmt: skip
def test_watttime_says_why_it_refuses(
    talk: Talk, now: float, replies: list[bytes | Reply], reason: FaultReason
) -> None:
    with pytest.raises(ProviderFault) as fault:
        talk(WATTTIME.ask(now, ("me", "pass")), *replies)
    assert fault.value.reason is reason


def test_watttime_percentile_is_not_taken_for_grams(golden: Golden) -> None:
    with pytest.raises(ProviderFault, match=r"meta\.units is 'percentile'") as fault:
        watttime.read(golden("watttime-signal-index.json"), "CAISO_NORTH")
    assert fault.value.reason is FaultReason.GARBAGE


def test_watttime_zeros_alone_are_no_data(golden: Golden) -> None:
    page = json.loads(golden("watttime-forecast.json"))
    for point in page["data"]:
        point["value"] = 0.0
    with pytest.raises(ProviderFault, match="every carbon value is 0") as fault:
        watttime.read(json.dumps(page).encode(), "CAISO_NORTH")
    assert fault.value.reason is FaultReason.NO_DATA


@pytest.mark.parametrize(
    AT,
    [
        pytest.param(NOON - HALF_HOUR, 263.0, id="measured-beats-forecast"),
        pytest.param(NOON, 266.0, id="forecast-where-not-measured"),
        pytest.param(NOON + HALF_HOUR, 263.0, id="next-half-hour"),
    ],
)
def test_uk_measured_values_count_before_forecasts(
    golden: Golden, now: float, when: float, grams: float
) -> None:
    answer = uk_carbon_intensity.read(golden("uk-national.json"), now)
    slot = answer.at(when)
    assert slot is not None
    assert slot.value == grams
    assert answer.is_estimated, "the half hour now is a forecast"
    assert answer.source == "uk-carbon-intensity/average/direct"


@pytest.mark.parametrize("name", ["uk-regional.json", "uk-regional-list.json"])
def test_uk_region_comes_as_an_object_or_a_list(
    golden: Golden, talk: Talk, now: float, name: str
) -> None:
    answer, (asked,) = talk(UkCarbonIntensity(3).ask(now, ()), golden(name))
    path = "/regional/intensity/2026-01-19T12:00Z/fw48h/regionid/3"
    assert asked.url == f"https://api.carbonintensity.org.uk{path}"
    assert [slot.value for slot in answer.slots] == [66.0, 67.0, 68.0, 69.0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"{}", FaultReason.NO_DATA, id="a-bare-date"),
        pytest.param(b'{"data":[]}', FaultReason.NO_DATA, id="no-slots"),
        pytest.param(
            b'{"error":{"code":"500 Internal Server Error"}}',
            FaultReason.SERVER_ERROR,
            id="error-500",
        ),
    ],
)
def test_uk_emptiness_is_distinguished(now: float, body: bytes, reason: FaultReason) -> None:
    with pytest.raises(ProviderFault) as fault:
        uk_carbon_intensity.read(body, now)
    assert fault.value.reason is reason


def test_uk_error_with_status_200_is_an_error(golden: Golden, now: float) -> None:
    with pytest.raises(ProviderFault, match="400 Bad Request") as fault:
        uk_carbon_intensity.read(golden("uk-error.json"), now)
    assert fault.value.reason is FaultReason.UNKNOWN_ZONE


def test_a_missing_half_hour_is_a_gap_and_not_the_value_before(golden: Golden, now: float) -> None:
    page: dict[str, Any] = json.loads(golden("uk-national.json"))
    del page["data"][3]
    answer = uk_carbon_intensity.read(json.dumps(page).encode(), now)
    assert answer.gaps() == 1
    assert answer.at(NOON + 2 * HALF_HOUR) is None
