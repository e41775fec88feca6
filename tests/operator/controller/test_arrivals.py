"""Reports on work that runs at once: one fault does not silence the rest."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from greensched_core import labels
from greensched_core.clock import Clock, ManualClock
from greensched_core.custom_resources.policy_lookup import PolicyOrigin
from greensched_core.ledger_records import LedgerRecord, What
from greensched_operator.controller.arrivals import Arrivals
from greensched_operator.controller.outputs import Outputs
from greensched_operator.controller.recording import Recorder
from greensched_operator.holding.judging import HoldRules, ReleaseNow
from greensched_operator.objects.cron_jobs import CronJob
from greensched_operator.objects.green_policy import Mode, Resolved
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.news import News
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_operator.writing.outbox import Outbox
from greensched_operator.writing.writing import Writer
from tests.operator.annotated_work import ENFORCING, NOW_S, api_of, running, work_of
from tests.operator.planning.test_start_planning import situation

SHADOW = replace(ENFORCING, mode=Mode.SHADOW)


class RecordedArrivals:
    """Arrivals with a ledger in memory and an API server that takes everything."""

    def __init__(self, speed: float | None = 1.0) -> None:
        self.records: list[LedgerRecord] = []
        self.bodies: list[Any] = []
        self.metrics = ControllerMetrics(CollectorRegistry())
        clock: Clock = ManualClock(NOW_S)
        writer = Writer(api_of(self._answer), clock, clock, self.metrics)
        recorder = Recorder(self.records.append, Budgets(), clock, "EUR")
        self.outbox = Outbox(10.0)
        outputs = Outputs(self.outbox, writer, recorder, self.metrics)
        self.arrivals = Arrivals(outputs, clock, lambda _: speed)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        return httpx.Response(200)

    def errors(self, reason: str) -> float:
        """Return how many controller errors of this reason were handled."""
        labels = {"reason": reason}
        name = "greensched_operator_controller_errors_total"
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


def rules(cursed: str = "") -> HoldRules:
    """Return rules of shadow, which fail for the namespace of one workload."""

    def policy_for(namespace: str, _: str) -> Resolved:
        if namespace == cursed:
            raise RuntimeError("rules that fail")
        return Resolved(SHADOW, PolicyOrigin.BUILT_IN)

    return HoldRules(policy_for, lambda *_: None, False)


def news(*works: Work) -> News:
    return News(arrived={work.uid: work for work in works})


def arriving(name: str) -> Work:
    said = {"greensched.io/deadline": "8h", "greensched.io/runtime": "30m"}
    return work_of(name, said, is_stopped=False)


async def test_shadow_tells_the_ledger_what_it_would_hold() -> None:
    recorded = RecordedArrivals()
    await recorded.arrivals.process(news(arriving("train")), rules(), lambda _: situation())
    [record] = recorded.records
    assert (record.what, record.is_shadow, record.subject.name) == (What.PLANNED, True, "train")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (ReleaseReason.RELEASER, "releaser: started by the releaser"),
        (ReleaseReason.RUN_NOW, "run-now: started by greensched release"),
        (ReleaseReason.OTHERS, "started-by-others: started by somebody else"),
        (ReleaseReason.UNINSTALL, "uninstall: started by helm uninstall"),
        (ReleaseReason.PLANNED_START, "planned-start: started by the operator"),  # another leader's
    ],
)
async def test_a_start_that_is_not_this_leaders_names_who_made_it(
    reason: ReleaseReason, told: str
) -> None:
    recorded = RecordedArrivals()
    over = {"train": ReleaseNow(arriving("train"), reason, "")}
    async with running(recorded.outbox):
        await recorded.arrivals.process(News(over=over), rules(), lambda _: situation())
        while not recorded.bodies:
            await asyncio.sleep(0.01)
    [condition] = recorded.bodies[0]["status"]["conditions"]
    assert (condition["status"], condition["message"]) == ("False", told)


async def test_a_fault_with_one_workload_silences_no_other() -> None:
    recorded = RecordedArrivals()
    cursed = replace(arriving("cursed"), namespace="cursed")
    work = news(cursed, arriving("train"))
    await recorded.arrivals.process(work, rules("cursed"), lambda _: situation())
    assert [record.subject.name for record in recorded.records] == ["train"]
    assert recorded.errors("arrival-failed") == 1


async def test_a_situation_that_cannot_be_reported_ends_no_turn() -> None:
    def fails(_: object) -> None:
        raise RuntimeError("no situation")

    recorded = RecordedArrivals()
    await recorded.arrivals.process(news(arriving("train")), rules(), fails)  # type: ignore[arg-type]  # it fails
    assert recorded.errors("arrival-failed") == 1


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.ENFORCE])
async def test_other_modes_plan_nothing_for_what_runs(mode: Mode) -> None:
    recorded = RecordedArrivals()
    policy = Resolved(replace(ENFORCING, mode=mode), PolicyOrigin.BUILT_IN)
    told = HoldRules(lambda *_: policy, lambda *_: None, False)
    await recorded.arrivals.process(news(arriving("train")), told, lambda _: situation())
    assert recorded.records == []


@pytest.mark.parametrize(
    ("paused", "speed", "learned"),
    [
        pytest.param(False, 1.0, ["[600]"], id="as-it-ran"),
        pytest.param(False, 0.5, ["[300]"], id="on-slow-nodes"),
        pytest.param(False, None, [], id="nobody-saw-where"),
        pytest.param(True, 1.0, [], id="it-was-paused"),
    ],
)
async def test_a_cron_job_learns_how_long_a_run_takes_on_a_reference_node(
    paused: bool, speed: float | None, learned: list[str]
) -> None:
    recorded = RecordedArrivals(speed)
    owner = {"kind": "CronJob", "name": "nightly", "uid": "c", "controller": True}
    cron_job = CronJob("team", "nightly", "c", {}, "0 0 * * *", "", ())
    work = work_of("run", {labels.PAUSED_AT: "x"} if paused else {}, owner=owner)
    ended = replace(work, started_s=NOW_S, ended_s=NOW_S + 600.0)
    told = HoldRules(rules().policy_for, lambda *_: cron_job, False)
    await recorded.arrivals.process(News(ended=[ended]), told, lambda _: situation())
    assert len(recorded.outbox) == len(learned)
    if not learned:
        return
    async with running(recorded.outbox):
        while not recorded.bodies:
            await asyncio.sleep(0.01)
    said = [each["metadata"]["annotations"][labels.RUNTIMES] for each in recorded.bodies]
    assert said == learned
