"""What the watch of Jobs knows of its health while kopf asks the API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from greensched_core.clock import ManualClock
from greensched_core.kubernetes_api import ApiAccess
from greensched_operator.controller.handlers import JobEvents
from greensched_operator.controller.job_watch import JobWatch

PATIENCE_S = 30.0
RESOURCES: dict[str, dict[str, Any]] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": []},
    "/apis": {"groups": [{
        "name": "batch", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"},
    }]},
    "/apis/batch/v1": {"resources": [{
        "name": "jobs", "kind": "Job", "singularName": "job", "namespaced": True,
        "verbs": ["list", "watch"],
    }]},
}  # fmt: skip


class NoEvents(JobEvents):
    """Takes no events: none come."""

    def __init__(self) -> None:
        self.listed_anew = asyncio.Event()

    def take(self, event: Mapping[str, Any]) -> None:
        """Do nothing."""


@asynccontextmanager
async def watching(answer: Callable[[str], int], clock: ManualClock) -> AsyncIterator[JobWatch]:
    """Watch Jobs of an API server that answers each path with a status."""

    async def answered(request: web.Request) -> web.Response:
        status = answer(request.path)
        return web.json_response(RESOURCES.get(request.path, {}), status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answered)
    async with TestServer(app) as server:
        access = ApiAccess(str(server.make_url("")).rstrip("/"), ssl.create_default_context())
        watch = JobWatch(NoEvents(), access, "first", clock)
        running = asyncio.create_task(watch.run())
        yield watch
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not claim():
            await asyncio.sleep(0.02)  # kopf's own loop and thread


async def test_a_refusal_of_what_kopf_asks_before_it_watches_is_its_status() -> None:
    refused, clock = {"/apis": 503}, ManualClock(50.0)
    async with watching(lambda path: refused.get(path, 200), clock) as watch:
        await until(lambda: watch.health.status == 503)
        refused = {"/apis/batch/v1": 403}
        await until(lambda: watch.health.status == 403)
        assert watch.health.lost_at is not None and not watch.health.synced
        assert watch.health.moved_at == clock.monotonic(), "it tries: it is not stuck"
