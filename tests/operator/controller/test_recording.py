"""What the ledger is told of ends: of Jobs and bare pods, and of shadow as shadow."""

from dataclasses import replace

import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.ledger_records import DELETED_WHILE_HELD, Amounts, LedgerRecord, What
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.controller.recording import Recorder
from greensched_operator.holding.judging import MayWait, ReleaseNow, judge
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import WorkKind
from greensched_operator.planning.budgets import Budgets
from greensched_operator.planning.situation import Planned
from greensched_operator.planning.start_planning import plan_starts
from tests.operator.annotated_work import ENFORCING, NOW_S, marks, rules, work_of
from tests.operator.planning.test_start_planning import situation


class Scene:
    """A recorder with a ledger in memory, and pods that run."""

    def __init__(self) -> None:
        self.records: list[LedgerRecord] = []
        self.ended: list[LedgerRecord] = []
        self.running: set[str] = set()
        self.recorder = Recorder(
            self.records.append, Budgets(), ManualClock(NOW_S), "EUR", self.ended.append,
            self.running,
        )  # fmt: skip

    def plan(self, kind: WorkKind, *, is_shadow: bool = False) -> Planned:
        """Plan one workload called train."""
        work = work_of("train", marks(deadline="8h", runtime="30m"), kind=kind)
        found = judge(work, rules(ENFORCING), NOW_S)
        assert isinstance(found, MayWait)
        [planned], _ = plan_starts([found], situation())
        self.recorder.planned(planned, situation(), is_shadow=is_shadow)
        return planned

    def kinds(self) -> list[What]:
        """Return what was told, in order."""
        return [record.what for record in self.records]


def test_the_end_of_a_bare_pod_is_reported_with_its_estimates_and_its_runtime() -> None:
    scene = Scene()
    planned = scene.plan(WorkKind.POD)
    scene.recorder.released(ReleaseNow(planned.waiting.work, ReleaseReason.PLANNED_START, ""))
    scene.recorder.pod_ended("train", NOW_S, NOW_S + 60.0)
    scene.recorder.pod_ended("train", NOW_S, NOW_S + 60.0)
    assert scene.kinds() == [What.HELD, What.PLANNED, What.RELEASED, What.ENDED]
    ended = scene.records[-1]
    assert (ended.measured_runtime_s, ended.planned) == (60.0, scene.records[0].planned)
    assert scene.ended == [ended], "whoever measures is told"


def test_a_pod_that_was_never_ours_to_plan_is_not_reported() -> None:
    scene = Scene()
    scene.recorder.pod_ended("another", NOW_S, NOW_S + 60.0)
    assert scene.records == scene.ended == []


@pytest.mark.parametrize("is_shadow", [True, False])
def test_the_end_of_what_shadow_watched_is_shadows(is_shadow: bool) -> None:
    scene = Scene()
    work = scene.plan(WorkKind.JOB, is_shadow=is_shadow).waiting.work
    scene.recorder.ended(work)
    told = [What.PLANNED, What.ENDED] if is_shadow else [What.HELD, What.PLANNED, What.ENDED]
    assert scene.kinds() == told
    assert {record.is_shadow for record in scene.records} == {is_shadow}


def test_an_end_that_comes_with_a_planning_of_all_is_not_forgotten() -> None:
    scene = Scene()
    work = scene.plan(WorkKind.JOB).waiting.work
    scene.recorder.keep_only(frozenset())
    scene.recorder.ended(work)
    assert scene.kinds() == [What.HELD, What.PLANNED, What.ENDED]


@pytest.mark.parametrize(
    ("held", "running", "is_told"),
    [
        pytest.param({"train"}, set(), True, id="held"),
        pytest.param(set(), {"train"}, True, id="running"),
        pytest.param(set(), set(), False, id="gone"),
    ],
)
def test_what_is_neither_held_nor_running_is_forgotten(
    held: set[str], running: set[str], is_told: bool
) -> None:
    scene = Scene()
    work = scene.plan(WorkKind.POD).waiting.work
    scene.running |= running
    for _ in range(3):
        scene.recorder.keep_only(held)
    scene.recorder.ended(work)
    assert (What.ENDED in scene.kinds()) == is_told


def test_a_pod_between_two_watches_is_not_gone() -> None:
    scene = Scene()
    scene.plan(WorkKind.POD)
    scene.recorder.keep_only(frozenset())
    scene.running.add("train")
    scene.recorder.keep_only(frozenset())
    scene.running.clear()
    scene.recorder.keep_only(frozenset())
    scene.recorder.pod_ended("train", NOW_S, NOW_S + 60.0)
    assert scene.kinds() == [What.HELD, What.PLANNED, What.ENDED]


@pytest.mark.parametrize("is_paused_by_us", [True, False])
def test_of_a_paused_job_the_energy_is_asked_only_if_all_its_runs_were_seen(
    is_paused_by_us: bool,
) -> None:
    scene = Scene()
    planned = scene.plan(WorkKind.JOB)
    if is_paused_by_us:
        scene.recorder.paused(planned, situation())
    paused = {labels.PAUSED_AT: format_timestamp(NOW_S)}
    work = planned.waiting.work
    waiting = replace(
        planned.waiting, work=replace(work, annotations={**work.annotations, **paused})
    )
    assert waiting.work.is_paused
    scene.recorder.planned(planned.on(waiting), situation())
    scene.recorder.ended(work)
    assert scene.kinds()[-1] is What.ENDED
    assert len(scene.ended) == is_paused_by_us


def test_a_leader_knows_only_the_plans_that_it_reported() -> None:
    scene = Scene()
    work = Scene().plan(WorkKind.JOB).waiting.work
    assert not scene.recorder.knows(work)
    scene.plan(WorkKind.JOB)
    assert scene.recorder.knows(work)


@pytest.mark.parametrize("was_held", [True, False])
def test_a_leader_tells_of_the_end_of_what_one_before_it_started(was_held: bool) -> None:
    scene, work = Scene(), Scene().plan(WorkKind.JOB).waiting.work
    said = {labels.RELEASED_AT: format_timestamp(NOW_S)} if was_held else {}
    scene.recorder.ended(replace(work, annotations=said, started_s=NOW_S, ended_s=NOW_S + 60.0))
    assert scene.kinds() == [What.ENDED] * was_held
    assert [each.measured_runtime_s for each in scene.records] == [60.0] * was_held
    assert scene.ended == [], "pods that ended before this leader began were not seen"


@pytest.mark.parametrize("reason", ReleaseReason)
def test_what_starts_before_its_time_is_billed_as_if_it_had_not_waited(
    reason: ReleaseReason,
) -> None:
    scene = Scene()
    planned = scene.plan(WorkKind.JOB)
    scene.recorder.released(ReleaseNow(planned.waiting.work, reason, ""))
    told = scene.records[-1]
    assert planned.chosen.saving > 0.0 and told.run_now.carbon_g is not None
    is_as_planned = reason in (ReleaseReason.PLANNED_START, ReleaseReason.NOW_IS_BEST)
    assert (told.planned != told.run_now) == is_as_planned


def test_starting_at_once_is_estimated_when_work_comes_and_not_anew_with_each_plan() -> None:
    scene = Scene()
    planned = scene.plan(WorkKind.JOB)
    dirtier = planned.chosen.run_now._replace(carbon_g_per_kwh=9e9)
    later = replace(planned, chosen=planned.chosen._replace(run_now=dirtier))
    scene.recorder.planned(later, situation())
    assert {record.run_now for record in scene.records} == {scene.records[0].run_now}


def test_a_start_by_others_is_reported_once_and_is_news() -> None:
    scene = Scene()
    said = marks() | {
        labels.RELEASED_AT: format_timestamp(NOW_S - 60),
        labels.RELEASE_REASON: "run-now",
    }
    work = replace(scene.plan(WorkKind.JOB).waiting.work, annotations=said)
    assert [scene.recorder.released_by_others(work) for _ in range(2)] == [True, False]
    assert scene.kinds() == [What.HELD, What.PLANNED, What.RELEASED]
    assert scene.records[-1].reason == "run-now"


def test_a_start_that_a_new_leader_finds_is_reported_with_its_own_time() -> None:
    scene, work = Scene(), Scene().plan(WorkKind.JOB).waiting.work
    said = {
        labels.RELEASED_AT: format_timestamp(NOW_S - 60),
        labels.RELEASE_REASON: "because",
    }
    assert not scene.recorder.released_by_others(replace(work, annotations=said))
    [told] = scene.records
    assert (told.what, told.at, told.reason) == (What.RELEASED, NOW_S - 60, ReleaseReason.OTHERS)


def test_holding_is_reported_once_however_often_it_is_planned() -> None:
    scene = Scene()
    for _ in range(2):
        scene.plan(WorkKind.JOB)
    assert scene.kinds() == [What.HELD, What.PLANNED, What.PLANNED]


def test_of_what_was_paused_the_last_part_is_not_reported_as_the_runtime() -> None:
    scene = Scene()
    work = scene.plan(WorkKind.JOB).waiting.work
    times = replace(work, started_s=NOW_S, ended_s=NOW_S + 60.0)
    scene.recorder.ended(
        replace(times, annotations=dict(work.annotations) | {labels.PAUSED_AT: "x"})
    )
    assert scene.records[-1].measured_runtime_s is None


def test_the_deletion_of_held_work_is_reported_as_its_end_and_takes_nothing() -> None:
    scene = Scene()
    work = scene.plan(WorkKind.JOB).waiting.work
    scene.recorder.deleted(work)
    scene.recorder.deleted(replace(work, uid="never-told-of"))
    assert scene.kinds() == [What.HELD, What.PLANNED, What.ENDED]
    ended = scene.records[-1]
    assert (ended.reason, ended.planned) == (DELETED_WHILE_HELD, Amounts())
    assert scene.ended == [], "there is nothing to measure"
    assert not scene.recorder.knows(work)


def test_a_leader_tells_of_the_deletion_of_what_one_before_it_planned() -> None:
    scene, work = Scene(), Scene().plan(WorkKind.JOB).waiting.work
    planned = {**work.annotations, labels.PLANNED_START: format_timestamp(NOW_S)}
    scene.recorder.deleted(replace(work, annotations=planned))
    assert [each.reason for each in scene.records] == [DELETED_WHILE_HELD]


@pytest.mark.parametrize("how", ["released", "on-a-node", "paused"])
def test_what_ran_was_not_deleted_while_it_was_held(how: str) -> None:
    scene = Scene()
    work = scene.plan(WorkKind.POD).waiting.work
    if how == "released":
        scene.recorder.released(ReleaseNow(work, ReleaseReason.PLANNED_START, ""))
    elif how == "on-a-node":
        scene.running.add("train")
    else:
        paused = {labels.PAUSED_AT: format_timestamp(NOW_S)}
        work = replace(work, annotations={**work.annotations, **paused})
    scene.recorder.deleted(work)
    assert What.ENDED not in scene.kinds()
