"""What the operator's accounts may do on a real API server, and what not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.deploy.conftest import Installation

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

HERE, ELSEWHERE, EVERYWHERE = "here", "default", ""
WEBHOOKS = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
# account, where, what it may, group/resource[/subresource][:name]
MAY = [
    ("controller", EVERYWHERE, "list watch patch", "batch/jobs"),
    ("controller", EVERYWHERE, "list watch patch", "/pods"),
    ("controller", EVERYWHERE, "patch", "batch/jobs/status"),
    ("controller", EVERYWHERE, "patch", "/pods/status"),
    ("controller", EVERYWHERE, "create", "/events"),
    ("controller", EVERYWHERE, "list watch patch", "batch/cronjobs"),
    ("controller", EVERYWHERE, "patch", "greensched.io/gridsignals/status"),
    ("controller", EVERYWHERE, "get patch", f"{WEBHOOKS}:greensched"),
    ("controller", EVERYWHERE, "create", "authorization.k8s.io/selfsubjectaccessreviews"),
    ("controller", HERE, "create", "coordination.k8s.io/leases"),
    ("controller", HERE, "patch", "/configmaps:greensched-budgets"),
    ("controller", HERE, "get patch", "coordination.k8s.io/leases:greensched-operator"),
    ("controller", HERE, "patch", "coordination.k8s.io/leases:greensched-heartbeat"),
    ("controller", HERE, "get patch", "/secrets:greensched-webhook"),
    ("controller", HERE, "get", "/secrets:a-provider"),
    ("webhook", EVERYWHERE, "list watch", "greensched.io/greenpolicies"),
    ("webhook", EVERYWHERE, "list watch", f"{WEBHOOKS}:greensched"),
    ("webhook", HERE, "list watch", "/secrets:greensched-webhook"),
    ("webhook", HERE, "list watch", "/configmaps:greensched-emergency-release"),
    ("webhook", HERE, "get list watch", "coordination.k8s.io/leases:greensched-heartbeat"),
    ("webhook", HERE, "create", "/events"),
    ("releaser", HERE, "create", "/events"),
    ("releaser", HERE, "create", "coordination.k8s.io/leases"),
    ("releaser", HERE, "patch", "coordination.k8s.io/leases:greensched-heartbeat"),
    ("releaser", EVERYWHERE, "list watch patch", "batch/jobs"),
    ("releaser", EVERYWHERE, "list watch patch", "/pods"),
    ("releaser", EVERYWHERE, "create", "authorization.k8s.io/selfsubjectaccessreviews"),
    ("emergency-release", EVERYWHERE, "list patch", "/pods"),
    ("emergency-release", HERE, "create", "/configmaps"),
    ("emergency-release", EVERYWHERE, "delete", f"{WEBHOOKS}:greensched"),
]
KUEUE = "kueue.x-k8s.io"
# With operator.kueue.enabled.
BESIDE_KUEUE = [
    ("controller", EVERYWHERE, "list watch patch", f"{KUEUE}/workloads"),
    ("controller", EVERYWHERE, "patch", f"{KUEUE}/workloads/status"),
    ("controller", EVERYWHERE, "list watch", f"{KUEUE}/admissionchecks"),
    ("controller", EVERYWHERE, "patch", f"{KUEUE}/admissionchecks/status"),
    ("releaser", EVERYWHERE, "list watch patch", f"{KUEUE}/workloads"),
    ("releaser", EVERYWHERE, "patch", f"{KUEUE}/workloads/status"),
    ("releaser", EVERYWHERE, "list watch", f"{KUEUE}/admissionchecks"),
    ("emergency-release", EVERYWHERE, "list patch", f"{KUEUE}/workloads"),
    ("emergency-release", EVERYWHERE, "patch", f"{KUEUE}/workloads/status"),
    ("emergency-release", EVERYWHERE, "list", f"{KUEUE}/admissionchecks"),
]
NOT_BESIDE_KUEUE = [
    ("controller", EVERYWHERE, "get create delete update", f"{KUEUE}/workloads"),
    ("controller", EVERYWHERE, "list patch", f"{KUEUE}/clusterqueues"),
    ("controller", EVERYWHERE, "create delete patch", f"{KUEUE}/admissionchecks"),
    ("webhook", EVERYWHERE, "list patch", f"{KUEUE}/workloads"),
    ("releaser", EVERYWHERE, "patch", f"{KUEUE}/admissionchecks/status"),
    ("emergency-release", EVERYWHERE, "delete", f"{KUEUE}/workloads"),
]
MAY_NOT = [
    ("controller", EVERYWHERE, "delete create update", "batch/jobs"),
    ("controller", EVERYWHERE, "delete create update", "/pods"),
    ("controller", EVERYWHERE, "create", "/pods/exec"),
    ("controller", EVERYWHERE, "create", "/pods/binding"),
    ("controller", ELSEWHERE, "get list watch create", "/secrets"),
    ("controller", HERE, "list watch delete", "/secrets"),
    ("controller", HERE, "patch", "/secrets:another"),
    ("controller", HERE, "get patch", "coordination.k8s.io/leases:greensched-scheduler"),
    ("controller", ELSEWHERE, "get list", "/configmaps"),
    ("controller", HERE, "create patch delete", "/configmaps"),
    ("controller", ELSEWHERE, "create patch delete", "greensched.io/greenpolicies"),
    ("controller", HERE, "delete", "greensched.io/greenpolicies"),
    ("controller", EVERYWHERE, "patch", "/nodes"),
    ("controller", EVERYWHERE, "create delete list", WEBHOOKS),
    ("controller", EVERYWHERE, "patch", f"{WEBHOOKS}:another"),
    ("webhook", EVERYWHERE, "get list patch", "batch/jobs"),
    ("webhook", EVERYWHERE, "get list patch", "/pods"),
    ("webhook", EVERYWHERE, "get list watch", WEBHOOKS),
    ("webhook", EVERYWHERE, "get patch delete", f"{WEBHOOKS}:greensched"),
    ("webhook", HERE, "list get", "/secrets"),
    ("webhook", HERE, "list", "/configmaps"),
    ("webhook", ELSEWHERE, "create", "/events"),
    ("webhook", HERE, "list watch", "coordination.k8s.io/leases"),
    ("webhook", HERE, "get list watch", "coordination.k8s.io/leases:greensched-operator"),
    ("webhook", HERE, "patch", "coordination.k8s.io/leases:greensched-heartbeat"),
    ("releaser", HERE, "patch delete", "coordination.k8s.io/leases:greensched-operator"),
    ("releaser", EVERYWHERE, "delete create", "batch/jobs"),
    ("releaser", HERE, "get list", "/secrets"),
    ("releaser", EVERYWHERE, "list", "greensched.io/greenpolicies"),
    ("emergency-release", EVERYWHERE, "delete", "batch/jobs"),
    ("emergency-release", HERE, "get delete", "/configmaps"),
    ("emergency-release", EVERYWHERE, "delete", f"{WEBHOOKS}:another"),
    ("emergency-release", EVERYWHERE, "get list patch create", f"{WEBHOOKS}:greensched"),
    ("emergency-release", HERE, "get list", "/secrets"),
]  # fmt: skip


def allowed(installation: Installation, account: str, where: str, verb: str, what: str) -> bool:
    """Ask the API server; `what` is group/resource[/subresource][:name]."""
    path, _, name = what.partition(":")
    group, resource, *sub = path.split("/")
    asked = {"verb": verb, "group": group, "resource": resource, "name": name}
    asked["namespace"] = installation.namespace if where == HERE else where
    if sub:
        asked["subresource"] = sub[0]
    user = f"system:serviceaccount:{installation.namespace}:greensched-{account}"
    spec = {"user": user, "resourceAttributes": asked}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        # Not system:authenticated: hardened clusters unbind what is everybody's.
        "spec": {**spec, "groups": ["system:serviceaccounts"]},
    }
    told = installation.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review))
    assert told.returncode == 0, told.stderr
    answer: bool = json.loads(told.stdout)["status"]["allowed"]
    return answer


def wrong_ones(
    installation: Installation, may: list[tuple[str, ...]], may_not: list[tuple[str, ...]]
) -> list[str]:
    """Return which accounts may less than a table says, or more than another one."""
    return [
        f"{account} {verb} {what} {where}: want {want}"
        for want, table in ((True, may), (False, may_not))
        for account, where, verbs, what in table
        for verb in verbs.split()
        if allowed(installation, account, where, verb, what) is not want
    ]


def test_each_account_may_do_what_it_needs_and_no_more(installation: Installation) -> None:
    assert wrong_ones(installation, [*MAY], [*MAY_NOT, *BESIDE_KUEUE]) == []


def test_beside_kueue_they_may_see_to_its_workloads(installation: Installation) -> None:
    installation.upgrade("--set", "operator.kueue.enabled=true")
    assert wrong_ones(installation, [*BESIDE_KUEUE], [*NOT_BESIDE_KUEUE]) == []
