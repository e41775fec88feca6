"""What `helm test` prints and which rights it asks after, without a cluster."""

import pytest

from greensched_operator.install_check.check import mode_of
from greensched_operator.install_check.checklist import (
    CheckFailed,
    CheckOutcome,
    Finding,
    Grant,
    RoleRule,
    checklist,
    rights,
    tried_job,
    tried_pod,
)


def test_the_checklist_says_what_to_do_below_what_failed() -> None:
    told = checklist(
        [
            Finding("the extender answers", CheckOutcome.PASSED, "http://extender (0.1 s)"),
            Finding("a pod is placed", CheckOutcome.FAILED, "it stays Pending", "give it room"),
            Finding("a Job is held", CheckOutcome.SKIPPED, "this release holds nothing"),
        ]
    )
    assert told.splitlines() == [
        "ok      the extender answers: http://extender (0.1 s)",
        "FAILED  a pod is placed: it stays Pending",
        "        -> give it room",
        "skip    a Job is held: this release holds nothing",
        "1 of 2 checks passed",
    ]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        pytest.param(
            RoleRule(apiGroups=["batch"], resources=["jobs"], verbs=["list", "watch"]),
            ["robot list jobs.batch", "robot watch jobs.batch"],
            id="verb-by-verb",
        ),
        pytest.param(
            RoleRule(apiGroups=[""], resources=["pods", "pods/status"], verbs=["patch"]),
            ["robot patch pods", "robot patch pods/status"],
            id="resource-by-resource",
        ),
        pytest.param(
            RoleRule(
                apiGroups=[""], resources=["secrets"], verbs=["get"], resourceNames=["a", "b"]
            ),
            ["robot get secrets a", "robot get secrets b"],
            id="name-by-name",
        ),
    ],
)
def test_every_right_of_a_rule_is_asked_alone(rule: RoleRule, asked: list[str]) -> None:
    grant = Grant(account="robot", account_namespace="green", rules=[rule])
    assert [str(each) for each in rights([grant])] == asked


def test_a_right_in_one_namespace_is_asked_there_as_that_account() -> None:
    rule = RoleRule(apiGroups=[""], resources=["pods/portforward"], verbs=["create"])
    grant = Grant(account="robot", account_namespace="green", namespace="green", rules=[rule])
    (right,) = rights([grant])
    spec = right.review()["spec"]
    assert spec["user"] == "system:serviceaccount:green:robot"
    assert "system:serviceaccounts:green" in spec["groups"]
    assert spec["resourceAttributes"] == {
        "verb": "create",
        "group": "",
        "resource": "pods",
        "subresource": "portforward",
        "name": "",
        "namespace": "green",
    }


def test_what_is_tried_opts_in_asks_for_next_to_nothing_and_may_wait() -> None:
    job = tried_job("trial", tried_pod("green", "image"))
    spec = job["spec"]["template"]["spec"]
    assert (spec["schedulerName"], spec["containers"][0]["image"]) == ("green", "image")
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "10m", "memory": "16Mi"}
    assert job["metadata"]["annotations"]["greensched.io/deadline"] == "6h"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"mode": "enforce"}, "mode enforce", id="as-wanted"),
        pytest.param({"mode": "off"}, "mode off; the chart's values: enforce", id="another"),
        pytest.param({}, "mode shadow; the chart's values: enforce", id="the-default"),
        pytest.param(None, "mode shadow; the chart's values: enforce", id="without-a-spec"),
    ],
)
def test_the_mode_of_the_policy_is_that_of_the_operator(spec: object, told: str) -> None:
    assert mode_of({"metadata": {"name": "default"}, "spec": spec}, "enforce") == told


def test_a_policy_that_cannot_be_read_fails_the_check_and_says_which_field() -> None:
    policy = {"metadata": {"name": "default", "namespace": "green"}, "spec": {"mode": "on"}}
    with pytest.raises(CheckFailed, match="nothing is held: spec.mode: 'on' is none of") as failed:
        mode_of(policy, "enforce")
    assert failed.value.advice == "correct it: kubectl -n green edit greenpolicy default"
