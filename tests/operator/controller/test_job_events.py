"""What kopf tells of Jobs, and what it does not."""

from __future__ import annotations

import asyncio
import json

import httpx

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.controller.handlers import JobEvents
from greensched_operator.kueue.kueue_controller import KueueController
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_operator.writing.writing import Writer
from tests.operator.annotated_work import api_of, refused, stored


def events_of(works: HeldWorks, client: ApiClient) -> JobEvents:
    metrics, clock = ControllerMetrics(), ManualClock(0.0)
    writer = Writer(client, clock, clock, metrics, may_write=lambda: True, gone=works.drop)
    kueue = KueueController(client, works, writer, labels.SCHEDULER_NAME, lambda: True)
    return JobEvents(works, lambda: None, metrics, kueue)


async def test_a_job_that_went_while_nobody_watched_is_forgotten() -> None:
    def listed(_: httpx.Request) -> httpx.Response:
        kept = {"metadata": {"name": "kept", "uid": "kept"}}
        return httpx.Response(200, content=json.dumps({"metadata": {}, "items": [kept]}))

    works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    client = api_of(listed)
    events = events_of(works, client)
    for name in ("kept", "gone"):
        events.take({"type": None, "object": stored(name, is_stopped=False)})
    await events.forget_unlisted(client)
    assert works.known() == {"kept"}


async def test_nothing_is_forgotten_where_the_api_server_does_not_answer() -> None:
    works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    client = api_of(lambda _: refused(500))
    events = events_of(works, client)
    events.take({"type": None, "object": stored("kept", is_stopped=False)})
    await events.forget_unlisted(client)
    assert works.known() == {"kept"}


async def test_it_ends_when_it_is_to_although_a_list_was_reported_just_then() -> None:
    works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    client = api_of(lambda _: refused(500))
    events = events_of(works, client)
    forgetting = asyncio.create_task(events.forget_gone(client))
    await asyncio.sleep(0.01)  # it waits
    events.listed_anew.set()
    await asyncio.sleep(0)  # what it waits for has come; it itself has not heard of it
    forgetting.cancel()
    done, _ = await asyncio.wait({forgetting}, timeout=1.0)
    assert done, "it goes on after its end"
