"""The controller on the real API server, its providers replayed: values, fallbacks, restarts,
edits.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from greensched_core.labels import PROVIDER_SECRET_TYPE
from greensched_core.signals.chain import GridSignals
from greensched_core.signals.static import load_static_zones
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_operator.signals.spec import decode_grid_signal

SignalOperator = Any  # the fixture's
MAPS, UK_HOST = "api.electricitymaps.com", "api.carbonintensity.org.uk"
NORD_POOL = "dataportal-api.nordpoolgroup.com"
PATH = f"{GRID_SIGNALS_PATH}/zz"
TOKEN = "s3cret-t0ken"
LIVE = [
    {"electricityMaps": {"zone": "DE", "secretRef": {"name": "maps"}}},
    {"ukCarbonIntensity": {}},
    {"static": {}},
]
PRICE = [{"nordPool": {"area": "SE3"}}]


def condition(status: dict[str, Any], name: str) -> tuple[str, str, str]:
    (found,) = [each for each in status["conditions"] if each["type"] == name]
    return found["status"], found["reason"], found["message"]


async def test_carbon_and_price_of_two_providers_stand_in_one_line(
    signals: SignalOperator, providers: Any, kubectl: Callable[..., Any]
) -> None:
    await signals.create(carbon=LIVE, price=PRICE)
    status = await signals.turn()
    assert status["current"]["carbonGramsPerKwh"] == 302
    assert status["current"]["pricePerMwh"] == pytest.approx(-4.46)
    assert status["carbon"]["source"] == "electricity-maps/average/life-cycle"
    assert status["price"]["source"] == "nord-pool/day-ahead"
    assert condition(status, "CarbonFresh")[:2] == ("True", "Answered")
    assert condition(status, "CarbonFallback")[:2] == ("False", "FirstProviderServes")
    assert {each.headers.get("auth-token") for each in providers.asked[:2]} == {TOKEN}
    row = kubectl("get", "gridsignals", "zz", "--no-headers").stdout
    both = "electricity-maps/average/life-cycle + nord-pool/day-ahead"
    assert row.split()[:3] == ["zz", "ZZ", "302"]
    assert both in row
    wide = kubectl("get", "gridsignals", "zz", "-o", "wide").stdout
    assert "CARBON-SOURCE" in wide
    assert wide.count("FirstProviderServes") == 2, "a column each for carbon and price"


@pytest.mark.parametrize(
    ("how", "reason", "words"),
    [
        pytest.param("fails", "ServerError", "HTTP 500", id="500"),
        pytest.param("garbage", "Garbage", "is not JSON", id="garbage"),
        pytest.param("last-month", "TooOld", "h ago", id="old-data"),
        pytest.param("limits", "RateLimited", "HTTP 429", id="rate-limited"),
        pytest.param("hangs", "Unreachable", "no complete answer within", id="hangs"),
        pytest.param("refuses", "Unauthorised", "HTTP 401", id="bad-key"),
        pytest.param("nothing", "NoData", "HTTP 404", id="no-data"),
    ],
)
async def test_a_fallback_is_reported_and_counted_and_ends(
    signals: SignalOperator, providers: Any, how: str, reason: str, words: str
) -> None:
    providers.behaviour[MAPS] = how
    await signals.create(carbon=LIVE)
    status = await signals.turn()
    assert status["current"]["carbonGramsPerKwh"] == 266
    assert status["carbon"]["provider"] == "ukCarbonIntensity"
    holds, why, message = condition(status, "CarbonFallback")
    assert (holds, why) == ("True", reason)
    assert message.startswith("electricityMaps: ")
    assert words in message
    assert message.endswith("uk-carbon-intensity/average/direct is used instead")
    assert TOKEN not in json.dumps(status)
    kinds = {"kind": "carbon", "reason": status["carbon"]["failures"][0]["reason"]}
    assert signals.metric("fallbacks_total", **kinds) == 1
    assert signals.metric("fetches_total", provider="ukCarbonIntensity", outcome="ok") == 1

    providers.behaviour.clear()
    status = await signals.turn(later_s=1_250)
    assert status["carbon"]["provider"] == "electricityMaps"
    assert "failures" not in status["carbon"]
    assert condition(status, "CarbonFallback")[0] == "False"


async def test_a_rate_limit_is_waited_for(signals: SignalOperator, providers: Any) -> None:
    providers.behaviour[MAPS] = "limits"
    await signals.create(carbon=LIVE)
    await signals.turn()
    providers.hosts()
    await signals.turn(later_s=1_100)
    assert MAPS not in providers.hosts(), "Retry-After said 20 minutes"
    await signals.turn(later_s=200)
    assert MAPS in providers.hosts()


async def test_readers_age_each_signal_by_its_own_source(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create(carbon=LIVE[1:], price=PRICE)
    await signals.turn()
    providers.behaviour[NORD_POOL] = "fails"
    await signals.turn(later_s=7_000)
    readers = GridSignals(load_static_zones())
    now = signals.clock.now()
    readers.upsert("zz", await signals.api.get(PATH), now)
    found = readers.zone("ZZ", now)
    assert (found.carbon.step, found.carbon.value, found.carbon.age_s) == ("gridsignal", 254.0, 0)
    assert (found.price.step, found.price.age_s) == ("last-good", 7_000)
    assert found.price.source == "nord-pool/day-ahead"


async def test_a_restart_asks_nobody_and_writes_nothing(
    signals: SignalOperator, providers: Any
) -> None:
    providers.behaviour[MAPS] = "fails"
    await signals.create(carbon=LIVE, price=PRICE)
    await signals.turn()
    before = await signals.object()
    assert providers.hosts()
    signals.restart()
    await signals.turn(later_s=30)
    assert providers.hosts() == []
    assert await signals.object() == before
    assert signals.metric("age_seconds", zone="ZZ", kind="carbon") == pytest.approx(30)
    await signals.turn(later_s=900)
    assert set(providers.hosts()) == {MAPS, UK_HOST, NORD_POOL}


async def test_last_good_values_serve_when_everybody_fails(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create(carbon=LIVE)
    await signals.turn()
    providers.behaviour |= {MAPS: "fails", UK_HOST: "fails"}
    status = await signals.turn(later_s=7_200)
    assert status["carbon"]["source"] == "electricity-maps/average/life-cycle"
    assert status["current"]["carbonGramsPerKwh"] == 300, "what was forecast for this hour"
    assert condition(status, "CarbonFresh")[:2] == ("False", "LastGood")
    assert signals.metric("fallbacks_total", kind="carbon", reason="last-good") == 1
    status = await signals.turn(later_s=86_400)
    assert status["carbon"]["source"] == "static/average/life-cycle"


async def test_nothing_is_written_while_nothing_changes(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create(carbon=LIVE, price=PRICE)
    await signals.turn()
    version = (await signals.object())["metadata"]["resourceVersion"]
    await signals.turn(later_s=60)
    await signals.turn(later_s=60)
    assert (await signals.object())["metadata"]["resourceVersion"] == version


async def test_the_values_of_now_move_on_without_a_question(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create(carbon=[{"ukCarbonIntensity": {}}], pollInterval="2h")
    assert (await signals.turn())["current"]["carbonGramsPerKwh"] == 266
    providers.hosts()
    status = await signals.turn(later_s=1_800)
    assert status["current"]["carbonGramsPerKwh"] == 263
    assert status["current"]["startedAt"] == "2026-01-19T12:30:00Z"
    assert providers.hosts() == []


async def test_an_edit_is_followed_at_once(
    signals: SignalOperator, providers: Any, kubectl: Callable[..., Any]
) -> None:
    await signals.create(carbon=LIVE)
    await signals.turn()
    edit: dict[str, Any] = {"spec": {"carbon": [{"ukCarbonIntensity": {}}]}}
    await signals.api.patch(PATH, json.dumps(edit).encode())
    status = await signals.turn(later_s=1)
    assert status["carbon"]["provider"] == "ukCarbonIntensity"
    assert status["observedGeneration"] == 2


async def test_whoever_writes_a_status_after_its_providers_is_read_as_he_wrote_it(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create(carbon=LIVE, price=PRICE)
    await signals.turn()
    await signals.api.patch(PATH, json.dumps({"spec": {"carbon": None, "price": None}}).encode())
    now = signals.clock.now() + 7_000
    at, before = format_timestamp(now), (await signals.object())["status"]["conditions"]
    own = {
        "type": "Own",
        "status": "True",
        "reason": "Own",
        "message": "",
        "lastTransitionTime": at,
    }
    theirs = {
        "source": "by-hand", "observedAt": at, "forecast": [], "forecastEnd": None,
        "current": {"startedAt": at, "carbonGramsPerKwh": 290}, "conditions": [*before, own],
    }  # fmt: skip
    await signals.api.patch(f"{PATH}/status", json.dumps({"status": theirs}).encode())
    status = await signals.turn(later_s=7_000)
    assert status.keys() & {"carbon", "price"} == set()
    assert [each["type"] for each in status["conditions"]] == ["Own"]
    readers = GridSignals(load_static_zones())
    readers.upsert("zz", await signals.api.get(PATH), now)
    found = readers.zone("ZZ", now).carbon
    assert (found.value, found.source, found.step) == (290.0, "by-hand", "gridsignal")
    before = await signals.object()
    await signals.turn()
    assert await signals.object() == before


async def test_a_signal_that_names_no_provider_is_left_alone(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create()
    theirs = {"status": {"source": "by-hand", "observedAt": "2026-01-19T12:00:00Z"}}
    await signals.api.patch(f"{PATH}/status", json.dumps(theirs).encode())
    before = await signals.object()
    await signals.turn()
    assert await signals.object() == before
    assert providers.hosts() == []


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        pytest.param("absent", None, "does not exist", id="absent"),
        pytest.param("opaque", "Opaque", f"must be of type {PROVIDER_SECRET_TYPE}", id="opaque"),
        pytest.param("other", PROVIDER_SECRET_TYPE, "token is missing, empty", id="another-key"),
    ],
)
async def test_a_secret_that_cannot_be_used_is_reported_and_no_other_is_read(
    signals: SignalOperator, providers: Any, name: str, kind: str | None, words: str
) -> None:
    if kind is not None:
        key = "token" if kind == "Opaque" else "key"
        secret = {"metadata": {"name": name}, "type": kind, "stringData": {key: "hidden"}}
        path = f"/api/v1/namespaces/{signals.namespace}/secrets"
        await signals.api.create(path, json.dumps(secret).encode())
    maps = {"electricityMaps": {"zone": "DE", "secretRef": {"name": name}}}
    await signals.create(carbon=[maps, {"static": {}}])
    status = await signals.turn()
    assert words in condition(status, "CarbonFallback")[2]
    assert status["carbon"]["source"] == "static/average/life-cycle"
    assert providers.hosts() == []


async def test_no_key_stands_in_any_log_line(signals: SignalOperator, providers: Any) -> None:
    providers.behaviour[MAPS] = "refuses"
    await signals.create(carbon=LIVE[:1])
    with structlog.testing.capture_logs() as lines:
        status = await signals.turn()
    assert lines
    assert TOKEN not in repr(lines)
    message = condition(status, "CarbonFresh")[2]
    assert "bad key" in message
    assert TOKEN not in message


async def test_a_deleted_signal_is_forgotten(signals: SignalOperator, providers: Any) -> None:
    await signals.create(carbon=LIVE[1:])
    await signals.turn()
    assert signals.metric("age_seconds", zone="ZZ", kind="carbon") == 0
    signals.controller.remove(decode_grid_signal(await signals.api.get(PATH)))
    assert signals.metric("age_seconds", zone="ZZ", kind="carbon") is None
    assert await signals.controller.turn() == float("inf")
