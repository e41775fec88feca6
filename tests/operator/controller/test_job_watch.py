"""What the watch of Jobs asks of the API server, and what it knows of its health meanwhile."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from greensched_core.clock import ManualClock
from greensched_core.kubernetes_api import ApiAccess
from greensched_operator.controller.handlers import JobEvents
from greensched_operator.controller.job_watch import JobWatch

PATIENCE_S = 30.0


def resource(name: str, kind: str, *, is_namespaced: bool) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "singularName": kind.lower(),
        "namespaced": is_namespaced,
        "verbs": ["list", "watch", "patch"],
    }


def group(name: str) -> dict[str, Any]:
    return {"name": name, "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}


RESOURCES: dict[str, dict[str, Any]] = {  # kopf waits until it has seen all three
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [resource("namespaces", "Namespace", is_namespaced=False)]},
    "/apis": {"groups": [group("batch"), group("apiextensions.k8s.io")]},
    "/apis/batch/v1": {"resources": [resource("jobs", "Job", is_namespaced=True)]},
    "/apis/apiextensions.k8s.io/v1": {
        "resources": [
            resource("customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False)
        ]
    },
}
JOBS = "/apis/batch/v1/jobs"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SeenEvents(JobEvents):
    """Keeps the uids of the Jobs that it is told of."""

    def __init__(self) -> None:
        self.listed_anew = asyncio.Event()
        self.uids = list[str]()

    def take(self, event: Mapping[str, Any]) -> None:
        """Keep the Job's uid."""
        self.uids.append(event["object"]["metadata"]["uid"])


class Pages:
    """Lists Jobs as an API server does: at most `limit` of them, then those after `continue`."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self.sizes = list[int]()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path != JOBS:
            return web.json_response(RESOURCES.get(request.path, {}))
        if "watch" in request.query:
            await asyncio.Event().wait()
        first = int(request.query.get("continue", 0))
        after = min(first + int(request.query.get("limit", self._jobs)), self._jobs)
        self.sizes.append(after - first)
        named = [f"job-{number}" for number in range(first, after)]
        items = [{"metadata": {"uid": each, "name": each, "namespace": "work"}} for each in named]
        token = str(after) if after < self._jobs else ""
        return web.json_response({"metadata": {"continue": token}, "items": items})


@asynccontextmanager
async def watching(
    answer: Handler, clock: ManualClock, events: JobEvents
) -> AsyncIterator[JobWatch]:
    """Watch Jobs of an API server that answers so."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        access = ApiAccess(str(server.make_url("")).rstrip("/"), ssl.create_default_context())
        watch = JobWatch(events, access, "first", clock)
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

    async def answer(request: web.Request) -> web.StreamResponse:
        status = refused.get(request.path, 200)
        return web.json_response(RESOURCES.get(request.path, {}), status=status)

    async with watching(answer, clock, SeenEvents()) as watch:
        await until(lambda: watch.health.status == 503)
        refused = {"/apis/batch/v1": 403}
        await until(lambda: watch.health.status == 403)
        assert watch.health.lost_at is not None and not watch.health.synced
        assert watch.health.moved_at == clock.monotonic(), "it tries: it is not stuck"


async def test_many_jobs_are_listed_in_pages_and_none_is_lost() -> None:
    pages, events = Pages(jobs=1_201), SeenEvents()
    async with watching(pages.answer, ManualClock(50.0), events):
        await until(lambda: len(events.uids) >= 1_201)
    assert sorted(events.uids) == sorted(f"job-{number}" for number in range(1_201))
    assert pages.sizes == [500, 500, 201]
