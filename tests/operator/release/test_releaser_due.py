"""What the releaser starts, by what it reads on the objects alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.objects.workloads import WorkKind
from greensched_operator.release.releaser import Releaser, decode_stopped
from greensched_operator.runtime.settings import OperatorSettings
from tests.operator.annotated_work import NOW_S, api_of, marks, refused, stored

GRACE_S = 20.0


def releaser(answer: httpx.Response, clock: ManualClock, *items: dict[str, Any]) -> Releaser:
    settings = OperatorSettings(namespace="greensched", releaser_grace_s=GRACE_S)
    found = Releaser(settings, api_of(lambda _: answer), clock)
    for item in items:
        sink = found.jobs if item["kind"] == WorkKind.JOB else found.pods
        sink.upsert(decode_stopped(json.dumps(item)))
    return found


def due(clock: ManualClock, *items: dict[str, Any]) -> list[str]:
    return [held.name for held, _ in releaser(refused(500), clock, *items).due()]


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
@pytest.mark.parametrize(
    ("at_s", "is_due"),
    [
        pytest.param(NOW_S + GRACE_S - 0.001, False, id="the-operator-has-its-time"),
        pytest.param(NOW_S + GRACE_S, True, id="the-operator-did-not"),
        pytest.param(NOW_S + 1e6, True, id="long-past"),
    ],
)
def test_what_is_past_its_latest_start_is_due(kind: WorkKind, at_s: float, is_due: bool) -> None:
    item = stored(annotations=marks(until_s=NOW_S), kind=kind)
    assert due(ManualClock(at_s), item) == ["train"] * is_due


@pytest.mark.parametrize(
    ("item", "is_due"),
    [
        pytest.param(stored(annotations={labels.LATEST_START: "soon"}), True, id="typo"),
        pytest.param(stored(annotations={labels.LATEST_START: ""}), True, id="empty"),
        pytest.param(stored(annotations={}), False, id="suspended-by-its-user"),
        pytest.param(stored(annotations={}, kind=WorkKind.POD), True, id="our-gate-without-an-end"),
        pytest.param(
            stored(annotations={labels.HELD_AT: format_timestamp(NOW_S)}), True,
            id="its-end-was-taken-off",
        ),
        pytest.param(
            stored(annotations={labels.HELD_AT: "x", labels.RELEASED_AT: "y"}), False,
            id="released-and-suspended-by-its-user",
        ),
        pytest.param(stored(annotations={labels.LATEST_START: "soon"}, is_stopped=False), False,
                     id="runs"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_past_and_what_is_not_ours_is_left_alone(
    item: dict[str, Any], is_due: bool
) -> None:
    assert due(ManualClock(NOW_S), item) == ["train"] * is_due


def test_the_most_overdue_goes_first() -> None:
    items = [stored(f"at-{place}", marks(until_s=NOW_S - place)) for place in (1, 3, 2)]
    assert due(ManualClock(NOW_S + GRACE_S), *items) == ["at-3", "at-2", "at-1"]


@pytest.mark.parametrize("status", [404, 409, 422, 500, 503])
async def test_what_is_refused_is_tried_again(status: int) -> None:
    found = releaser(refused(status), ManualClock(NOW_S + 1e6), stored())
    async with asyncio.TaskGroup() as passes:
        found.release_due(passes)
    assert [held.name for held, _ in found.due()] == ["train"]


def test_what_a_new_list_does_not_show_is_forgotten() -> None:
    found = releaser(refused(500), ManualClock(NOW_S + 1e6), stored("gone"), stored("there"))
    found.jobs.list_began()
    found.jobs.upsert(decode_stopped(json.dumps(stored("there"))))
    found.jobs.list_ended()
    assert [held.name for held, _ in found.due()] == ["there"]
