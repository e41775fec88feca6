"""The way to the providers over a real socket: limits, retries, and no key in any message."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_operator.providers.answers import FaultReason, ProviderFault
from greensched_operator.providers.caiso_oasis import CaisoOasis
from greensched_operator.providers.electricity_maps import ElectricityMaps
from greensched_operator.providers.entsoe import Entsoe
from greensched_operator.providers.json_endpoint import JsonEndpoint
from greensched_operator.providers.nord_pool import NordPool
from greensched_operator.providers.secret_keys import LoginRef, TokenRef
from greensched_operator.providers.uk_carbon_intensity import UkCarbonIntensity
from greensched_operator.providers.watttime import WattTime
from greensched_operator.signals.web import Web, WebLimits

UK = UkCarbonIntensity()
UK_HOST = "api.carbonintensity.org.uk"
LIMITS = WebLimits(timeout_s=10.0, body_bytes=65_536, attempts=3)


class Naps:
    """Waits for nothing and remembers for how long it should have."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def web(providers: Any, naps: Naps, now: float) -> AsyncIterator[Web]:
    async with providers.http() as http:
        yield Web(http, ManualClock(now), LIMITS, sleep=naps.sleep)


@pytest.mark.parametrize(
    ("provider", "secrets", "unit"),
    [
        pytest.param(ElectricityMaps("DE", TokenRef("s")), ("k",), "g/kWh", id="maps"),
        pytest.param(WattTime("CAISO_NORTH", LoginRef("s")), ("u", "p"), "g/kWh", id="watttime"),
        pytest.param(UK, (), "g/kWh", id="uk"),
        pytest.param(Entsoe("10Y1001A1001A82H", TokenRef("s")), ("k",), "EUR/MWh", id="entsoe"),
        pytest.param(NordPool("SE3"), (), "EUR/MWh", id="nord-pool"),
        pytest.param(CaisoOasis("TH_NP15_GEN-APND"), (), "USD/MWh", id="caiso"),
    ],
)
async def test_every_provider_answers_over_the_wire(
    web: Web, now: float, provider: Any, secrets: tuple[str, ...], unit: str
) -> None:
    answer = await web.converse(provider.name, provider.ask(now, secrets))
    assert answer.unit == unit
    assert answer.at(now) is not None


async def test_an_address_keeps_its_own_parameters(web: Web, providers: Any) -> None:
    endpoint = JsonEndpoint(
        "https://api.energy-charts.info/price?bzn=DE-LU", "unix_seconds", "price"
    )
    await web.converse("jsonEndpoint", endpoint.ask_for("price", ()))
    assert providers.asked[0].parameters == {"bzn": "DE-LU"}


@pytest.mark.parametrize(
    ("how", "reason", "attempts"),
    [
        pytest.param("fails", FaultReason.SERVER_ERROR, 3, id="500-is-tried-again"),
        pytest.param("limits", FaultReason.RATE_LIMITED, 1, id="429-is-not"),
        pytest.param("garbage", FaultReason.GARBAGE, 1, id="garbage-is-not"),
        pytest.param("redirects", FaultReason.GARBAGE, 1, id="redirect-is-not-followed"),
        pytest.param("huge", FaultReason.GARBAGE, 1, id="too-large"),
        pytest.param("bent", FaultReason.GARBAGE, 1, id="not-the-encoding-it-says"),
        pytest.param("refuses", FaultReason.UNAUTHORISED, 1, id="401"),
    ],
)
async def test_each_misbehaviour_is_a_fault_of_its_kind(
    web: Web, providers: Any, naps: Naps, now: float, how: str, reason: FaultReason, attempts: int
) -> None:
    providers.behaviour[UK_HOST] = how
    with pytest.raises(ProviderFault) as fault:
        await web.converse(UK.name, UK.ask(now, ()))
    assert fault.value.reason is reason
    assert providers.hosts() == [UK_HOST] * attempts
    assert len(naps.seconds) == attempts - 1
    assert all(0 <= seconds <= LIMITS.longest_pause_s for seconds in naps.seconds)


async def test_silence_is_tried_again(providers: Any, naps: Naps, now: float) -> None:
    providers.behaviour[UK_HOST] = "hangs"
    async with providers.http() as http:
        web = Web(http, ManualClock(now), replace(LIMITS, timeout_s=2.0), sleep=naps.sleep)
        with pytest.raises(ProviderFault) as fault:
            await web.converse(UK.name, UK.ask(now, ()))
    assert fault.value.reason is FaultReason.UNREACHABLE
    assert providers.hosts() == [UK_HOST] * 3
    assert len(naps.seconds) == 2


async def test_a_body_beyond_the_limit_is_not_read_on(web: Web, providers: Any, now: float) -> None:
    providers.behaviour[UK_HOST] = "huge"
    with pytest.raises(ProviderFault, match="more than 65536 bytes"):
        await web.converse(UK.name, UK.ask(now, ()))


@pytest.mark.parametrize(
    ("how", "seconds"), [("limits", 1200.0), ("limits-until", 1200.0), ("fails", None)]
)
async def test_what_retry_after_asks_for_is_reported(
    web: Web, providers: Any, now: float, how: str, seconds: float | None
) -> None:
    providers.behaviour[UK_HOST] = how
    with pytest.raises(ProviderFault) as fault:
        await web.converse(UK.name, UK.ask(now, ()))
    assert fault.value.retry_after_s == seconds


async def test_a_server_that_recovers_is_believed(web: Web, providers: Any, now: float) -> None:
    providers.behaviour[UK_HOST] = "fails"

    async def mend(_: float) -> None:
        providers.behaviour[UK_HOST] = "well"

    async with providers.http() as http:
        mended = Web(http, ManualClock(now), LIMITS, sleep=mend)
        assert (await mended.converse(UK.name, UK.ask(now, ()))).at(now) is not None


async def test_nobody_there_is_unreachable_and_the_key_is_not_reported(now: float) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"cannot reach {request.url}", request=request)

    provider = Entsoe("10Y1001A1001A82H", TokenRef("s"))
    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as http:
        web = Web(http, ManualClock(now), WebLimits(attempts=1))
        with pytest.raises(ProviderFault) as fault:
            await web.converse(provider.name, provider.ask(now, ("s3cret-token",)))
    assert fault.value.reason is FaultReason.UNREACHABLE
    assert "s3cret-token" not in str(fault.value)
    assert "web-api.tp.entsoe.eu: ConnectError" in str(fault.value)
