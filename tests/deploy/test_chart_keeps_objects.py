"""Users' policies and profiles: kept through upgrade and uninstall, and who may write them."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

Run = Callable[..., subprocess.CompletedProcess[str]]

NAMESPACE = "greensched-keeps"
RELEASE = "greensched"
KEPT = ("greenpolicy/kept", "jobpowerprofile/kept")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "05-green-policy.yaml"
OBJECTS = """
apiVersion: greensched.io/v1alpha1
kind: GreenPolicy
metadata: {name: kept}
spec: {mode: enforce, defaultDelay: 6h}
---
apiVersion: greensched.io/v1alpha1
kind: JobPowerProfile
metadata: {name: kept}
spec: {work: [{duration: 1h, watts: 200}]}
"""


def upgraded(helm: Run, *arguments: str) -> None:
    result = helm(
        *["upgrade", "--install", RELEASE, "CHART", "--namespace", NAMESPACE],
        # No node is there to run what starts held work before an uninstall.
        *["--set", "operator.uninstall.release=false"],
        *["--create-namespace", "--take-ownership", *arguments],
    )
    assert result.returncode == 0, result.stderr


@pytest.fixture
def release(helm: Run, kubectl: Run) -> Iterator[None]:
    """The chart with its default values, gone afterwards with what was made."""
    upgraded(helm)
    for plural in ("greenpolicies", "jobpowerprofiles"):
        kubectl("wait", "--for=condition=Established", f"crd/{plural}.greensched.io")
    yield
    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found", "--no-hooks")
    kubectl("delete", *KEPT, "-n", NAMESPACE, "--ignore-not-found")
    kubectl("delete", "-f", str(EXAMPLE), "--ignore-not-found")


def kept(kubectl: Run) -> dict[str, str]:
    """Return uid and resource version of what was made: neither deleted nor touched."""
    found = kubectl("get", *KEPT, "-n", NAMESPACE, "-o", "json")
    assert found.returncode == 0, found.stderr
    items = [item["metadata"] for item in json.loads(found.stdout)["items"]]
    return {item["uid"]: item["resourceVersion"] for item in items}


@pytest.mark.usefixtures("release")
def test_an_upgrade_and_an_uninstall_leave_policies_and_profiles(helm: Run, kubectl: Run) -> None:
    made = kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=OBJECTS)
    assert made.returncode == 0, made.stderr
    before = kept(kubectl)
    assert len(before) == 2
    upgraded(helm, "--set", "scheduler.extenderWeight=3")
    assert kept(kubectl) == before
    assert helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait").returncode == 0
    assert kept(kubectl) == before
    upgraded(helm)
    assert kept(kubectl) == before


@pytest.mark.usefixtures("release")
def test_the_example_is_taken_as_it_stands(kubectl: Run) -> None:
    kubectl("create", "namespace", "greensched")  # the operator's, unless a test made it before
    applied = kubectl("apply", "--validate=strict", "-f", str(EXAMPLE))
    assert applied.returncode == 0, applied.stderr
    rows = kubectl("get", "greenpolicies", "-A", "--no-headers").stdout.splitlines()
    shown = {tuple(row.split()[:3]) for row in rows}
    assert {
        ("greensched", "default", "shadow"),
        ("default", "default", "enforce"),
        ("default", "nightly", "enforce"),
    } <= shown


@pytest.mark.usefixtures("release")
def test_the_clusters_own_roles_include_policies_and_profiles(kubectl: Run) -> None:
    def aggregated(role: str) -> list[str]:
        label = f"rbac.authorization.k8s.io/aggregate-to-{role}=true"
        shown = kubectl("get", "clusterroles", "-l", label, "-o", "name").stdout
        return [name for name in shown.split() if "greensched" in name]

    assert aggregated("view") == ["clusterrole.rbac.authorization.k8s.io/greensched-view"]
    assert aggregated("edit") == ["clusterrole.rbac.authorization.k8s.io/greensched-edit"]


@pytest.mark.usefixtures("release")
def test_a_role_lets_users_ask_our_pods_and_do_nothing_else_there(kubectl: Run) -> None:
    bound = ("create", "rolebinding", "asks", "--role=greensched-explain", "--user=asker")
    kubectl(*bound, "-n", NAMESPACE)

    def may(verb: str, what: str, *part: str) -> str:
        asked = ("auth", "can-i", verb, what, *part, "--as=asker", "-n", NAMESPACE)
        return kubectl(*asked).stdout.strip()

    assert may("list", "pods") == "yes"
    assert may("create", "pods", "--subresource=portforward") == "yes"
    for verb, what in (("delete", "pods"), ("get", "secrets"), ("get", "configmaps")):
        assert may(verb, what) == "no"


@pytest.mark.usefixtures("release")
def test_a_user_of_a_namespace_may_write_policies_there_and_no_status(kubectl: Run) -> None:
    def may(role: str, verb: str, what: str, *part: str) -> str:
        asked = ("auth", "can-i", verb, f"{what}.greensched.io", *part, f"--as={role}er")
        return kubectl(*asked, "-n", NAMESPACE).stdout.strip()

    for role in ("view", "edit"):
        bound = ("create", "rolebinding", f"users-{role}", f"--clusterrole=greensched-{role}")
        kubectl(*bound, f"--user={role}er", "-n", NAMESPACE)
    assert may("view", "list", "greenpolicies") == "yes"
    assert may("view", "patch", "greenpolicies") == "no"
    assert may("edit", "create", "jobpowerprofiles") == "yes"
    assert may("edit", "patch", "greenpolicies") == "yes"
    assert may("edit", "patch", "greenpolicies", "--subresource=status") == "no"
    assert may("edit", "patch", "gridsignals") == "no"
