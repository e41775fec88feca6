"""A releaser that sees nothing for long: what its probes and its metrics say."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_operator.release.releaser import Releaser
from greensched_operator.runtime.settings import OperatorSettings

PATIENCE_S = 60.0
NOWHERE = "http://127.0.0.1:1"  # where every watch is refused its connection
JOBS, PODS = "/apis/batch/v1/jobs", "/api/v1/pods"
CONFIG_MAPS = "/api/v1/namespaces/greensched/configmaps"


async def lists_nothing(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=json.dumps({"metadata": {}, "items": []}))


async def is_mute(_: httpx.Request) -> httpx.Response:
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def releasing(
    answer: Callable[[httpx.Request], Coroutine[None, None, httpx.Response]], clock: ManualClock
) -> AsyncIterator[Releaser]:
    """A releaser of an API server that answers so, and lets nobody watch."""
    access = ApiAccess(NOWHERE, ssl.create_default_context())
    settings = OperatorSettings(health_host="127.0.0.1", health_port=0)
    stop = asyncio.Event()
    async with ApiClient(access, transport=httpx.MockTransport(answer)) as client:
        process = Releaser(settings, client, clock)
        running = asyncio.create_task(process.run(stop))
        try:
            async with asyncio.timeout(PATIENCE_S):
                yield process
        finally:
            stop.set()
            await running


async def until(claim: Callable[[], bool]) -> None:
    while not claim():
        await asyncio.sleep(0.01)


def aged_s(releaser: Releaser, resource: str) -> float | None:
    return releaser.metrics.registry.get_sample_value(
        "greensched_operator_watch_age_seconds", {"resource": resource}
    )


async def test_a_releaser_that_lost_its_watches_says_so_and_for_how_long() -> None:
    clock = ManualClock()
    async with releasing(lists_nothing, clock) as releaser:
        await until(lambda: releaser.ready() == "")
        clock.advance(3600.0)
        for path in (JOBS, PODS, CONFIG_MAPS):
            assert f"{path} for 3600 s" in releaser.ready()
        assert {aged_s(releaser, each) for each in ("jobs", "pods", "configmaps")} == {3600.0}


async def test_a_releaser_whose_api_server_is_away_is_not_killed_for_it() -> None:
    """Three times five minutes: longer than a watch that stands still is given."""
    clock = ManualClock()
    async with releasing(lists_nothing, clock) as releaser:
        await until(lambda: releaser.ready() == "")
        for _ in range(3):
            clock.advance(300.0)
            await asyncio.sleep(2.0)  # each watch tries again meanwhile
            assert releaser.alive() == ""


@pytest.mark.parametrize(
    ("stands_still_s", "is_alive"),
    [
        pytest.param(599.0, True, id="it-may-still-move"),
        pytest.param(601.0, False, id="for-ten-minutes"),
    ],
)
async def test_a_releaser_whose_watch_stands_still_is_to_be_killed(
    stands_still_s: float, is_alive: bool
) -> None:
    clock = ManualClock()
    async with releasing(is_mute, clock) as releaser:
        await until(lambda: aged_s(releaser, "configmaps") is not None)
        await asyncio.sleep(0.1)  # each watch has asked for its list
        clock.advance(stands_still_s)
        assert (releaser.alive() == "") is is_alive
        assert releaser.ready().startswith(f"waits for {JOBS}, {PODS}, {CONFIG_MAPS}")
