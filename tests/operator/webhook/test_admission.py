"""The webhook's decision: held or not, with which patch, and what is told."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.holding.holding import margin_s
from greensched_operator.objects.cron_jobs import read_cron_job
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, Mode
from greensched_operator.objects.job_power_profile import parse_job_power_profile
from greensched_operator.objects.queue_gate import GATED_BY, KUEUE_QUEUE
from greensched_operator.objects.workloads import WorkKind
from greensched_operator.webhook.admission import (
    AdmissionRequest,
    ReviewOutcome,
    ReviewSurroundings,
    Verdict,
    answer,
    decide,
    read_review,
)
from tests.operator.annotated_work import ENFORCING, HOUR_S, NOW_S, marks, rules, stored

SAYS_6H = {labels.DEADLINE: "6h"}


def around(
    policy: GreenPolicy = ENFORCING, *, is_emergency_release: bool = False
) -> ReviewSurroundings:
    told = rules(policy, is_emergency_release=is_emergency_release)
    return ReviewSurroundings(frozenset({labels.SCHEDULER_NAME}), told)


def verdict_on(
    item: dict[str, Any], surroundings: ReviewSurroundings | None = None, operation: str = "CREATE"
) -> Verdict:
    return decide(request_of(item, operation), surroundings or around(), NOW_S)


def request_of(item: dict[str, Any], operation: str = "CREATE") -> AdmissionRequest:
    review = {"request": {"uid": "1", "kind": {"kind": item["kind"]}, "namespace": "team",
                          "operation": operation, "object": item}}  # fmt: skip
    return read_review(json.dumps(review).encode())


def patched(item: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
    """Return an object as the API server stores it, by RFC 6902: of `add` and `remove`."""
    found: dict[str, Any] = json.loads(json.dumps(item))
    for each in verdict.patch:
        *parents, last = (
            part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]
        )
        place: Any = found
        for part in parents:
            place = place[part]
        if each["op"] == "remove":
            del place[last]
        elif last == "-":
            place.append(each["value"])
        else:
            place[last] = each["value"]
    return found


def arriving(annotations: dict[str, str] | None = None, **told: Any) -> dict[str, Any]:
    return stored(annotations=SAYS_6H if annotations is None else annotations,
                  is_stopped=False, **told)  # fmt: skip


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
def test_what_may_wait_is_stopped_with_its_latest_start(kind: WorkKind) -> None:
    item = arriving(kind=kind)
    made = patched(item, verdict_on(item))
    said = made["metadata"]["annotations"]
    spare_s = margin_s(BUILT_IN, HOUR_S, BUILT_IN.runtime_error)
    assert parse_timestamp(said[labels.LATEST_START]) == round(NOW_S + 5 * HOUR_S - spare_s)
    assert said[labels.HELD_AT] == format_timestamp(NOW_S)
    if kind == WorkKind.JOB:
        assert made["spec"]["suspend"] is True
    else:
        assert made["spec"]["schedulingGates"] == [{"name": labels.GATE}]


def latest_start(around_it: ReviewSurroundings, **asked: str) -> float:
    said = {f"{labels.GROUP}/{name.replace('_', '-')}": text for name, text in asked.items()}
    item = arriving(said)
    made = patched(item, verdict_on(item, around_it))
    return parse_timestamp(made["metadata"]["annotations"][labels.LATEST_START])


def test_the_latest_start_is_that_on_the_slowest_node_and_by_the_profile() -> None:
    """The releaser starts work by it, if no controller has judged the work since."""
    hours_10 = parse_job_power_profile(
        {"metadata": {"name": "p"}, "spec": {"work": [{"duration": "10h", "watts": 90}]}}
    ).profile
    slow = replace(rules(), slowest_speed=lambda _: 0.5, profile=lambda *_: hours_10)
    surroundings = replace(around(), rules=slow)
    spare_s = margin_s(BUILT_IN, 4 * HOUR_S, BUILT_IN.runtime_error)
    assert latest_start(surroundings, deadline="30h", runtime="2h") == pytest.approx(
        NOW_S + 30 * HOUR_S - 4 * HOUR_S - spare_s, abs=1.0
    )
    spare_s = margin_s(BUILT_IN, 20 * HOUR_S, BUILT_IN.runtime_error)
    assert latest_start(surroundings, deadline="50h", power_profile="p") == pytest.approx(
        NOW_S + 50 * HOUR_S - 20 * HOUR_S - spare_s, abs=1.0
    )


@pytest.mark.parametrize(
    ("item", "outcome"),
    [
        pytest.param(arriving(), "held", id="held"),
        pytest.param(arriving({}), "no-request", id="says-nothing"),
        pytest.param(arriving({labels.DEADLINE: "soon"}), "bad-annotation", id="typo"),
        pytest.param(arriving({labels.DEADLINE: "61m"}), "no-slack", id="no-slack"),
        pytest.param(arriving(SAYS_6H | {labels.RUN_NOW: "true"}), "run-now", id="run-now"),
        pytest.param(arriving(scheduler="default-scheduler"), "no-opt-in", id="no-opt-in"),
        pytest.param(arriving({}, scheduler="default-scheduler"), "ignored", id="not-ours"),
        pytest.param(stored(annotations=SAYS_6H), "ignored", id="arrives-suspended"),
        pytest.param(
            arriving(owner={"kind": "Job", "name": "a", "uid": "a", "controller": True},
                     kind=WorkKind.POD), "ignored", id="pod-of-a-job",
        ),
        pytest.param(
            arriving(owner={"kind": "ReplicaSet", "name": "a", "uid": "a", "controller": True},
                     kind=WorkKind.POD), "ignored", id="pod-of-a-service",
        ),
    ],
)  # fmt: skip
def test_only_what_may_wait_is_held(item: dict[str, Any], outcome: str) -> None:
    verdict = verdict_on(item)
    assert verdict.outcome == outcome
    assert bool(verdict.patch) is (outcome == "held")


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
def test_what_nobody_would_start_is_not_held_and_says_so(kind: WorkKind) -> None:
    item = arriving(kind=kind)
    verdict = verdict_on(item, replace(around(), is_releasable=False))
    made = patched(item, verdict)
    assert verdict.outcome == "unreleasable"
    assert made["spec"] == item["spec"]
    assert made["metadata"]["annotations"][labels.HOLD_REASON] in verdict.warnings[0]
    assert labels.LATEST_START not in made["metadata"]["annotations"]


def test_a_copy_of_held_work_starts_where_nobody_would_start_it_later() -> None:
    item = stored(annotations=SAYS_6H | marks(until_s=NOW_S + HOUR_S))
    made = patched(item, verdict_on(item, replace(around(), is_releasable=False)))
    assert made["spec"]["suspend"] is False
    assert made["metadata"]["annotations"].keys() == {*SAYS_6H, labels.HOLD_REASON}


@pytest.mark.parametrize(
    ("surroundings", "operation", "outcome"),
    [
        pytest.param(
            around(is_emergency_release=True), "CREATE", "emergency-release", id="emergency"
        ),
        pytest.param(around(GreenPolicy(mode=Mode.SHADOW)), "CREATE", "shadow", id="shadow"),
        pytest.param(around(GreenPolicy(mode=Mode.OFF)), "CREATE", "policy-off", id="off"),
        pytest.param(around(), "UPDATE", "ignored", id="changed-not-created"),
    ],
)
def test_nothing_is_held_where_nothing_may_be(
    surroundings: ReviewSurroundings, operation: str, outcome: str
) -> None:
    verdict = verdict_on(arriving(), surroundings, operation)
    assert (verdict.outcome, verdict.patch) == (outcome, ())


def test_kueue_owns_suspend_of_what_it_queues_and_a_pod_on_a_node_has_no_gate() -> None:
    queued, bound = arriving(), arriving(kind=WorkKind.POD)
    queued["metadata"]["labels"] = {KUEUE_QUEUE: "team"}
    bound["spec"]["nodeName"] = "node"
    assert verdict_on(queued).outcome == verdict_on(bound).outcome == "ignored"


def test_a_pod_keeps_the_gates_of_others_and_has_ours_once() -> None:
    item = arriving(kind=WorkKind.POD)
    item["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    made = patched(item, verdict_on(item))
    assert made["spec"]["schedulingGates"] == [{"name": "example.com/wait"}, {"name": labels.GATE}]


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
def test_the_object_of_a_review_is_decoded_once(kind: WorkKind) -> None:
    request, decoders = request_of(arriving(kind=kind)), list[object]()

    def note(_frame: object, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "decode":
            decoders.append(called)

    sys.setprofile(note)
    try:
        decide(request, around(), NOW_S)
    finally:
        sys.setprofile(None)
    assert len(decoders) == 1


OLD = marks(NOW_S - 9 * HOUR_S, NOW_S - HOUR_S, deadline="6h", planned_start="2020-01-01",
            decision="{}")  # fmt: skip


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
@pytest.mark.parametrize("is_stopped", [False, True], ids=["started", "stopped-by-us"])
def test_a_copy_of_held_work_is_held_anew_and_old_marks_go(
    kind: WorkKind, is_stopped: bool
) -> None:
    item = stored(annotations=OLD, is_stopped=is_stopped, kind=kind)
    made = patched(item, verdict_on(item))
    fresh = {labels.LATEST_START, labels.HELD_AT, labels.HOLD_REASON}
    assert made["metadata"]["annotations"].keys() == {labels.DEADLINE} | fresh
    assert made["metadata"]["annotations"][labels.HELD_AT] == format_timestamp(NOW_S)
    assert made["spec"].get("suspend", True) is True
    assert made["spec"].get("schedulingGates", [{"name": labels.GATE}]) == [{"name": labels.GATE}]


@pytest.mark.parametrize(
    ("more", "surroundings"),
    [
        pytest.param({}, around(is_emergency_release=True), id="emergency"),
        pytest.param({}, around(GreenPolicy(mode=Mode.SHADOW)), id="shadow"),
        pytest.param({labels.RUN_NOW: "true"}, around(), id="run-now"),
        pytest.param({labels.MAX_DELAY: "soon"}, around(), id="bad-annotation"),
    ],
)
def test_a_copy_of_held_work_that_may_not_wait_is_not_left_suspended(
    more: dict[str, str], surroundings: ReviewSurroundings
) -> None:
    item = stored(annotations=OLD | more)
    made = patched(item, verdict_on(item, surroundings))
    assert made["spec"]["suspend"] is False
    assert not labels.WRITTEN & made["metadata"]["annotations"].keys()


@pytest.mark.parametrize("is_emergency_release", [False, True])
def test_a_copy_of_queued_work_stays_suspended_for_kueue(is_emergency_release: bool) -> None:
    item = stored(annotations=OLD | {GATED_BY: labels.GATE}, queue="team")
    made = patched(item, verdict_on(item, around(is_emergency_release=is_emergency_release)))
    assert made["spec"]["suspend"] is True
    assert GATED_BY not in made["metadata"]["annotations"]


@pytest.mark.parametrize("said", [
    pytest.param({}, id="without-marks"),
    pytest.param({labels.HELD_AT: "2020-01-01T00:00:00Z", labels.RELEASED_AT: "2020-01-01"},
                 id="a-copy-of-what-was-started-and-then-suspended"),
])  # fmt: skip
def test_what_its_user_suspended_arrives_so(said: dict[str, str]) -> None:
    item = stored(annotations=SAYS_6H | said)
    made = patched(item, verdict_on(item))
    assert made["spec"]["suspend"] is True
    assert made["metadata"]["annotations"] == SAYS_6H


@pytest.mark.parametrize("kind", [WorkKind.JOB, WorkKind.POD])
def test_a_second_webhook_of_ours_changes_no_decision(kind: WorkKind) -> None:
    once = patched(item := stored(annotations=SAYS_6H, is_stopped=False, kind=kind),
                   verdict_on(item))  # fmt: skip
    assert patched(once, verdict_on(once)) == once


@pytest.mark.parametrize(("owner", "by", "told"), [
    pytest.param({"kind": "JobSet", "name": "set", "uid": "s", "controller": True}, None,
                 "JobSet set controls its suspend", id="of-a-job-set"),
    pytest.param(None, "example.com/farm", "another controller controls its suspend",
                 id="managed-elsewhere"),
])  # fmt: skip
def test_a_job_that_another_controller_may_resume_is_not_suspended(
    owner: dict[str, Any] | None, by: str | None, told: str
) -> None:
    item = stored(annotations=SAYS_6H, is_stopped=False, owner=owner)
    item["spec"]["managedBy"] = by
    verdict = verdict_on(item)
    assert (verdict.outcome, verdict.patch) == ("not-ours", ())
    assert told in verdict.warnings[0]


def test_a_run_whose_creator_has_a_clock_ahead_of_ours_is_held() -> None:
    nightly = read_cron_job({"metadata": {"name": "nightly"}, "spec": {"schedule": "0 3 * * *"}})
    owner = {"kind": "CronJob", "name": "nightly", "uid": "c", "controller": True}
    item = stored(annotations=SAYS_6H, is_stopped=False, owner=owner)
    three = datetime(2023, 6, 1, 3, tzinfo=UTC).timestamp()
    due = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    item["metadata"]["annotations"][due] = "2023-06-01T05:00:00+02:00"
    where = replace(around(), rules=rules(cron_job=nightly))
    assert decide(request_of(item), where, three - 0.05).outcome == "held"


TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(["6h", "true", "-1h", "2020-01-01T00:00Z"]))
ANNOTATIONS = st.sampled_from(
    [labels.DEADLINE, labels.MAX_DELAY, labels.RUNTIME, labels.WINDOW, labels.RUN_NOW,
     labels.CHECKPOINTABLE, labels.POLICY, labels.GANG, *sorted(labels.WRITTEN)]
)  # fmt: skip


@given(st.dictionaries(ANNOTATIONS, TEXTS), st.sampled_from([WorkKind.JOB, WorkKind.POD]))
def test_whatever_is_written_it_is_admitted_and_a_hold_has_an_end(
    said: dict[str, str], kind: WorkKind
) -> None:
    item = arriving(said, kind=kind)
    verdict = verdict_on(item)
    made = patched(item, verdict)
    until = made["metadata"]["annotations"].get(labels.LATEST_START)
    assert (until is not None) is (verdict.outcome == "held")
    if until is not None:
        assert NOW_S < parse_timestamp(until) <= NOW_S + ENFORCING.longest_hold_s
    assert all(len(each) <= 256 for each in verdict.warnings)


def test_the_answer_always_admits() -> None:
    item = arriving()
    reply = msgspec.json.decode(answer("1", verdict_on(item)))["response"]
    assert (reply["allowed"], reply["patchType"]) == (True, "JSONPatch")
    assert json.loads(base64.b64decode(reply["patch"]))[-1]["path"] == "/spec/suspend"
    assert (
        "patch" not in msgspec.json.decode(answer("1", Verdict(ReviewOutcome.IGNORED)))["response"]
    )
