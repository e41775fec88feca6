"""What is held, judged and started again: tables at boundaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.holding import margin_s
from greensched_operator.holding.judging import ReleaseNow
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, Mode
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work, WorkKind
from greensched_operator.planning.held_works import RESENT_AFTER_S, HeldWorks
from tests.operator.annotated_work import HOUR_S, NOW_S, marks, rules, work_of

# A deadline of 6 h, an hour of runtime, a margin.
LATEST_S = NOW_S + 5 * HOUR_S - margin_s(BUILT_IN, HOUR_S, BUILT_IN.runtime_error)
RELEASED = {labels.RELEASED_AT: format_timestamp(NOW_S + 60)}

PLANNED = [{"type": labels.START_PLANNED, "status": "True"}]
DONE = [{"type": "Complete", "status": "True"}]
OVER = [{"type": labels.START_PLANNED, "status": "False"}]
BY_US = ReleaseNow(work_of(), ReleaseReason.PLANNED_START, "its planned start has come")


def holding(*works: Work) -> HeldWorks:
    found = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    for each in works:
        found.put(each)
    return found


def started(
    works: HeldWorks, at_s: float = NOW_S, monotonic_s: float = 0.0
) -> dict[str, ReleaseReason]:
    found = works.judged(rules(), at_s, monotonic_s)
    for each in found:
        works.sent(each, monotonic_s)
    return {each.work.name: each.reason for each in found}


@pytest.mark.parametrize(
    ("at_s", "expected"),
    [
        pytest.param(LATEST_S - 0.001, {}, id="a-moment-before"),
        pytest.param(LATEST_S, {"train": ReleaseReason.LATEST_START}, id="at-its-latest-start"),
        pytest.param(
            LATEST_S + HOUR_S, {"train": ReleaseReason.LATEST_START}, id="after-an-outage"
        ),
    ],
)
def test_held_work_starts_at_its_latest_start(
    at_s: float, expected: dict[str, ReleaseReason]
) -> None:
    works = holding(work_of())
    assert started(works) == {}
    assert started(works, at_s) == expected


@pytest.mark.parametrize(
    ("work", "is_held"),
    [
        pytest.param(work_of(), True, id="suspended-with-our-mark"),
        pytest.param(work_of(annotations={}), False, id="suspended-by-its-user"),
        pytest.param(work_of(annotations=marks() | RELEASED), True, id="paused-again-by-us"),
        pytest.param(
            work_of(annotations={labels.HELD_AT: format_timestamp(NOW_S)}), True,
            id="our-mark-taken-off",
        ),
        pytest.param(
            work_of(annotations={labels.HELD_AT: format_timestamp(NOW_S)} | RELEASED), False,
            id="released-and-then-suspended-by-its-user",
        ),
        pytest.param(work_of(annotations={}, kind=WorkKind.POD), True,
            id="our-gate-without-a-mark"),
        pytest.param(work_of(is_stopped=False), False, id="started-by-others"),
        pytest.param(work_of(scheduler="default-scheduler"), True, id="held-and-opt-out"),
        pytest.param(
            work_of(annotations={}, scheduler="default-scheduler"), False, id="none-of-ours"
        ),
    ],
)  # fmt: skip
def test_what_is_held_is_what_we_stopped(work: Work, is_held: bool) -> None:
    assert (work.uid in holding(work).held) is is_held


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
def test_work_whose_mark_was_taken_off_while_nobody_looked_starts(kind: WorkKind) -> None:
    left = work_of(annotations={labels.HELD_AT: format_timestamp(NOW_S)}, kind=kind)
    assert started(holding(left)) == {"train": ReleaseReason.OPT_OUT}


def test_a_user_who_stops_what_was_just_released_keeps_it_stopped() -> None:
    works = holding(work_of())
    said = {labels.HELD_AT: format_timestamp(NOW_S)} | RELEASED
    works.put(work_of(annotations=said))  # release and stop came as one event
    assert started(works, LATEST_S) == {}


@pytest.mark.parametrize(
    ("judged", "reason"),
    [
        pytest.param(work_of(annotations=marks(deadline="6h", run_now="true")),
            ReleaseReason.RUN_NOW,
                     id="run-now"),
        pytest.param(work_of(annotations=marks()), ReleaseReason.OPT_OUT, id="opt-out"),
        pytest.param(work_of(annotations=marks(deadline="soon")), ReleaseReason.OPT_OUT, id="typo"),
        pytest.param(work_of(annotations=marks(deadline="61m")), ReleaseReason.LATEST_START,
                     id="no-slack"),
    ],
)  # fmt: skip
def test_a_start_that_was_not_taken_is_sent_again(judged: Work, reason: ReleaseReason) -> None:
    works = holding(judged)
    assert started(works, monotonic_s=0.0) == {"train": reason}
    assert started(works, monotonic_s=RESENT_AFTER_S) == {}
    assert started(works, monotonic_s=RESENT_AFTER_S + 0.1) == {"train": reason}


def test_a_start_that_planning_sent_and_nobody_took_is_planned_again() -> None:
    works = holding(work_of())
    assert started(works) == {}
    works.sent(BY_US, 0.0)
    assert works.waiting() == works.unplanned() == []
    assert started(works, monotonic_s=RESENT_AFTER_S + 0.1) == {}
    assert [one.work.name for one in works.unplanned()] == ["train"]


def test_a_gang_starts_together() -> None:
    works = holding(
        work_of("first", marks(deadline="6h"), gang="ring"),
        work_of("second", marks(deadline="9h"), gang="ring"),
        work_of("other", marks(deadline="9h"), gang="else"),
    )
    assert started(works) == {}
    assert started(works, LATEST_S) == dict.fromkeys(
        ("first", "second"), ReleaseReason.LATEST_START
    )


@pytest.mark.parametrize(
    ("others", "is_started"),
    [
        pytest.param([work_of("first", gang="ring", is_stopped=False)], True, id="one-runs"),
        pytest.param([work_of("first", gang="ring")], False, id="one-waits"),
        pytest.param([work_of("first", gang="else", is_stopped=False)], False, id="another-runs"),
        pytest.param(
            [work_of("first", {labels.GANG: "ring"})], False, id="one-was-stopped-by-its-user"
        ),
        pytest.param(
            [work_of("first", gang="ring", is_stopped=False, succeeded=1,
                     conditions=[{"type": "Complete", "status": "True"}])],
            False, id="one-has-ended",
        ),
    ],
)  # fmt: skip
def test_who_comes_late_to_a_gang_that_runs_starts_at_once(
    others: list[Work], is_started: bool
) -> None:
    works = holding(*others, work_of("late", gang="ring"))
    assert started(works) == ({"late": ReleaseReason.GANG} if is_started else {})


def test_when_others_start_one_of_a_gang_its_mates_follow() -> None:
    works = holding(*(work_of(name, gang="ring") for name in ("first", "second")))
    assert started(works) == {}
    works.put(work_of("first", gang="ring", is_stopped=False))
    assert started(works) == {"second": ReleaseReason.GANG}


def test_a_gang_of_which_planning_starts_one_starts_together() -> None:
    works = holding(*(work_of(name, gang="ring") for name in ("first", "second", "third")))
    works.put(work_of("other"))
    assert started(works) == {}
    release = ReleaseNow(works.held["second"], ReleaseReason.HELD_SHARE, "too much is held")
    found = works.with_mates(release)
    assert {each.work.name for each in found} == {"first", "second", "third"}
    assert {each.reason for each in found} == {ReleaseReason.HELD_SHARE}
    for each in found:
        works.sent(each, 0.0)
    assert (
        works.with_mates(ReleaseNow(works.held["first"], ReleaseReason.HELD_SHARE, "again")) == []
    )


def test_the_emergency_release_starts_all_and_its_end_holds_what_was_not_started() -> None:
    works = holding(work_of("one"), work_of("two"))
    assert started(works) == {}
    works.judge_all()
    found = works.judged(rules(is_emergency_release=True), NOW_S, 0.0)
    assert {each.reason for each in found} == {ReleaseReason.EMERGENCY}
    assert started(works, monotonic_s=1.0) == {}


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.SHADOW])
def test_a_policy_that_no_longer_enforces_starts_what_it_held(mode: Mode) -> None:
    found = holding(work_of()).judged(rules(GreenPolicy(mode=mode)), NOW_S, 0.0)
    assert [each.reason for each in found] == [ReleaseReason.POLICY]


@pytest.mark.parametrize("ahead_s", [0.0, HOUR_S, 24 * HOUR_S])
def test_a_webhook_whose_clock_is_fast_lengthens_no_deadline(ahead_s: float) -> None:
    works = holding(work_of(annotations=marks(NOW_S + ahead_s, deadline="6h")))
    assert started(works) == {}
    assert works.next_due_s() == LATEST_S


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_start_that_others_made_is_news_once(is_ours: bool) -> None:
    works = holding(work_of())
    if is_ours:
        works.sent(BY_US, 0.0)
    for _ in range(2):
        works.put(work_of(annotations=RELEASED, is_stopped=False))
    assert len(works.take_news(0.0).released) == (not is_ours)


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
@pytest.mark.parametrize(
    ("ours", "written", "reason"),
    [
        pytest.param(BY_US, "planned-start", ReleaseReason.PLANNED_START, id="by-us"),
        pytest.param(None, "releaser", ReleaseReason.RELEASER, id="by-the-releaser"),
        pytest.param(None, "", ReleaseReason.OTHERS, id="by-others"),
    ],
)
def test_the_end_of_a_planned_wait_is_news_whoever_made_it(
    kind: WorkKind, ours: ReleaseNow | None, written: str, reason: ReleaseReason
) -> None:
    works = holding(work_of("never planned", kind=kind), work_of(conditions=PLANNED, kind=kind))
    if ours:
        works.sent(ours, 0.0)
    said = {labels.RELEASE_REASON: written}
    for _ in range(2):
        works.put(work_of("never planned", said, kind=kind, is_stopped=False))
        works.put(work_of("train", said, kind=kind, is_stopped=False, conditions=PLANNED))
    works.drop("train")  # a pod that has a node
    over = [works.take_news(at_s).over for at_s in (0.0, RESENT_AFTER_S)]
    assert [[(each.work.name, each.reason) for each in told.values()] for told in over] == [
        [("train", reason)],
        [],
    ]


def test_the_end_of_a_wait_is_news_until_the_condition_tells_of_it() -> None:
    said = {labels.RELEASE_REASON: "releaser"}
    planned = work_of(annotations=said, is_stopped=False, conditions=PLANNED)
    works = holding(planned)
    over = []
    for at_s in (0.0, RESENT_AFTER_S - 0.01, RESENT_AFTER_S):
        over.append([each.reason for each in works.take_news(at_s).over.values()])
        works.put(planned)
    assert over == [[ReleaseReason.RELEASER], [], [ReleaseReason.RELEASER]]
    works.put(work_of(annotations=said, is_stopped=False, conditions=OVER))
    assert works.take_news(9 * RESENT_AFTER_S).over == {}
    works.put(planned)
    assert len(works.take_news(9 * RESENT_AFTER_S).over) == 1, "a plan that was late overwrote it"


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(work_of(annotations=RELEASED, is_stopped=False, conditions=PLANNED),
                     id="once-it-is-seen"),
        pytest.param(work_of(annotations=RELEASED, conditions=PLANNED), id="and-was-stopped-again"),
        pytest.param(work_of(annotations=RELEASED, is_stopped=False, conditions=[
                     *PLANNED, *DONE]), id="and-has-ended"),
    ],
)  # fmt: skip
def test_a_leader_that_was_not_there_tells_that_a_wait_is_over(after: Work) -> None:
    works = holding(after)
    assert len(works.take_news(0.0).over) == 1


def test_who_wrote_the_release_is_reported_as_its_reason_and_not_who_was_about_to() -> None:
    works = holding(work_of(conditions=PLANNED))
    works.sent(BY_US, 0.0)
    said = RELEASED | {labels.RELEASE_REASON: "releaser"}
    works.put(work_of(annotations=said, is_stopped=False, conditions=PLANNED))
    [over] = works.take_news(0.0).over.values()
    assert (over.reason, over.text) == (ReleaseReason.RELEASER, "")


def test_what_is_held_anew_is_not_reported_as_over() -> None:
    works = holding(work_of(is_stopped=False, conditions=PLANNED))
    works.put(work_of(conditions=PLANNED))
    assert works.take_news(0.0).over == {}


@pytest.mark.parametrize(
    "later",
    [
        pytest.param({"is_stopped": False}, id="and-runs"),
        pytest.param({"is_stopped": True}, id="and-its-user-suspends-it"),
        pytest.param(
            {"is_stopped": False, "conditions": DONE},
            id="and-is-complete",
        ),
    ],
)
def test_held_work_of_another_scheduler_is_started_once(later: dict[str, Any]) -> None:
    other = "the-name-before"
    works = holding(work_of(scheduler=other))
    assert started(works, LATEST_S) == {"train": ReleaseReason.LATEST_START}
    works.put(work_of(annotations=RELEASED, scheduler=other, is_stopped=False))
    works.put(work_of(annotations=RELEASED, scheduler=other, **later))
    assert started(works, LATEST_S, 2 * RESENT_AFTER_S) == {}
    assert len(works) == 0
    works.put(work_of(annotations=RELEASED, scheduler=other, conditions=DONE))
    assert works.known() == frozenset()


def test_a_start_by_others_is_reported_once_and_our_mark_until_it_is_off() -> None:
    works = holding(work_of())
    for _ in range(2):
        works.put(work_of(is_stopped=False))
    told = [works.take_news(at_s) for at_s in (0.0, RESENT_AFTER_S - 0.01, RESENT_AFTER_S)]
    assert [len(news.started) for news in told] == [1, 0, 0]
    assert [len(news.marked) for news in told] == [1, 0, 1]
    works.put(work_of(annotations=RELEASED, is_stopped=False))
    assert works.take_news(9 * RESENT_AFTER_S).marked == []


def test_a_pod_that_got_a_node_at_once_is_still_reported() -> None:
    works = holding(work_of(annotations={}, is_stopped=False, kind=WorkKind.POD))
    works.drop("train")
    assert list(works.take_news(0.0).arrived) == ["train"]


def test_what_is_gone_or_has_ended_is_forgotten() -> None:
    done = work_of("done", conditions=[{"type": "Complete", "status": "True"}])
    works = holding(work_of("done"), work_of("gone"))
    works.put(done)
    works.drop("gone")
    assert len(works) == 0
    assert works.judged(rules(), LATEST_S, 0.0) == []


def test_a_release_says_what_and_when() -> None:
    works = holding(work_of())
    assert started(works) == {}
    [release] = works.judged(rules(), LATEST_S, 0.0)
    assert isinstance(release, ReleaseNow)
    assert format_timestamp(round(LATEST_S)) in release.text and "deadline" in release.text


@pytest.mark.parametrize("how", ["gone", "leaving"])
@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
def test_the_deletion_of_held_work_is_news_once(kind: WorkKind, how: str) -> None:
    works = holding(work_of(kind=kind))
    if how == "leaving":
        works.put(replace(work_of(kind=kind), is_leaving=True))
    works.drop("train")
    works.drop("train")
    assert [each.name for each in works.take_news(0.0).deleted] == ["train"]
    assert works.take_news(0.0).deleted == []


def test_what_goes_after_its_start_was_not_deleted_while_held() -> None:
    works = holding(work_of(kind=WorkKind.POD))
    works.put(work_of(kind=WorkKind.POD, annotations={}, is_stopped=False))
    works.drop("train")
    works.put(replace(work_of("done"), is_finished=True))
    assert works.take_news(0.0).deleted == []


@pytest.mark.parametrize(
    ("work", "hours"),
    [
        pytest.param(work_of(annotations={}, is_stopped=False), 1.0, id="not-said"),
        pytest.param(
            work_of(annotations={labels.RUNTIME: "10m"}, is_stopped=False), 1 / 6, id="said"
        ),
        pytest.param(
            work_of(
                annotations={labels.RUNTIME: "3h", labels.WORK_DONE: "2h",
                             labels.PAUSED_AT: format_timestamp(NOW_S)},
                is_stopped=False,
            ),
            1.0, id="resumed",
        ),
        pytest.param(work_of(annotations={labels.RUNTIME: "10m"}, is_stopped=False,
                             scheduler="another"), None, id="not-opted-in"),
    ],
)  # fmt: skip
def test_what_runs_is_expected_to_for_as_long_as_it_was_planned(
    work: Work, hours: float | None
) -> None:
    found = holding(work).expected_s("train", rules())
    assert found == (None if hours is None else pytest.approx(hours * HOUR_S))


def test_what_runs_on_a_slow_node_is_expected_to_take_longer() -> None:
    work = work_of(annotations={labels.RUNTIME: "10m"}, is_stopped=False)
    assert holding(work).expected_s("train", rules(), 0.5) == 1200.0
