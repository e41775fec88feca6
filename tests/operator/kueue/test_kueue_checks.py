"""What our AdmissionCheck says of a Workload, from what stands on it."""

import json
from typing import Any

import httpx
import msgspec
import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.kueue.api import KueueWriter, path_now
from greensched_operator.kueue.workloads import (
    UNPLANNED_S,
    AdmissionState,
    KueueWorkload,
    free_from_s,
    state_patch,
    wanted_state,
    workload_work,
)
from greensched_operator.objects.workloads import WorkKind, convert_job
from tests.operator.annotated_work import api_of, refused

CREATED = "2026-06-01T00:00:00Z"
PLANNED = {
    labels.PLANNED_START: "2026-06-01T03:00:00Z",
    labels.LATEST_START: "2026-06-01T05:00:00Z",
    labels.HOLD_REASON: "saves 40 %",
}
TOLD = "start planned for 2026-06-01T03:00:00Z, latest start 2026-06-01T05:00:00Z: saves 40 %"
RELEASED = {labels.RELEASED_AT: "2026-06-01T03:00:00Z", labels.RELEASE_REASON: "run-now"}


def workload(
    said: dict[str, str],
    *,
    state: str = "Pending",
    message: str = "",
    true: tuple[str, ...] = (),
    owner: str = "Job",
    asked_at: str | None = None,
) -> KueueWorkload:
    checks = [
        {"name": "green", "state": state, "message": message, "lastTransitionTime": asked_at},
        {"name": "others", "state": "Pending"},
    ]
    body = {
        "metadata": {
            "name": "job-train-1", "namespace": "team", "uid": "w", "creationTimestamp": CREATED,
            "annotations": said, "ownerReferences": [{"kind": owner, "name": "train", "uid": "j"}],
        },
        "status": {
            "admissionChecks": checks,
            "conditions": [{"type": each, "status": "True"} for each in true],
        },
    }  # fmt: skip
    return msgspec.convert(body, KueueWorkload)


OURS = frozenset({"green"})


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(workload({}), None, id="no-plan-yet"),
        pytest.param(workload(PLANNED), (AdmissionState.PENDING, TOLD), id="planned"),
        pytest.param(workload(PLANNED, message=TOLD), None, id="told-already"),
        pytest.param(workload(RELEASED), (AdmissionState.READY, "started: run-now"), id="started"),
        pytest.param(
            workload(RELEASED, message="Reset to Pending after eviction. Previously: Ready"),
            (AdmissionState.READY, "started: run-now"),
            id="evicted-after-its-start-it-waits-no-second-time",
        ),
    ],
)
def test_the_check_follows_from_what_is_written(
    item: KueueWorkload, expected: tuple[AdmissionState, str] | None
) -> None:
    (check,) = item.held_by(OURS)
    wanted = wanted_state(item, check)
    assert (None if wanted is None else (wanted.state, wanted.message)) == expected


@pytest.mark.parametrize(
    ("item", "names"),
    [
        pytest.param(workload({}), ["green"], id="waits-for-ours"),
        pytest.param(workload({}, state="Ready"), [], id="ours-is-ready"),
        pytest.param(workload({}, true=("Admitted",)), [], id="admitted"),
        pytest.param(workload({}, true=("Finished",)), [], id="finished"),
    ],
)
def test_only_what_waits_for_our_check_is_held(item: KueueWorkload, names: list[str]) -> None:
    assert [each.name for each in item.held_by(OURS)] == names


@pytest.mark.parametrize(
    ("said", "expected_s"),
    [
        pytest.param({}, parse_timestamp(CREATED) + UNPLANNED_S, id="nobody-planned-it"),
        pytest.param(PLANNED, parse_timestamp("2026-06-01T05:00:00Z"), id="its-latest-start"),
        pytest.param({labels.LATEST_START: "later"}, float("-inf"), id="unreadable"),
        pytest.param(RELEASED, float("-inf"), id="started-but-its-check-was-not-told"),
    ],
)
def test_no_workload_waits_for_ever_without_the_operator(
    said: dict[str, str], expected_s: float
) -> None:
    item = workload(said)
    assert free_from_s(item, item.held_by(OURS)) == expected_s


def test_a_check_that_a_queue_got_late_waits_from_then_on() -> None:
    late = "2026-06-01T03:00:00Z"
    item = workload({}, asked_at=late)
    assert free_from_s(item, item.held_by(OURS)) == parse_timestamp(late) + UNPLANNED_S


def test_the_patch_names_our_entry_alone() -> None:
    item = workload(PLANNED)
    wanted = wanted_state(item, item.held_by(OURS)[0])
    assert wanted is not None
    assert json.loads(state_patch(item, [wanted], 1780285200.4)) == {
        "metadata": {"name": "job-train-1", "namespace": "team", "uid": "w"},
        "status": {
            "admissionChecks": [
                {
                    "name": "green",
                    "state": "Pending",
                    "message": TOLD,
                    "lastTransitionTime": "2026-06-01T03:40:00Z",
                }
            ]
        },
    }


def job(said: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    return {
        "metadata": {"name": "train", "namespace": "team", "uid": "j", "annotations": said},
        "spec": {
            "suspend": True,
            "parallelism": 3,
            "template": {"spec": {"containers": [container]}},
        },
    }


def test_a_workload_is_planned_by_its_jobs_request_and_cores() -> None:
    asked = {labels.DEADLINE: "6h", labels.LATEST_START: "copied from another Job"}
    work = workload_work(workload({}), convert_job(job(asked)), "greensched")
    assert (work.kind, work.name, work.uid) == (WorkKind.WORKLOAD, "job-train-1", "w")
    assert work.annotations[labels.DEADLINE] == "6h"
    assert work.annotations[labels.LATEST_START] == ""
    assert work.cpu_cores == 6.0
    assert work.is_held


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        pytest.param(refused(404), "", id="no-kueue"),
        pytest.param(
            httpx.Response(200, json={"preferredVersion": {"version": "v1beta1"}}),
            "/apis/kueue.x-k8s.io/v1beta1",
            id="an-older-one",
        ),
    ],
)
async def test_the_version_that_the_server_prefers_is_spoken(
    answer: httpx.Response, path: str
) -> None:
    assert await path_now(api_of(lambda _: answer)) == path


async def test_who_does_not_lead_any_more_says_nothing_to_kueue() -> None:
    asked: list[httpx.Request] = []
    client = api_of(lambda request: asked.append(request) or refused(500))  # type: ignore[func-returns-value]  # None, then the answer
    writer = KueueWriter(client, "/apis/kueue.x-k8s.io/v1beta2", ManualClock(0.0), lambda: False)
    assert await writer.say(workload({}), []) is False
    assert asked == []
