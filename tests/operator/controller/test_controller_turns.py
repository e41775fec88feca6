"""A controller's turns: what is due starts while all is planned, and counts once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace

import httpx
import pytest
from prometheus_client import CollectorRegistry

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.declarations import read_planned_run
from greensched_core.ledger_records import LedgerRecord
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.controller.arrivals import Arrivals
from greensched_operator.controller.controller import Controller, ControllerPace, Planning
from greensched_operator.controller.outputs import Outputs
from greensched_operator.controller.pauser import Pauser
from greensched_operator.controller.recording import Recorder
from greensched_operator.holding.judging import MayWait, ReleaseNow
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.held_works import RESENT_AFTER_S, HeldWorks
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_operator.writing.outbox import Outbox
from greensched_operator.writing.writing import Writer
from tests.operator.annotated_work import (
    HOUR_S,
    NOW_S,
    PATIENCE_S,
    api_of,
    marks,
    rules,
    running,
    work_of,
)
from tests.operator.planning.test_start_planning import situation

DIRTY_AT_FIRST = [900.0] * 8 + [100.0] * 88


class Scene:
    """A controller on a clock of our own, and what the API server was sent."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW_S)
        self.started: list[str] = []
        self.decisions: list[str | None] = []  # written with each start
        self.situation = situation()
        self.records: list[LedgerRecord] = []
        self.planning = threading.Event()  # it has begun
        self.go_on = threading.Event()
        self.go_on.set()
        self.fault: Exception | None = None
        self.staying: list[list[str]] = []  # whose plan may stay, of each planning
        self.beside: list[list[str]] = []  # whose room is kept, of each planning
        self.metrics = ControllerMetrics(CollectorRegistry())
        self.works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
        self.outbox = Outbox(1000.0)
        writer = Writer(api_of(self.answer), self.clock, self.clock, self.metrics)
        recorder = Recorder(self.records.append, Budgets(), self.clock, "EUR")
        outputs = Outputs(self.outbox, writer, recorder, self.metrics)
        self.controller = Controller(
            self.works,
            Arrivals(outputs, self.clock, lambda _: 1.0),
            Planning(rules, self.situation_now, self.plan),
            outputs,
            Pauser(self.works, dict, lambda _: None, outputs, self.clock, rules),
            self.clock,
            ControllerPace(1.0, 300.0),
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Take every write, and note which workload was started."""
        if request.method == "PATCH" and b'"suspend":false' in request.content:
            self.started.append(request.url.path.rpartition("/")[2])
            meta = json.loads(request.content)["metadata"]
            self.decisions.append(meta["annotations"].get(labels.DECISION))
        return httpx.Response(200, json={})

    def situation_now(self, earlier_plans: Sequence[Planned]) -> Situation:
        """Return the situation with the plans whose room is kept."""
        return replace(self.situation, earlier_plans=tuple(earlier_plans))

    def plan(
        self, waiting: Sequence[MayWait], now: Situation
    ) -> tuple[list[Planned], list[ReleaseNow]]:
        """Plan, once it may go on."""
        self.planning.set()
        assert self.go_on.wait(PATIENCE_S)
        self.staying.append([] if now.may_move else sorted(now.staying))
        self.beside.append([each.waiting.work.name for each in now.earlier_plans])
        if self.fault is not None:
            raise self.fault
        return plan_starts(waiting, now)

    def sample(self, name: str, **of: str) -> float:
        """Return a counter."""
        return (
            self.metrics.registry.get_sample_value(f"greensched_operator_{name}_total", of) or 0.0
        )


async def until(scene: Scene, count: int) -> None:
    while len(scene.started) < count:
        await asyncio.sleep(0.01)


async def test_what_becomes_due_while_all_is_planned_is_started_in_time() -> None:
    scene = Scene()
    scene.works.put(work_of("urgent", marks(deadline="2h", runtime="1h")))
    scene.works.put(work_of("patient", marks(deadline="12h", runtime="1h")))
    scene.go_on.clear()
    async with running(scene.outbox):
        turn = asyncio.create_task(scene.controller.turn())
        await asyncio.to_thread(scene.planning.wait, PATIENCE_S)
        scene.clock.advance(HOUR_S)
        await until(scene, 1)
        assert not turn.done()
        scene.go_on.set()
        await turn
    assert scene.started == ["urgent"]


async def test_a_planned_start_is_written_with_the_run_that_was_planned_last() -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    async with running(scene.outbox):
        await scene.controller.turn()
        planned = scene.works.planned["train"]
        scene.clock.advance(planned.start_s - NOW_S)
        await scene.controller.turn()
        await until(scene, 1)
    found = read_planned_run(scene.decisions[0] or "")
    assert found is not None
    assert (found.zone, found.start_s, found.runtime_s) == ("A", round(planned.start_s), 3600.0)
    written = json.loads(scene.decisions[0] or "")
    assert written["carbonGramsPerKwh"][0] == planned.chosen.run.carbon_g_per_kwh
    assert written["pricePerMwh"] == [None, None]


async def test_work_that_planning_starts_now_is_started_with_its_zone() -> None:
    scene = Scene()
    scene.situation = situation([400.0] * 200)
    scene.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    async with running(scene.outbox):
        await scene.controller.turn()
        await until(scene, 1)
    planned = read_planned_run(scene.decisions[0] or "")
    assert planned is not None
    assert (planned.zone, planned.start_s) == ("A", NOW_S)


async def test_work_that_starts_against_its_plan_is_started_without_it() -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="6h") | {labels.RUN_NOW: "true"}))
    async with running(scene.outbox):
        await scene.controller.turn()
        await until(scene, 1)
    assert scene.decisions == [None]


async def test_a_start_that_is_sent_twice_counts_once() -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="6h") | {labels.RUN_NOW: "true"}))
    async with running(scene.outbox):
        await scene.controller.turn()
        await until(scene, 1)
        scene.clock.advance(RESENT_AFTER_S + 1.0)  # and the watch has shown nothing
        await scene.controller.turn()
        await until(scene, 2)
        while len(scene.outbox):
            await asyncio.sleep(0.01)
    assert scene.started == ["train", "train"]
    assert scene.sample("released", reason="run-now") == 1.0
    assert len(scene.records) == 1


@pytest.mark.parametrize(
    ("status", "writes"), [pytest.param("True", 0, id="told"), pytest.param("False", 1, id="not")]
)
async def test_a_plan_is_written_again_only_where_the_condition_does_not_tell_of_it(
    status: str, writes: int
) -> None:
    first, again = Scene(), Scene()
    first.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    await first.controller.turn()
    planned = first.works.planned["train"]
    planned_s, until_s = planned.start_s, planned.waiting.terms.latest_start_s
    said = marks(NOW_S, until_s, deadline="12h", runtime="1h",
                 planned_start=format_timestamp(planned_s))  # fmt: skip
    told = [{"type": labels.START_PLANNED, "status": status}]
    again.works.put(work_of("train", said, conditions=told))
    async with running(again.outbox):
        await again.controller.turn()
        while len(again.outbox):
            await asyncio.sleep(0.01)
    assert again.sample("api_writes", kind="plan") == writes


async def test_a_planning_that_fails_is_tried_again_within_seconds() -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    scene.fault = RuntimeError("odd")
    await scene.controller.turn()
    assert scene.sample("controller_errors", reason="planning-failed") == 1.0
    scene.fault = None
    scene.clock.advance(6.0)
    await scene.controller.turn()
    assert list(scene.works.planned) == ["train"]


async def test_without_news_only_what_has_no_room_any_more_is_planned_again() -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    await scene.controller.turn()
    scene.clock.advance(301.0)
    await scene.controller.turn()
    scene.controller.replan()  # a new forecast, say
    scene.clock.advance(30.0)
    await scene.controller.turn()
    assert scene.staying == [[], ["train"], []]


async def test_what_was_sent_keeps_its_room_until_the_watch_shows_its_start() -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    await scene.controller.turn()
    scene.clock.advance(scene.works.planned["train"].start_s - NOW_S)
    scene.works.put(work_of("next", marks(deadline="12h", runtime="1h")))
    await scene.controller.turn()  # starts the one, and plans the other
    assert scene.beside == [[], ["train"]]
    assert scene.staying == [[], ["train"]]


@pytest.mark.parametrize("change", [
    pytest.param(situation(DIRTY_AT_FIRST), id="a-forecast-became-too-old"),
    pytest.param(replace(situation(), zones=(Zone("B", 64.0, 5.0),)), id="a-zone-is-gone"),
])  # fmt: skip
async def test_what_changes_without_being_announced_is_planned_anew(change: Situation) -> None:
    scene = Scene()
    scene.works.put(work_of("train", marks(deadline="12h", runtime="1h")))
    await scene.controller.turn()
    for now in (change, change):
        scene.situation = now
        scene.clock.advance(301.0)
        await scene.controller.turn()
    assert scene.staying[:2] == [[], []]
    assert scene.staying[2] == sorted(scene.works.planned), "it is planned on that now"
