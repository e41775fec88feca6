"""What the status of our custom resources says, and that it is written only when it changes."""

from typing import Any

import pytest

from greensched_operator.holding.acceptance import (
    Acceptance,
    accept_policy,
    accept_profile,
    changed_status,
    refusal_in,
)
from greensched_operator.objects import green_policy, job_power_profile

GOOD = Acceptance(True, "Followed", "mode enforce, start chosen by planned-window")
BAD = Acceptance(False, "BadField", "spec.mode: 'force' is none of off, shadow, enforce")
NOON, LATER = 1_767_268_800.0, 1_767_272_400.5


def written(previous: object, acceptance: Acceptance, now: float) -> dict[str, Any]:
    status = changed_status(previous, 3, acceptance, now)
    assert status is not None
    return status


@pytest.mark.parametrize(
    ("spec", "bundle_fault", "reason", "told"),
    [
        pytest.param({"mode": "enforce"}, None, "Followed", "mode enforce", id="followed"),
        pytest.param({"mode": "force"}, None, "BadField", "nothing is held", id="bad-field"),
        pytest.param(
            {"whenPolicy": "onnx", "bundle": {"configMapName": "mine"}},
            "there is no such ConfigMap",
            "BundleUnusable", "bundle mine cannot be used: there is no such ConfigMap. The rule",
            id="missing-bundle",
        ),
        pytest.param(
            {"whenPolicy": "onnx"}, "its card is of another encoding", "BundleUnusable",
            "the shipped bundle cannot be used: its card", id="wrong-shipped-bundle",
        ),
    ],
)  # fmt: skip
def test_a_policy_is_judged(
    spec: dict[str, Any], bundle_fault: str | None, reason: str, told: str
) -> None:
    acceptance = accept_policy(green_policy.parse({"spec": spec}), bundle_fault)
    assert (acceptance.is_accepted, acceptance.reason) == (reason == "Followed", reason)
    assert told in acceptance.message


def test_a_profile_is_judged() -> None:
    work = [{"duration": "1h", "watts": 5}]
    good = job_power_profile.parse_job_power_profile(
        {"spec": {"work": work, "checkpoints": {"every": "20m"}}}
    )
    assert accept_profile(good).message == "a run takes 3600 s; checkpoints: 2"
    bad = accept_profile(job_power_profile.parse_job_power_profile({}))
    assert (bad.is_accepted, bad.reason) == (False, "BadField")
    assert "constant power" in bad.message


def test_a_status_is_a_condition_with_its_generation() -> None:
    assert written(None, GOOD, NOON) == {
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Followed",
                "message": GOOD.message,
                "observedGeneration": 3,
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }
        ],
    }


def test_what_is_said_already_is_not_written_again() -> None:
    before = written(None, GOOD, NOON)
    assert changed_status(before, 3, GOOD, LATER) is None
    assert changed_status(before, 4, GOOD, LATER) is not None


def test_the_time_changes_with_the_verdict_alone() -> None:
    before = written(None, GOOD, NOON)
    reworded = written(before, Acceptance(True, "Followed", "mode shadow"), LATER)
    assert reworded["conditions"][0]["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    assert written(before, BAD, LATER)["conditions"][0]["lastTransitionTime"] == (
        "2026-01-01T13:00:00Z"
    )


@pytest.mark.parametrize(
    "previous", [None, 3, {"conditions": None}, {"conditions": [{"type": "Accepted"}, 3]}]
)
def test_a_status_that_cannot_be_read_is_written_anew_and_refuses_nothing(
    previous: object,
) -> None:
    assert written(previous, BAD, NOON) == written(None, BAD, NOON)
    assert refusal_in(previous) == ""


def test_a_status_tells_others_why_its_object_is_not_followed() -> None:
    assert refusal_in(written(None, BAD, NOON)) == BAD.message
    assert refusal_in(written(None, GOOD, NOON)) == ""
