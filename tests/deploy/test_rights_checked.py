"""`helm test` asks for every right that the chart gives to an account."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from greensched_operator.install_check.checklist import Grant, Right, RoleRule, rights

pytestmark = pytest.mark.helm

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]
RIGHTS = "GREENSCHED_CHECK_RIGHTS"
# By roles of Kubernetes' own, which the chart does not render.
BUILT_IN = {"greensched-scheduler create pods/binding"}


def checked(objects: Objects) -> set[str]:
    """Return the rights that the hook's pod would ask for."""
    (pod,) = (each for each in objects if each["kind"] == "Pod")
    (container,) = pod["spec"]["containers"]
    (text,) = (each["value"] for each in container["env"] if each["name"] == RIGHTS)
    return {str(each) for each in rights([Grant.model_validate(each) for each in json.loads(text)])}


def given(objects: Objects) -> Iterator[Right]:
    """Return each right that a role of the release gives to an account."""
    kept = [
        each for each in objects if "helm.sh/hook" not in each["metadata"].get("annotations", {})
    ]
    roles = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each[
            "rules"
        ]
        for each in kept
        if each["kind"] in ("ClusterRole", "Role")
    }
    for each in kept:
        if each["kind"] not in ("ClusterRoleBinding", "RoleBinding"):
            continue
        where = each["metadata"].get("namespace", "")
        rules = roles.get((each["roleRef"]["kind"], where, each["roleRef"]["name"]), [])
        for subject in each["subjects"]:
            grant = Grant(
                account=subject["name"],
                account_namespace=subject["namespace"],
                namespace=where,
                rules=[RoleRule.model_validate(rule) for rule in rules],
            )
            yield from rights([grant])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([], id="defaults"),
        pytest.param(["operator.kueue.enabled=true"], id="beside-kueue"),
        pytest.param(["extender.bind.enabled=true", "tls.enabled=true", "tls.existingSecret=a",
                      "tls.client.enabled=true", "tls.client.existingSecret=b"],
                     id="the-extender-binds"),
        pytest.param(["policy.create=false"], id="without-a-policy"),
    ],
)  # fmt: skip
def test_each_right_of_each_account_is_checked(
    render_with_tests: Render, values: list[str]
) -> None:
    told = [part for each in values for part in ("--set", each)]
    objects = render_with_tests(*told)
    assert checked(objects) == {str(each) for each in given(objects)} | BUILT_IN
