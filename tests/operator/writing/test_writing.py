"""What is written on work, by a leader alone, and what becomes of refusals."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import httpx
import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.events import event_body
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_operator.writing.writing import Writer, regarded
from tests.operator.annotated_work import HOUR_S, NOW_S, api_of, marks, refused, work_of

OTHER = "Precondition failed: UID in precondition: a, UID in object meta: b"


class Server:
    """Answers all alike, and remembers what it was sent."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.bodies: list[dict[str, object]] = []
        self.gone: list[str] = []

    def take(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        return self.answer

    def writer(self, *, leads: bool = True) -> Writer:
        clock = ManualClock(NOW_S)
        return Writer(api_of(self.take), clock, clock, ControllerMetrics(),
                      may_write=lambda: leads, gone=self.gone.append)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "is_done", "gone"),
    [
        pytest.param(httpx.Response(200, json={}), True, [], id="taken"),
        pytest.param(refused(404), True, ["train"], id="gone"),
        pytest.param(refused(409, OTHER), True, ["train"], id="another-of-its-name"),
        pytest.param(refused(409, "the object has been modified"), False, [], id="conflict"),
        pytest.param(refused(403), False, [], id="forbidden"),
        pytest.param(refused(500), False, [], id="fault"),
    ],
)
async def test_what_is_refused_is_forgotten_only_when_it_is_gone(
    answer: httpx.Response, is_done: bool, gone: list[str]
) -> None:
    server = Server(answer)
    writer = server.writer()
    assert await writer.release(work_of(), ReleaseReason.RUN_NOW) is is_done
    assert await writer.plan(work_of(), NOW_S, NOW_S, "", {}) is is_done
    assert server.gone == gone * 2


async def test_our_mark_goes_off_what_others_started_and_what_stops_it_stays() -> None:
    server = Server(httpx.Response(200, json={}))
    assert await server.writer().unmark(work_of())
    (body,) = server.bodies
    assert body.keys() == {"metadata"}  # whoever suspended it meanwhile has the last word
    meta = cast(dict[str, Any], body["metadata"])
    assert meta.keys() == {"uid", "annotations"}  # it holds whatever else has changed
    assert meta["annotations"][labels.LATEST_START] is None


@pytest.mark.parametrize(
    ("reason", "camel"),
    [
        (ReleaseReason.NOW_IS_BEST, "NowIsBest"),
        (ReleaseReason.POLICY, "Policy"),
        (ReleaseReason.RUN_NOW, "RunNow"),
    ],
)
async def test_the_condition_of_a_wait_that_is_over_says_why(
    reason: ReleaseReason, camel: str
) -> None:
    server = Server(httpx.Response(200, json={}))
    assert await server.writer().settle(work_of(), reason, "why")
    status = cast(dict[str, Any], server.bodies[0]["status"])
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == (labels.START_PLANNED, "False")
    assert (condition["reason"], condition["message"]) == (camel, "why")


async def test_who_does_not_lead_any_more_writes_nothing() -> None:
    server = Server(httpx.Response(200, json={}))
    writer = server.writer(leads=False)
    assert not await writer.release(work_of(), ReleaseReason.RUN_NOW)
    assert not await writer.plan(work_of(), NOW_S, NOW_S, "", {})
    assert not await writer.settle(work_of(), ReleaseReason.RUN_NOW, "")
    assert not await writer.create_event(work_of(), "Held", "")
    assert server.bodies == []


@pytest.mark.parametrize(
    ("answer", "is_told"),
    [
        pytest.param(refused(409), True, id="said-before"),
        pytest.param(refused(403), False, id="quota-of-events"),
    ],
)
async def test_events_that_are_refused_harm_nothing(answer: httpx.Response, is_told: bool) -> None:
    server = Server(answer)
    assert await server.writer().create_event(work_of(), "Held", "why") is is_told
    assert server.gone == []


@pytest.mark.parametrize(
    ("at_s", "corrected"),
    [
        pytest.param(NOW_S - 1.0, None, id="as-it-was"),
        pytest.param(NOW_S + HOUR_S, format_timestamp(NOW_S), id="of-a-clock-that-is-fast"),
    ],
)
async def test_a_plan_sets_an_arrival_ahead_of_our_clock_right(
    at_s: float, corrected: str | None
) -> None:
    server = Server(httpx.Response(200, json={}))
    await server.writer().plan(work_of(annotations=marks(at_s)), NOW_S, NOW_S, "", {})
    annotations = server.bodies[0]["metadata"]["annotations"]  # type: ignore[index]  # parsed JSON
    assert annotations.get(labels.HELD_AT) == corrected


@pytest.mark.parametrize(
    ("before", "has_time"),
    [
        pytest.param([], True, id="never-told"),
        pytest.param([{"type": labels.START_PLANNED, "status": "False"}], True, id="over-before"),
        pytest.param([{"type": labels.START_PLANNED, "status": "True"}], False, id="still-planned"),
    ],
)
async def test_a_plan_that_moves_is_no_transition(
    before: list[dict[str, str]], has_time: bool
) -> None:
    server = Server(httpx.Response(200, json={}))
    await server.writer().plan(work_of(conditions=before), NOW_S, NOW_S, "", {})
    status = cast(dict[str, Any], server.bodies[0]["status"])
    assert ("lastTransitionTime" in status["conditions"][0]) is has_time


SAID: Any = {"component": "test", "is_warning": False}


@pytest.mark.parametrize("name", ["a" * 253, "a" * 235 + "-" * 17 + "a"])
def test_an_event_of_a_long_name_has_one_that_is_allowed(name: str) -> None:
    body = json.loads(event_body(regarded(work_of(name)), "Held", "x", NOW_S, **SAID))
    told = body["metadata"]["name"]
    assert len(told) <= 253 and re.fullmatch(r"[a-z0-9-]*[a-z0-9]\.[0-9a-f]{16}", told)


def test_an_event_is_short_enough_and_has_the_name_of_what_it_says() -> None:
    about = regarded(work_of())
    bodies = [json.loads(event_body(about, "Held", "x" * size, NOW_S, **SAID))
              for size in (1023, 1024, 1025)]  # fmt: skip
    assert [len(body["message"]) for body in bodies] == [1023, 1024, 1024]
    assert len({body["metadata"]["name"] for body in bodies}) == 3
