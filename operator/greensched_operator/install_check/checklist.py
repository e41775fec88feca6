"""The requests and the output of `check-install`; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from greensched_core import labels

_WIDTH = 6  # of the longest state, so that the titles are aligned


class CheckOutcome(StrEnum):
    """How a check ended."""

    PASSED = "ok"
    FAILED = "FAILED"
    SKIPPED = "skip"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the checklist."""

    title: str
    state: CheckOutcome
    message: str
    advice: str = ""  # what to do; only for a failed check


class CheckFailed(Exception):
    """A check failed; says what was observed and what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class NotAsked(Exception):
    """A check does not apply to this installation; says why."""


def checklist(findings: Sequence[Finding]) -> str:
    """Return all findings as text, one line per check, and a summary."""
    lines = []
    for each in findings:
        lines.append(f"{each.state:<{_WIDTH}}  {each.title}: {each.message}")
        if each.advice:
            lines.append(f"{'':<{_WIDTH}}  -> {each.advice}")
    asked = [each for each in findings if each.state != CheckOutcome.SKIPPED]
    passed = sum(each.state == CheckOutcome.PASSED for each in asked)
    return "\n".join((*lines, f"{passed} of {len(asked)} checks passed"))


def kubectl(namespace: str, arguments: str) -> str:
    """Return a kubectl command that the reader can type."""
    return f"kubectl -n {namespace} {arguments}"


class RoleRule(BaseModel):
    """A rule of a Role or ClusterRole, with Kubernetes' field names."""

    apiGroups: list[str]
    resources: list[str]
    verbs: list[str]
    resourceNames: list[str] = []


class Grant(BaseModel):
    """The rules that a service account should have."""

    account: str
    account_namespace: str
    namespace: str = ""  # where the rules apply; empty: in all namespaces
    rules: list[RoleRule]


@dataclass(frozen=True, slots=True)
class Right:
    """A single permission of an account, which the API server can confirm."""

    account: str
    account_namespace: str
    namespace: str
    verb: str
    group: str
    resource: str  # with its subresource, as in a rule: pods/status
    name: str

    def __str__(self) -> str:
        """Return the permission in the words of `kubectl auth can-i`."""
        where = f" in {self.namespace}" if self.namespace else ""
        group = f".{self.group}" if self.group else ""
        named = f" {self.name}" if self.name else ""
        return f"{self.account} {self.verb} {self.resource}{group}{named}{where}"

    def review(self) -> dict[str, Any]:
        """Return the SubjectAccessReview that asks for this permission."""
        resource, _, subresource = self.resource.partition("/")
        attributes = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        accounts = "system:serviceaccounts"
        groups = [accounts, f"{accounts}:{self.account_namespace}", "system:authenticated"]
        user = f"system:serviceaccount:{self.account_namespace}:{self.account}"
        spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        return {**kind, "spec": spec}


def rights(grants: Sequence[Grant]) -> list[Right]:
    """Return each right that the grants contain."""
    return list(_rights(grants))


def _rights(grants: Sequence[Grant]) -> Iterator[Right]:
    for grant in grants:
        account = (grant.account, grant.account_namespace, grant.namespace)
        for rule in grant.rules:
            for group in rule.apiGroups:
                for resource in rule.resources:
                    for verb in rule.verbs:
                        for name in rule.resourceNames or [""]:
                            yield Right(*account, verb, group, resource, name)


def tried_pod(scheduler: str, image: str) -> dict[str, Any]:
    """Return the spec of a pod that requests very little and ends immediately.

    It meets the Pod Security Standard `restricted`.
    """
    container = {
        "name": "check",
        "image": image,
        "command": ["python", "-c", "pass"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    unprivileged = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532}
    return {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {**unprivileged, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }


def tried_job(name: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Job that may wait for six hours."""
    annotations = {labels.DEADLINE: "6h", labels.RUNTIME: "1m"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"backoffLimit": 0, "template": {"spec": dict(pod)}},
    }
