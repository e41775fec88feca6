"""A full cluster: work waits until there is room, and what was released keeps the room it got."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.judging import MayWait, ReleaseNow, judge
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.held_works import RESENT_AFTER_S, HeldWorks
from greensched_operator.planning.outlooks import slot_begin
from greensched_operator.planning.plan_words import late_chance, why_held
from greensched_operator.planning.queued_works import QueuedWorks
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts, requeued, room_check
from greensched_policies.planning.planning import Running, StartReason
from tests.operator.annotated_work import ENFORCING, HOUR_S, NOW_S, marks, rules, work_of
from tests.operator.situations import situation_of

BEGIN_S = slot_begin(NOW_S)
FULL_FOR_2_H = Running(0, BEGIN_S + 2 * HOUR_S, 8.0)


def situation(*running: Running, grams: list[float] | None = None) -> Situation:
    """Return a cluster of one zone with eight cores, whose grid gets ever dirtier."""
    carbon = grams or [100.0 + slot for slot in range(96)]
    found = situation_of(NOW_S, carbon, np.nan, Zone("A", 8.0, 5.0), jitter_s=0.0)
    return replace(found, running=running)


def waiting(
    name: str = "train", gang: str = "", *, waits_for_room: bool = True, **said: str
) -> MayWait:
    asked = {"deadline": "8h", "runtime": "30m"} | said
    work = work_of(name, marks(NOW_S, NOW_S + 4 * HOUR_S, **asked), gang=gang)
    found = judge(work, rules(replace(ENFORCING, waits_for_room=waits_for_room)), NOW_S)
    assert isinstance(found, MayWait)
    return found


def planned(one: MayWait, here: Situation) -> Planned:
    [found], _ = plan_starts([one], here)
    return found


def test_work_without_room_now_is_held_until_there_is_room_though_that_saves_nothing() -> None:
    found = planned(waiting(), situation(FULL_FOR_2_H))
    assert found.start_s == BEGIN_S + 2 * HOUR_S
    assert found.chosen.why is StartReason.NO_ROOM
    assert why_held(found).startswith("running and planned work leave no room before")


@pytest.mark.parametrize(("one", "running"), [
    pytest.param(waiting(waits_for_room=False), FULL_FOR_2_H, id="its-policy-does-not-wait"),
    pytest.param(waiting(), replace(FULL_FOR_2_H, until_s=np.inf), id="there-never-is-room"),
    pytest.param(waiting(), replace(FULL_FOR_2_H, cpu_cores=6.0), id="there-is-room"),
    pytest.param(waiting(deadline="2h"), FULL_FOR_2_H, id="room-comes-after-its-latest-start"),
])  # fmt: skip
def test_else_it_starts_now(one: MayWait, running: Running) -> None:
    assert planned(one, situation(running)).is_now


def test_a_start_that_has_come_is_put_off_while_others_have_its_room() -> None:
    clean_at_once = [500.0] * 4 + [100.0] * 92
    found = planned(waiting(), situation(grams=clean_at_once))
    has_room = room_check(replace(situation(), earlier_plans=(found,)))
    is_full = room_check(replace(situation(FULL_FOR_2_H), earlier_plans=(found,)))
    assert (has_room(found), is_full(found)) == (True, False)
    careless = replace(found, waiting=waiting(waits_for_room=False))
    assert is_full(careless)
    assert is_full(replace(found, kept_zone="gone"))


@pytest.mark.parametrize(("gang", "have_room"), [
    pytest.param("", [False, True, True, True, True, True], id="each-by-itself"),
    pytest.param("ring", [False] * 6, id="a-gang-together"),
])  # fmt: skip
def test_starts_that_have_come_are_put_off_only_as_far_as_others_have_their_room(
    gang: str, have_room: list[bool]
) -> None:
    clean_later = situation(grams=[500.0] * 4 + [100.0] * 92)
    asked = [waiting(f"job-{number}", gang) for number in range(6)]
    found, _ = plan_starts(asked, clean_later)
    (at_s,) = {one.start_s for one in found}
    two_less = replace(clean_later, running=(Running(0, at_s + 4 * HOUR_S, 2.0),))
    has_room = room_check(replace(two_less, now_s=at_s, earlier_plans=tuple(found)))
    assert [has_room(one) for one in found] == have_room


@pytest.mark.parametrize("gpus", [
    pytest.param([0.0, 4.0], id="its-launcher-is-looked-at-first"),
    pytest.param([4.0, 0.0], id="its-launcher-is-looked-at-last"),
])  # fmt: skip
def test_a_gang_is_put_off_as_a_whole_where_gpus_lack_that_not_all_of_it_need(
    gpus: list[float],
) -> None:
    now = situation(grams=[500.0] * 4 + [100.0] * 92)
    now = replace(now, zones=(replace(now.zones[0], gpus=4.0),))
    asked = [waiting(f"job-{place}", "ring") for place in range(2)]
    found, _ = plan_starts(
        [
            replace(one, work=replace(one.work, gpus=many))
            for one, many in zip(asked, gpus, strict=True)
        ],
        now,
    )
    at_s = found[0].start_s
    one_less = replace(now, running=(Running(0, at_s + 4 * HOUR_S, 1.0, 1.0),))
    has_room = room_check(replace(one_less, now_s=at_s, earlier_plans=tuple(found)))
    assert [has_room(one) for one in found] == [False, False]


def works_with(one: Planned) -> HeldWorks:
    works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    works.put(one.waiting.work)
    works.judged(rules(ENFORCING), NOW_S, 0.0)
    works.plan(replace(one, waiting=works.waiting()[0]))
    return works


def test_what_has_no_room_loses_its_plan_but_not_its_latest_start() -> None:
    one = planned(waiting(), situation(FULL_FOR_2_H))
    works, latest_s = works_with(one), one.waiting.terms.latest_start_s
    assert works.judged(rules(ENFORCING), one.start_s, 1.0, lambda _: False) == []
    assert [each.work.name for each in works.unplanned()] == ["train"]
    [found] = works.judged(rules(ENFORCING), latest_s, 2.0, lambda _: False)
    assert found.reason is ReleaseReason.LATEST_START


def test_what_starts_with_its_gang_at_its_latest_keeps_the_room_of_its_plan() -> None:
    urgent, other = waiting("urgent", "ring"), waiting("other", "ring", deadline="9h")
    works = HeldWorks(frozenset({labels.SCHEDULER_NAME}))
    for each in (urgent, other):
        works.put(each.work)
    works.judged(rules(ENFORCING), NOW_S, 0.0)
    found, _ = plan_starts(works.waiting(), situation(FULL_FOR_2_H))
    for one in found:
        works.plan(one)
    latest_s = urgent.terms.latest_start_s
    sent = works.judged(rules(ENFORCING), latest_s, 1.0, lambda _: False)
    assert {each.work.name for each in sent} == {"urgent", "other"}
    assert works.planned.keys() == {"urgent", "other"}


def released(one: Planned) -> tuple[HeldWorks, Work]:
    """Return works in which planned work was released, and the work as the watch then shows it."""
    works, work = works_with(one), one.waiting.work
    [release] = works.judged(rules(ENFORCING), one.start_s, 1.0)
    works.sent(release, 1.0)
    written = {labels.RELEASED_AT: format_timestamp(round(one.start_s))}
    started = replace(work, is_stopped=False, annotations={**work.annotations, **written})
    works.put(started)
    return works, started


def test_released_work_keeps_its_room_until_it_has_a_pod_on_a_node() -> None:
    works, work = released(planned(waiting(), situation(FULL_FOR_2_H)))
    assert len(works.queue.without(frozenset())) == 1
    assert works.queue.without({work.uid}) == ()
    assert len(works.queue) == 0


def test_work_over_the_held_share_keeps_no_room_of_an_earlier_plan() -> None:
    one = planned(waiting(), situation(FULL_FOR_2_H))
    works, work = works_with(one), one.waiting.work
    works.sent(ReleaseNow(work, ReleaseReason.HELD_SHARE, "too much is held"), 1.0)
    assert works.planned == {}
    works.put(replace(work, is_stopped=False))
    assert len(works.queue) == 0


def test_work_over_the_held_share_that_nobody_started_is_planned_again() -> None:
    one = planned(waiting(), situation(FULL_FOR_2_H))
    works, release = works_with(one), ReleaseNow(one.waiting.work, ReleaseReason.HELD_SHARE, "")
    works.sent(release, 1.0)
    assert works.judged(rules(ENFORCING), NOW_S, 1.0 + RESENT_AFTER_S) == []
    assert works.unplanned() == []
    assert works.judged(rules(ENFORCING), NOW_S, 1.1 + RESENT_AFTER_S) == []
    assert [each.work.name for each in works.unplanned()] == ["train"]


@pytest.mark.parametrize("change", [
    pytest.param({"is_stopped": True}, id="its-user-suspends-it"),
    pytest.param({"is_finished": True}, id="it-has-ended"),
    pytest.param({"is_leaving": True}, id="it-is-deleted"),
])  # fmt: skip
def test_queued_work_that_no_longer_wants_a_node_gives_its_room_back(
    change: dict[str, Any],
) -> None:
    works, work = released(planned(waiting(), situation(FULL_FOR_2_H)))
    works.put(replace(work, **change))
    assert len(works.queue) == 0


def test_the_pods_of_a_kueue_workload_are_those_of_its_job() -> None:
    one = planned(waiting(), situation(FULL_FOR_2_H))
    job = replace(one.waiting.work, uid="its-job")
    queue = QueuedWorks()
    queue.put(replace(one, waiting=replace(one.waiting, work=replace(one.waiting.work, job=job))))
    assert len(queue.without({one.waiting.work.uid})) == 1
    assert queue.without({"its-job"}) == ()


def test_released_work_keeps_the_room_of_its_next_run_segment_only() -> None:
    one, queue = planned(waiting(), situation(FULL_FOR_2_H)), QueuedWorks()
    queue.put(
        replace(
            one, run_segments=((BEGIN_S, BEGIN_S + 60.0), (BEGIN_S + HOUR_S, BEGIN_S + 2 * HOUR_S))
        )
    )
    assert [each.run_segments for each in queue.without(())] == [()]


def test_work_that_is_released_again_queues_behind_what_was_released_meanwhile() -> None:
    queue, plans = QueuedWorks(), [planned(waiting(name), situation()) for name in ("a", "b")]
    for one in plans:
        queue.put(one)
    queue.drop(plans[0].waiting.work.uid)  # it ran, and is paused
    queue.put(plans[0])
    assert [one.waiting.work.name for one in queue.without(())] == ["b", "a"]


def test_queued_work_is_planned_anew_in_the_order_of_its_releases() -> None:
    plans = tuple(planned(waiting(f"job-{place}"), situation()) for place in range(16))
    sized = [replace(one, waiting=replace(one.waiting, work=replace(one.waiting.work,
             cpu_cores=4.0))) for one in plans]  # fmt: skip
    here = replace(situation(FULL_FOR_2_H), queued=tuple(sized))
    expected_s = [one.chosen.expected_s - BEGIN_S for one in requeued(here)]
    assert expected_s[0] == 2 * HOUR_S
    assert expected_s == sorted(expected_s)
    assert expected_s[-1] > expected_s[0] + 4 * HOUR_S


def test_others_do_not_get_the_room_of_queued_work() -> None:
    first = planned(waiting("first", runtime="2h"), situation())
    big = replace(first.waiting, work=replace(first.waiting.work, cpu_cores=7.0))
    queued = replace(first, waiting=big)
    assert planned(waiting(), situation()).is_now
    assert planned(waiting(), replace(situation(), queued=(queued,))).start_s > NOW_S


def test_the_chance_to_be_late_grows_towards_the_latest_start() -> None:
    clean_later = [[500.0] * slots + [100.0] * (96 - slots) for slots in (4, 20, 96)]
    chances = [late_chance(planned(waiting(), situation(grams=each))) for each in clean_later]
    assert chances[0] is not None and chances[1] is not None
    assert chances[0] < 0.0001 and chances[0] <= chances[1] <= 0.005
    one = planned(waiting(), situation())
    at_latest = replace(one, start_s=one.waiting.terms.latest_start_s)
    assert late_chance(at_latest) == pytest.approx(0.005, rel=0.02)
    undated = replace(one.waiting.terms, deadline_s=None)
    assert late_chance(replace(one, waiting=replace(one.waiting, terms=undated))) is None
