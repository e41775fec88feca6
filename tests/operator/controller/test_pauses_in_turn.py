"""Pauses that are carried out late, how many are looked at, and marks that were taken off."""

from dataclasses import replace

import pytest

from greensched_cli.reading.held_work import is_ours_to_start
from greensched_core import labels
from greensched_operator.controller.pauser import LookTurns, may_still_pause
from greensched_operator.holding.judging import HoldRules, MayWait, ReleaseNow, judge
from greensched_operator.objects.green_policy import Mode, PauseLimits, Resolved
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.planning.pausing import JobRunSegment, Pause, choose_pauses
from tests.operator.planning.test_pausing_choice import (
    DIRTY_THEN_CLEAN,
    HOUR_S,
    NOON_S,
    job,
    rules,
    situation,
)

PAUSED = {
    labels.HELD_AT: "2023-11-14T23:00:00Z",
    labels.PAUSED_AT: "2023-11-15T00:00:00Z",
    labels.PAUSES: "1",
    labels.WORK_DONE: "60s",
}
MARK = {labels.LATEST_START: "2023-11-15T08:00:00Z"}


def chosen() -> Pause:
    run_segment = JobRunSegment(job(), HOUR_S, "Z")
    (pause,) = choose_pauses([run_segment], rules(), situation(DIRTY_THEN_CLEAN), 0.0)
    return pause


def emergency() -> HoldRules:
    return replace(rules(), is_emergency_release=True)


@pytest.mark.parametrize(("now", "late_s", "may"), [
    pytest.param(rules(), 1.0, True, id="at-once"),
    pytest.param(emergency(), 1.0, False, id="emergency"),
    pytest.param(rules(mode=Mode.SHADOW), 1.0, False, id="shadow"),
    pytest.param(rules(mode=Mode.OFF), 1.0, False, id="off"),
    pytest.param(rules(), HOUR_S, False, id="clean-hour-has-come"),
    pytest.param(rules(pause=PauseLimits(0.0, 8 * HOUR_S)), 1.0, False, id="too-short-by-now"),
])  # fmt: skip
def test_a_pause_is_carried_out_only_as_long_as_it_still_holds(
    now: HoldRules, late_s: float, may: bool
) -> None:
    assert may_still_pause(chosen().planned, now, NOON_S + late_s) is may


@pytest.mark.parametrize(("written", "is_left"), [
    pytest.param(PAUSED, True, id="our-mark-was-taken-off"),
    pytest.param(PAUSED | {labels.RELEASED_AT: "2023-11-15T01:00:00Z"}, False,
                 id="stopped-by-its-user-after-it-was-resumed"),
    pytest.param({}, False, id="never-ours"),
])  # fmt: skip
def test_a_paused_job_without_our_mark_is_resumed(written: dict[str, str], is_left: bool) -> None:
    work = job(written=written, spec={"suspend": True})
    works = HeldWorks(frozenset({"greensched"}))
    works.put(work)
    released = works.judged(rules(), NOON_S, 0.0)
    assert [each.reason for each in released] == ([ReleaseReason.OPT_OUT] if is_left else [])
    assert is_ours_to_start(work) is is_left


@pytest.mark.parametrize(("now", "reason"), [
    pytest.param(emergency(), ReleaseReason.EMERGENCY, id="emergency"),
    pytest.param(rules(mode=Mode.SHADOW), ReleaseReason.POLICY, id="shadow"),
    pytest.param(rules(mode=Mode.OFF), ReleaseReason.POLICY, id="off"),
])  # fmt: skip
def test_a_paused_job_is_resumed_at_once_where_nothing_is_held(
    now: HoldRules, reason: ReleaseReason
) -> None:
    work = job(written=PAUSED | MARK, spec={"suspend": True})
    assert isinstance(judge(work, rules(), NOON_S), MayWait)
    judged = judge(work, now, NOON_S)
    assert isinstance(judged, ReleaseNow)
    assert judged.reason == reason


@pytest.mark.parametrize("reason", ["started-by-others", "opt-out", "run-now"])
def test_who_was_started_by_hand_is_not_suspended_again(reason: str) -> None:
    run_segment = JobRunSegment(job(written={labels.RELEASE_REASON: reason}), HOUR_S, "Z")
    assert choose_pauses([run_segment], rules(), situation(DIRTY_THEN_CLEAN), 0.0) == []


def test_a_job_that_cannot_be_judged_runs_on_and_keeps_no_other_from_a_pause() -> None:
    followed = rules()

    def policy_for(namespace: str, name: str) -> Resolved:
        if namespace == "broken":
            raise RuntimeError("a fault of ours")
        return followed.policy_for(namespace, name)

    works = [job(meta={"namespace": "broken", "uid": "b"}), job()]
    pauses = choose_pauses(
        [JobRunSegment(work, HOUR_S, "Z") for work in works],
        replace(followed, policy_for=policy_for),
        situation(DIRTY_THEN_CLEAN),
        0.0,
    )
    assert [each.planned.waiting.work.uid for each in pauses] == ["u"]


def test_where_too_many_run_each_has_its_turn_before_any_has_a_second() -> None:
    running = [JobRunSegment(job(meta={"uid": str(place)}), HOUR_S, "Z") for place in range(5)]
    turns = LookTurns(2)
    looked_at = [{each.work.uid for each in turns.take(running)} for _ in range(3)]
    assert [len(each) for each in looked_at] == [2, 2, 2]
    assert set.union(*looked_at) == {"0", "1", "2", "3", "4"}
