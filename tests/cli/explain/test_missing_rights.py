"""What a user who lacks a right, or a login, reads: which one, and how to get it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from greensched_core.kubernetes_api import MERGE_PATCH

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Users

pytestmark = pytest.mark.controlplane

GROUP = "rbac.authorization.k8s.io"
LABELS = {"app.kubernetes.io/part-of": "greensched"}


async def running(users: Users, component: str) -> None:
    """Have a pod of ours that runs, as far as the API server knows."""
    path = f"/api/v1/namespaces/{users.own}/pods"
    await users.create(path, {
        "metadata": {"name": component,
                     "labels": {**LABELS, "app.kubernetes.io/component": component}},
        "spec": {"schedulerName": "nobody", "automountServiceAccountToken": False,
                 "containers": [{"name": "main", "image": "none"}]},
    })  # fmt: skip
    body = json.dumps({"status": {"phase": "Running"}}).encode()
    await users.api.patch(f"{path}/{component}/status", body, MERGE_PATCH)


async def let_list_pods(users: Users) -> None:
    """Let the user of the role `view` list our pods, and no more."""
    path = f"/apis/{GROUP}/v1/namespaces/{users.own}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    await users.create(f"{path}/roles", {"metadata": {"name": "lists"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "view-user", "namespace": users.namespace}
    reference = {"apiGroup": GROUP, "kind": "Role", "name": "lists"}
    binding = {"metadata": {"name": "lists"}, "subjects": [subject], "roleRef": reference}
    await users.create(f"{path}/rolebindings", binding)


def asked(users: Users, verb: str, kubeconfig: Any) -> Any:
    pod = ("no-such-pod",) if verb == "explain" else ()
    return users.run(verb, *pod, "--install-namespace", users.own, "--kubeconfig", str(kubeconfig))


@pytest.mark.parametrize("verb", ["explain", "nodes", "report"])
async def test_who_may_not_find_our_pods_reads_which_role_lets_him(users: Users, verb: str) -> None:
    done = asked(users, verb, await users.limited("view"))
    assert done.returncode == 1
    assert f"you may not list pods in namespace {users.own}. " in done.stderr
    assert "--role=greensched-explain" in done.stderr
    more = 1 if verb == "explain" else 0  # line: what the cluster knows of the pod
    assert len(done.stderr.splitlines()) == 1 + more and "HTTP" not in done.stderr


@pytest.mark.parametrize(
    ("verb", "component"),
    [("explain", "extender"), ("nodes", "extender"), ("report", "controller")],
)
async def test_who_may_not_ask_our_pods_reads_which_role_lets_him(
    users: Users, verb: str, component: str
) -> None:
    kubeconfig = await users.limited("view")
    await let_list_pods(users)
    await running(users, component)
    done = asked(users, verb, kubeconfig)
    assert done.returncode == 1
    assert f"{component}: you may not forward ports of pods in namespace {users.own}" in done.stderr
    assert "Handshake" not in done.stderr


@pytest.mark.parametrize("verb", [("nodes",), ("status",), ("release", "train")])
async def test_a_login_that_is_no_longer_good_is_reported_as_that(
    users: Users, verb: tuple[str, ...]
) -> None:
    kubeconfig = await users.limited("view")
    kubeconfig.write_text(kubeconfig.read_text().replace("token: ", "token: spoilt"))
    done = users.run(*verb, "--kubeconfig", str(kubeconfig))
    assert done.returncode == 1
    assert "the API server does not accept your login (401)" in done.stderr
    assert "HTTP" not in done.stderr


@pytest.mark.parametrize("verb", [("nodes",), ("status",)], ids=["nodes", "status"])
async def test_a_login_plugin_that_fails_is_reported_as_such(
    users: Users, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    config = yaml.safe_load(users.kubeconfig.read_text())
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
        "command": "sh",
        "args": ["-c", "echo the session has expired >&2; exit 3"],
    }
    for user in config["users"]:
        user["user"] = {"exec": plugin}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    done = users.run(*verb, "--kubeconfig", str(path))
    assert done.returncode == 2, done.stderr
    told = "its login plugin failed: exec: process returned 3. the session has expired."
    assert told in done.stderr and len(done.stderr.splitlines()) == 1
