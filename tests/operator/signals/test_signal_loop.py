"""The controller's own loop on the real API server: alone, in a hurry, beside a slow provider."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any, cast

import httpx

from greensched_core.clock import ScaledClock, WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_operator.providers.answers import Answer
from greensched_operator.signals.grid_signal_controller import GridSignalController
from greensched_operator.signals.provider_client import ProviderClient
from greensched_operator.signals.spec import decode_grid_signal

UK_HOST = "api.carbonintensity.org.uk"
PATH = f"{GRID_SIGNALS_PATH}/zz"
SignalOperator = Any  # the fixture's


async def test_the_coroutine_fills_a_signal_by_itself(
    signals: SignalOperator, providers: Any, tmp_path: Path
) -> None:
    (tmp_path / "zz.csv").write_text(f"start,v\n{signals.clock.now()},5\n")
    async with signals.by_itself(signals.clock, folder=tmp_path), asyncio.timeout(20):
        await signals.create(carbon=[{"file": {"path": "zz.csv", "valueColumn": "v"}}])
        while not (await signals.object()).get("status"):
            await asyncio.sleep(0.05)
    assert (await signals.object())["status"]["current"]["carbonGramsPerKwh"] == 5


async def test_time_that_goes_faster_is_kept_up_with(
    signals: SignalOperator, tmp_path: Path
) -> None:
    clock = ScaledClock(WallClock().now(), signals.clock.now(), rate=600.0)
    tariff = {"tariff": {"timeZone": "UTC", "pricePerMwh": 250}}
    await signals.create(price=[tariff], pollInterval="1m")

    def asked() -> float:
        return signals.metric("fetches_total", provider="tariff", outcome="ok") or 0.0

    async with signals.by_itself(clock), asyncio.timeout(20):
        while asked() < 10:
            await asyncio.sleep(0.05)


async def test_a_slow_provider_of_one_zone_keeps_no_other_waiting(
    signals: SignalOperator, providers: Any
) -> None:
    providers.behaviour[UK_HOST] = "hangs"
    await signals.create(carbon=[{"ukCarbonIntensity": {}}])
    async with signals.by_itself(signals.clock, providers.http()), asyncio.timeout(20):
        while UK_HOST not in [each.host for each in providers.asked]:
            await asyncio.sleep(0.05)
        path = await signals.create_other(carbon=[{"static": {}}])
        try:
            while not json.loads(await signals.api.get(path)).get("status"):
                await asyncio.sleep(0.05)
        finally:
            await signals.api.delete(path)
        assert "status" not in await signals.object(), "the other one still waits"


async def test_an_edit_while_a_provider_is_asked_drops_its_answer(
    signals: SignalOperator, providers: Any
) -> None:
    await signals.create(carbon=[{"ukCarbonIntensity": {}}])
    signals.controller.list_began()
    signals.controller.upsert(decode_grid_signal(await signals.api.get(PATH)))
    signals.controller.list_ended()
    turning = asyncio.create_task(signals.controller.turn())
    while not providers.asked:
        await asyncio.sleep(0)
    edit: dict[str, Any] = {"spec": {"carbon": [{"static": {}}]}}
    signals.controller.upsert(
        decode_grid_signal(await signals.api.patch(PATH, json.dumps(edit).encode()))
    )
    await turning
    status = await signals.turn()
    assert status["carbon"]["provider"] == "static"
    assert "failures" not in status["carbon"]


async def test_a_status_that_is_not_taken_is_written_again_without_a_question(
    signals: SignalOperator, providers: Any
) -> None:
    refusals = [httpx.Response(500, json={"message": "etcd is away"})]
    taken: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if refusals:
            return refusals.pop()
        taken.append(request.content)
        return httpx.Response(200, content=raw)

    raw = json.dumps(
        {
            "metadata": {"name": "zz", "generation": 1},
            "spec": {"zone": "ZZ", "carbon": [{"ukCarbonIntensity": {}}]},
        }
    ).encode()
    access = ApiAccess("http://api.test", ssl.create_default_context())
    async with ApiClient(access, transport=httpx.MockTransport(answer)) as api:
        signals.api = api
        signals.restart()
        signals.controller.upsert(decode_grid_signal(raw))
        signals.controller.list_ended()
        next_at = await signals.controller.turn()
        assert signals.metric("write_failures_total") == 1
        assert next_at == signals.clock.now() + 10
        asked = len(providers.asked)
        signals.clock.advance(10)
        await signals.controller.turn()
    assert len(taken) == 1
    assert json.loads(taken[0])["status"]["current"]["carbonGramsPerKwh"] == 266
    assert len(providers.asked) == asked == 1


async def test_a_bug_with_a_zone_is_not_run_into_again_at_once(signals: SignalOperator) -> None:
    asked: list[float] = []

    class Broken:
        async def ask(self, *_: object) -> Answer:
            asked.append(signals.clock.now())
            raise RuntimeError("a bug")

    raw = {
        "metadata": {"name": "zz"},
        "spec": {"zone": "ZZ", "carbon": [{"ukCarbonIntensity": {}}]},
    }
    controller = GridSignalController(
        signals.api,
        signals.clock,
        cast(ProviderClient, Broken()),
        signals.metrics,
        chance=lambda: 0.0,
    )
    controller.upsert(decode_grid_signal(json.dumps(raw).encode()))
    controller.list_ended()
    first = signals.clock.now()
    assert await controller.turn() == first + 10
    await controller.turn()
    signals.clock.advance(10)
    await controller.turn()
    assert asked == [first, first + 10]
