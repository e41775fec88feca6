"""What the ledger is told of pauses, and how a pause is written on a Job."""

import json
from dataclasses import replace

import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.custom_resources.policy_lookup import PolicyOrigin
from greensched_core.ledger_records import LedgerRecord, What
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.units import JOULES_PER_KWH
from greensched_operator.controller.recording import Recorder
from greensched_operator.holding.judging import HoldRules, MayWait, ReleaseNow, judge
from greensched_operator.objects.green_policy import (
    Budget,
    BudgetPeriod,
    GreenPolicy,
    Mode,
    Resolved,
)
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work, convert_job
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.pausing import JobRunSegment, Pause, choose_pauses
from greensched_operator.planning.plan_annotations import decision_of
from greensched_operator.planning.situation import Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_operator.writing.writing import pause_patch
from tests.operator.situations import situation_of

NOON_S = 1_700_006_400.0  # the begin of a slot, in seconds since the epoch
RULES = HoldRules(
    lambda _, __: Resolved(GreenPolicy(name="p", mode=Mode.ENFORCE), PolicyOrigin.CLUSTER),
    lambda _, __: None,
)


def job(written: dict[str, str], *, is_stopped: bool) -> Work:
    """Return a Job of two hours and a core, created at noon, that is to end within 12 hours."""
    asked = {labels.DEADLINE: "12h", labels.RUNTIME: "2h", labels.CHECKPOINTABLE: "true"}
    pods = {
        "schedulerName": "greensched",
        "containers": [{"resources": {"requests": {"cpu": "1"}}}],
    }
    return convert_job({
        "metadata": {"name": "train", "namespace": "n", "uid": "u", "resourceVersion": "7",
                     "annotations": asked | written,
                     "creationTimestamp": format_timestamp(NOON_S)},
        "spec": {"suspend": is_stopped, "template": {"spec": pods}},
        "status": {"ready": 1},
    })  # fmt: skip


def situation(now_s: float, grams: list[float]) -> Situation:
    return situation_of(now_s, grams, 50.0, Zone("Z", 8.0, 10.0))


def paused_after_an_hour(now_s: float) -> Pause:
    run_segment = JobRunSegment(job({}, is_stopped=False), 3600.0, "Z")
    (pause,) = choose_pauses([run_segment], RULES, situation(now_s, [900.0] * 4 + [50.0] * 40), 0.0)
    return pause


def test_a_pause_and_what_follows_tell_of_all_the_work_not_only_of_what_is_left() -> None:
    told: list[LedgerRecord] = []
    budgets = Budgets()
    recorder = Recorder(told.append, budgets, ManualClock(NOON_S), "EUR")
    held = judge(job({labels.LATEST_START: "x"}, is_stopped=True), RULES, NOON_S)
    assert isinstance(held, MayWait)
    first = situation(NOON_S, [300.0] * 48)
    (planned,), _ = plan_starts([held], first)
    recorder.planned(planned, first)
    recorder.released(ReleaseNow(held.work, ReleaseReason.NOW_IS_BEST, ""))

    now_s = NOON_S + 3600.0
    pause = paused_after_an_hour(now_s)
    recorder.paused(pause.planned, situation(now_s, [900.0] * 48))
    written = pause.progress.annotations() | {labels.LATEST_START: "x"}
    recorder.released(ReleaseNow(job(written, is_stopped=True), ReleaseReason.RESUMED, ""))
    recorder.ended(job(written, is_stopped=False))

    assert [each.what for each in told] == [
        What.RELEASED, What.PAUSED, What.RESUMED, What.ENDED]  # fmt: skip
    before, *after = told
    assert before.planned.energy_j == pytest.approx(7200.0 * 10.0)
    for each in after:
        # An hour at 300 g/kWh was run, an hour and a minute at 50 g/kWh follow.
        assert each.planned.energy_j == pytest.approx((7200.0 + 60.0) * 10.0, rel=0.01)
        assert each.planned.carbon_g == pytest.approx(10 * 0.3 + 10 * 0.05, rel=0.03)
        assert each.run_now == before.run_now
    twice_kwh = Budget(BudgetPeriod.DAY, energy_kwh=2 * 7200.0 * 10.0 / JOULES_PER_KWH)
    assert budgets.opens_s("n", twice_kwh, now_s) < now_s  # what is resumed counts once


def test_a_pause_is_one_write_that_a_changed_job_refuses() -> None:
    pause = paused_after_an_hour(NOON_S + 3600.0)
    body = json.loads(pause_patch(pause.planned, pause.progress, "why"))
    until_s = pause.planned.waiting.terms.latest_start_s
    assert body == {
        "metadata": {
            "uid": "u",
            "resourceVersion": "7",
            "annotations": {
                labels.LATEST_START: format_timestamp(int(until_s)),
                labels.HOLD_REASON: "why",
                labels.DECISION: json.dumps(decision_of(pause.planned), separators=(",", ":")),
                labels.PLANNED_START: format_timestamp(NOON_S + 7200.0),
                labels.HELD_AT: format_timestamp(NOON_S),
                labels.RELEASED_AT: None,
                labels.RELEASE_REASON: None,
                labels.WORK_DONE: "3600s",
                labels.PAUSES: "1",
                labels.PAUSED_AT: format_timestamp(NOON_S + 3600.0),
            },
        },
        "spec": {"suspend": True},
    }


def test_a_paused_job_whose_marks_a_user_takes_off_is_still_known_as_stopped_by_us() -> None:
    pause = paused_after_an_hour(NOON_S + 3600.0)
    told = json.loads(pause_patch(pause.planned, pause.progress, "why"))["metadata"]["annotations"]
    left = {name: text for name, text in told.items() if text and name != labels.LATEST_START}
    assert job(left, is_stopped=True).is_left


def test_of_a_paused_job_what_is_left_is_planned() -> None:
    pause = paused_after_an_hour(NOON_S + 3600.0)
    written = pause.progress.annotations() | {labels.LATEST_START: "x"}
    waiting = judge(job(written, is_stopped=True), RULES, NOON_S + 3601.0)
    assert isinstance(waiting, MayWait)
    assert waiting.terms.runtime_s == 3600.0 + 60.0
    assert waiting.terms == replace(
        pause.planned.waiting.terms, most_restarts=waiting.terms.most_restarts
    )
