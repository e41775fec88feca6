"""Which running Jobs are suspended, and until when: what holds whatever the grid."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_core.custom_resources.policy_lookup import PolicyOrigin
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.controller.pauser import RunTimes
from greensched_operator.holding.holding import margin_s
from greensched_operator.holding.judging import HoldRules, MayWait, judge
from greensched_operator.holding.pause_terms import JobProgress, progress_of
from greensched_operator.objects.green_policy import (
    BUILT_IN,
    GreenPolicy,
    Mode,
    PauseLimits,
    Resolved,
    parse,
)
from greensched_operator.objects.job_power_profile import JobPowerProfile, parse_job_power_profile
from greensched_operator.objects.workloads import Work, convert_job
from greensched_operator.planning.cluster_state import RunningPod, Zone
from greensched_operator.planning.pausing import JobRunSegment, Pause, choose_pauses
from greensched_operator.planning.situation import Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_policies.planning.outlook import SLOT_S
from tests.operator.situations import situation_of

NOON_S = 1_700_006_400.0  # the begin of a slot, in seconds since the epoch
HOUR_S = 3600.0
DIRTY_THEN_CLEAN = [600.0] * 4 + [50.0] * 40
FLAT = [300.0] * 44
MARGIN_S = margin_s(BUILT_IN, 2 * HOUR_S, BUILT_IN.runtime_error)
ASKED = {"deadline": "8h", "runtime": "2h", "checkpointable": "true"}


def job(
    asked: dict[str, str] = ASKED,
    *,
    created_s: float = NOON_S - HOUR_S,
    meta: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    written: dict[str, str] | None = None,
) -> Work:
    """Return a Job that runs."""
    said = {f"{labels.GROUP}/{name}": value for name, value in asked.items()} | (written or {})
    pods = {"schedulerName": "greensched", "terminationGracePeriodSeconds": 0,
            "containers": [{"resources": {"requests": {"cpu": "1"}}}]}  # fmt: skip
    return convert_job({
        "metadata": {"name": "train", "namespace": "n", "uid": "u", "annotations": said,
                     "creationTimestamp": format_timestamp(created_s), **(meta or {})},
        "spec": {"template": {"spec": pods}, **(spec or {})},
        "status": {"ready": 1},
    })  # fmt: skip


def rules(resume_s: float = 60.0, **policy: Any) -> HoldRules:
    followed = GreenPolicy(name="p", **({"mode": Mode.ENFORCE} | policy))
    return HoldRules(
        lambda _, __: Resolved(followed, PolicyOrigin.CLUSTER),
        lambda _, __: None,
        default_resume_s=resume_s,
    )


def situation(grams: Sequence[float], now_s: float = NOON_S, cores: float = 10.0) -> Situation:
    return situation_of(now_s, grams, 50.0, Zone("Z", cores, 5.0))


def decided(
    work: Work, grams: Sequence[float], ran_s: float = HOUR_S, now_s: float = NOON_S,
    held_cores: float = 0.0, **policy: Any
) -> Pause | None:  # fmt: skip
    run_segment = JobRunSegment(work, ran_s, "Z", (RunningPod("n", 1.0, now_s + HOUR_S, "u"),))
    found = choose_pauses([run_segment], rules(**policy), situation(grams, now_s), held_cores)
    return found[0] if found else None


def test_a_job_in_a_dirty_hour_waits_for_the_clean_one() -> None:
    pause = decided(job(), DIRTY_THEN_CLEAN)
    assert pause is not None
    assert pause.planned.start_s == NOON_S + HOUR_S
    assert pause.progress == JobProgress(done_s=HOUR_S, pauses=1, paused_at_s=NOON_S)
    # Deadline at 19:00; an hour is left, a minute to start up, and the margin.
    latest_s = NOON_S + 7 * HOUR_S - HOUR_S - 60.0 - MARGIN_S
    assert pause.planned.waiting.terms.latest_start_s == latest_s


@pytest.mark.parametrize(
    ("begin", "end", "is_paused"),
    [
        pytest.param("01:00", "03:00", False, id="when-it-would-resume"),
        pytest.param("00:00", "01:00", True, id="until-then"),
        pytest.param("02:00", "03:00", True, id="after-that"),
    ],
)
def test_no_job_is_paused_until_quiet_hours(begin: str, end: str, is_paused: bool) -> None:
    """It would be resumed after them, at a time that nobody compared with going on."""
    window = {"from": begin, "to": end, "timeZone": "UTC"}
    quiet = parse({"metadata": {"name": "p"}, "spec": {"quietHours": [window]}}).quiet_hours
    assert NOON_S % 86_400.0 == 0.0, "midnight by UTC"
    pause = decided(job(), DIRTY_THEN_CLEAN, quiet_hours=quiet)
    assert (pause is not None) == is_paused


def with_checkpoints(every: str) -> JobPowerProfile:
    spec = {
        "work": [{"duration": "2h", "watts": 300}],
        "resume": [{"duration": "1m", "watts": 300}],
        "checkpoints": {"every": every},
    }
    found = parse_job_power_profile(
        {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    ).profile
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("every", "saved_s"),
    [
        pytest.param("50m", 3000.0, id="ten-minutes-are-repeated"),
        pytest.param("90m", 0.0, id="all-is-repeated"),
    ],
)
def test_a_pause_keeps_what_the_last_checkpoint_saved(every: str, saved_s: float) -> None:
    known = replace(rules(), profile=lambda *_: with_checkpoints(every))
    run_segment = JobRunSegment(job(), HOUR_S, "Z", (RunningPod("n", 1.0, NOON_S + HOUR_S, "u"),))
    [pause] = choose_pauses([run_segment], known, situation(DIRTY_THEN_CLEAN), 0.0)
    terms = pause.planned.waiting.terms
    assert pause.progress.done_s == saved_s
    assert terms.runtime_s == 2 * HOUR_S - saved_s + 60.0
    assert terms.pod_power_w == 300.0


def test_a_pause_that_repeats_much_for_little_is_not_made() -> None:
    """Two hours at 320 g/kWh instead of one more at 400."""
    known = replace(rules(), profile=lambda *_: with_checkpoints("90m"))
    run_segment = JobRunSegment(job(), HOUR_S, "Z", (RunningPod("n", 1.0, NOON_S + HOUR_S, "u"),))
    slightly_cleaner = situation([400.0] * 4 + [320.0] * 40)
    assert choose_pauses([run_segment], known, slightly_cleaner, 0.0) == []
    assert choose_pauses([run_segment], rules(), slightly_cleaner, 0.0) != []


OWNER = {"kind": "JobSet", "name": "s", "uid": "s", "controller": True}


@pytest.mark.parametrize("work", [
    pytest.param(job({**ASKED, "checkpointable": "false"}), id="not-checkpointable"),
    pytest.param(job({**ASKED, "run-now": "true"}), id="run-now"),
    pytest.param(job({**ASKED, "gang": "ranks"}), id="gang"),
    pytest.param(job({"max-delay": "8h", "checkpointable": "true"}), id="no-deadline"),
    pytest.param(job({**ASKED, "runtime": "soon"}), id="typo"),
    pytest.param(job({**ASKED, "deadline": "2h20m"}), id="no-slack"),
    pytest.param(job(meta={"labels": {"kueue.x-k8s.io/queue-name": "q"}}), id="kueue"),
    pytest.param(job(meta={"ownerReferences": [OWNER]}), id="of-another-controller"),
    pytest.param(job(spec={"managedBy": "example.org/other"}), id="managed-by-another"),
    pytest.param(job(written={labels.RELEASE_REASON: "started-by-others"}), id="resumed-by-hand"),
])  # fmt: skip
def test_a_job_is_never_suspended_that(work: Work) -> None:
    assert decided(work, DIRTY_THEN_CLEAN) is None


@pytest.mark.parametrize(("changes", "is_paused"), [
    pytest.param({}, True, id="as-it-is"),
    pytest.param({"mode": Mode.SHADOW}, False, id="shadow"),
    pytest.param({"mode": Mode.OFF}, False, id="off"),
    pytest.param({"pause": PauseLimits(HOUR_S, 0.0)}, True, id="has-run-for-long-enough"),
    pytest.param({"pause": PauseLimits(HOUR_S + 1.0, 0.0)}, False, id="has-not"),
    pytest.param({"pause": PauseLimits(0.0, 4 * HOUR_S)}, True, id="a-long-pause-fits"),
    pytest.param({"pause": PauseLimits(0.0, 6 * HOUR_S)}, False, id="a-longer-one-does-not"),
    pytest.param({"longest_hold_s": 1800.0}, False, id="held-for-longer-than-allowed"),
    pytest.param({"max_held_share": 0.05}, False, id="more-held-than-allowed"),
    pytest.param({"least_saving": 0.99}, False, id="saves-too-little"),
    pytest.param({"resume_s": 6 * HOUR_S}, False, id="takes-too-long-to-start-up"),
])  # fmt: skip
def test_the_policy_decides_whether_it_is(changes: dict[str, Any], is_paused: bool) -> None:
    assert (decided(job(), DIRTY_THEN_CLEAN, **changes) is not None) == is_paused


def test_in_an_emergency_nothing_is_suspended() -> None:
    run_segment, normal = JobRunSegment(job(), HOUR_S, "Z"), rules()
    emergency = HoldRules(normal.policy_for, normal.cron_job, is_emergency_release=True)
    assert len(choose_pauses([run_segment], normal, situation(DIRTY_THEN_CLEAN), 0.0)) == 1
    assert choose_pauses([run_segment], emergency, situation(DIRTY_THEN_CLEAN), 0.0) == []


def test_what_a_resumed_job_starts_up_is_no_work_done() -> None:
    written = JobProgress(done_s=600.0, pauses=1, paused_at_s=NOON_S - 2 * HOUR_S).annotations()
    pause = decided(job(written=written), DIRTY_THEN_CLEAN, ran_s=1800.0)
    assert pause is not None
    assert pause.progress == JobProgress(600.0 + 1800.0 - 60.0, 2, NOON_S)


def test_progress_is_read_as_it_was_written_and_no_work_is_made_up() -> None:
    progress = JobProgress(done_s=5432.0, pauses=3, paused_at_s=NOON_S + 0.25)
    assert progress_of(job(written=progress.annotations())) == progress
    spoilt = {labels.PAUSED_AT: "then", labels.WORK_DONE: "much", labels.PAUSES: "-1"}
    assert progress_of(job(written=spoilt)) == JobProgress(0.0, 1, 0.0)
    assert progress_of(job()) == JobProgress()


hours = st.lists(st.floats(10.0, 900.0), min_size=20, max_size=44)
offsets = st.floats(0.0, SLOT_S - 1.0)
limits = st.builds(PauseLimits, st.floats(0.0, 2 * HOUR_S), st.floats(0.0, 2 * HOUR_S))


@given(hours, offsets, limits, st.floats(0.0, 2 * HOUR_S), st.floats(120.0, 480.0),
       st.sampled_from([0.0, 60.0, 1500.0]))  # fmt: skip
def test_no_pause_is_too_short_too_early_too_long_or_for_nothing(
    grams: list[float], offset_s: float, pause: PauseLimits, ran_s: float, due_min: float,
    resume_s: float,
) -> None:  # fmt: skip
    now_s = NOON_S + offset_s
    work = job({**ASKED, "deadline": f"{due_min:.0f}m"})
    found = decided(work, grams, ran_s=ran_s, now_s=now_s, pause=pause, resume_s=resume_s)
    if found is None:
        return
    planned, terms = found.planned, found.planned.waiting.terms
    left_s = 2 * HOUR_S - ran_s
    assert ran_s >= pause.minimum_run_s
    assert planned.start_s - now_s >= pause.minimum_pause_s
    assert planned.start_s <= terms.latest_start_s
    deadline_s = NOON_S - HOUR_S + round(due_min) * 60.0
    assert terms.latest_start_s + resume_s + left_s + MARGIN_S <= deadline_s + 1e-6
    assert planned.chosen.saving >= 0.02
    assert planned.chosen.run.runtime_s >= left_s + resume_s - 1.0


@given(offsets, st.floats(10.0, 900.0), st.floats(0.0, 1.9 * HOUR_S))
def test_on_a_flat_grid_nothing_is_suspended(offset_s: float, grams: float, ran_s: float) -> None:
    allowed = PauseLimits(0.0, 0.0)
    assert decided(job(), [grams] * 44, ran_s=ran_s, now_s=NOON_S + offset_s, pause=allowed) is None


@given(hours, offsets)
def test_who_was_suspended_stays_so_for_the_minimum(grams: list[float], offset_s: float) -> None:
    """It is planned anew as what waits, and may start earlier than it was suspended for."""
    now_s = NOON_S + offset_s
    found = decided(job(), grams, now_s=now_s)
    if found is None:
        return
    start = format_timestamp(round(found.planned.start_s))
    until = format_timestamp(int(found.planned.waiting.terms.latest_start_s))
    written = found.progress.annotations() | {
        labels.PLANNED_START: start, labels.LATEST_START: until}  # fmt: skip
    waiting = judge(job(written=written, spec={"suspend": True}), rules(), now_s)
    assert isinstance(waiting, MayWait)
    (planned,), _ = plan_starts([waiting], situation(grams, now_s))
    assert planned.start_s >= min(now_s + 900.0, waiting.terms.latest_start_s) - 0.001


@pytest.mark.parametrize(("looks", "ran_s"), [
    pytest.param([(0.0, True)], 0.0, id="just-seen"),
    pytest.param([(0.0, True), (60.0, True)], 60.0, id="since-it-was-seen"),
    pytest.param([(0.0, False), (60.0, True), (90.0, True)], 30.0, id="pods-that-waited"),
    pytest.param([(0.0, True), (9.0, False), (60.0, True), (70.0, True)], 19.0, id="a-pod-failed"),
    pytest.param([(0.0, True), (9.0, None), (60.0, True), (70.0, True)], 10.0, id="was-stopped"),
])  # fmt: skip
def test_a_run_segment_is_as_long_as_its_pods_were_seen_to_run(
    looks: list[tuple[float, bool | None]], ran_s: float
) -> None:
    times = RunTimes()
    for at_s, runs in looks:
        seen = [] if runs is None else [job(spec={"parallelism": 1 if runs else 2})]
        times.see(seen, at_s)
    assert times.ran_s("u") == ran_s
