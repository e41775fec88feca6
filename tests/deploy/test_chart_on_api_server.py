"""The chart on a real API server: installed, upgraded, uninstalled; its rights; its GridSignal."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_testbed.controlplane import ControlPlane

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
Helm = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parents[2]
KIND = ROOT / "deploy" / "kind"
NAMESPACE = "greensched-chart"
RELEASE = "greensched"
OUR_KINDS = (
    "deployments,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,"
    "networkpolicies,clusterroles,clusterrolebindings,mutatingwebhookconfigurations"
)
# No node is there to run what starts held work before an uninstall.
NO_HOOK = ["--set", "operator.uninstall.release=false"]
# Every option that needs no foreign CRD (ServiceMonitor and Certificate do).
ALL_OPTIONS = [
    *["--set", "extender.bind.enabled=true", "--set", "extender.powerLimits.enabled=true"],
    *["--set", "networkPolicy.enabled=true", "--set", "tls.enabled=true"],
    *["--set", "tls.existingSecret=server", "--set", "tls.client.enabled=true"],
    *["--set", "tls.client.existingSecret=client", "--set", "extender.bundleConfigMap=bundle"],
    *["--set-json", 'extender.staticZones={"DE":{"carbonGramsPerKwh":380}}'],
    *["--set-json", 'extender.tolerations=[{"key":"a","operator":"Exists"}]'],
    *["--set-json", 'imagePullSecrets=[{"name":"registry"}]'],
    *["--set-json", 'operator.webhook.namespaceSelector={"matchLabels":{"team":"a"}}'],
    *["--set-json", 'operator.webhook.excludedNamespaces=["payments"]'],
    *["--set", "operator.uninstall.release=true", "--set", "policy.mode=off"],
    *["--set", "policy.spec.defaultDelay=6h"],
]


def upgraded(helm: Helm, *arguments: str) -> None:
    result = helm(
        *["upgrade", "--install", RELEASE, "CHART", "--namespace", NAMESPACE],
        *["--create-namespace", "--take-ownership", *NO_HOOK, *arguments],
    )
    assert result.returncode == 0, result.stderr


@pytest.fixture
def release(helm: Helm, kubectl: Kubectl) -> Iterator[None]:
    """The chart with its default values, gone afterwards."""
    upgraded(helm)
    yield
    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found", "--no-hooks")
    kubectl("delete", "gridsignals", "zz", "zz-north", "de", "se-se3", "--ignore-not-found")


def ours(kubectl: Kubectl) -> set[str]:
    """Kind/name of everything in the cluster that carries the release's label."""
    result = kubectl(
        *["get", OUR_KINDS, "--all-namespaces", "-o", "name"],
        *["-l", f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/part-of=greensched"],
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def extender_weight(kubectl: Kubectl) -> int:
    result = kubectl("get", "configmap", "greensched-scheduler", "-n", NAMESPACE, "-o", "json")
    config: dict[str, Any] = yaml.safe_load(json.loads(result.stdout)["data"]["config.yaml"])
    weight: int = config["extenders"][0]["weight"]
    return weight


@pytest.mark.usefixtures("release")
def test_an_upgrade_changes_the_weight_and_an_uninstall_leaves_only_the_crd(
    helm: Helm, kubectl: Kubectl
) -> None:
    assert extender_weight(kubectl) == 10
    upgraded(helm, "--set", "scheduler.extenderWeight=3")
    assert extender_weight(kubectl) == 3
    assert len(ours(kubectl)) > 10

    result = helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
    assert result.returncode == 0, result.stderr
    assert ours(kubectl) == set()
    assert kubectl("get", "crd", "gridsignals.greensched.io").returncode == 0


@pytest.mark.usefixtures("release")
def test_the_api_server_accepts_every_option_at_once(helm: Helm) -> None:
    upgraded(helm, *ALL_OPTIONS)


def test_a_service_monitor_without_its_definition_is_refused_by_the_values_name(
    helm: Helm,
) -> None:
    result = helm(
        *["upgrade", "--install", RELEASE, "CHART", "--namespace", NAMESPACE],
        *["--create-namespace", "--set", "serviceMonitor.enabled=true"],
    )
    assert result.returncode != 0
    assert "serviceMonitor.enabled needs the Prometheus operator" in result.stderr
    assert "no matches for kind" not in result.stderr


@pytest.mark.usefixtures("release")
def test_an_upgrade_upgrades_the_crd_too(helm: Helm, kubectl: Kubectl) -> None:
    stale = '{"spec":{"names":{"shortNames":["stale"]}}}'
    kubectl("patch", "crd", "gridsignals.greensched.io", "--type=merge", "-p", stale)
    upgraded(helm, "--force-conflicts")
    shown = kubectl("get", "crd", "gridsignals.greensched.io", "-o", "jsonpath={.spec.names}")
    assert json.loads(shown.stdout)["shortNames"] == ["gsig"]


def allowed(kubectl: Kubectl, account: str, verb: str, what: str, *where: str) -> bool:
    """Ask the API server whether the chart's ServiceAccount may do that."""
    user = f"system:serviceaccount:{NAMESPACE}:greensched-{account}"
    answer = kubectl("auth", "can-i", verb, what, f"--as={user}", *where).stdout.strip()
    assert answer in {"yes", "no"}, answer
    return answer == "yes"


HERE = ("-n", NAMESPACE)
ELSEWHERE = ("-n", "kube-system")
BINDING = ("--subresource=binding",)  # "pods/binding" would ask about a pod named binding


@pytest.mark.usefixtures("release")
def test_each_account_may_do_what_it_needs_and_no_more(kubectl: Kubectl) -> None:
    table = [
        ("extender", "watch", "nodes", (), True),
        ("extender", "list", "pods", ("-A",), True),
        ("extender", "watch", "gridsignals.greensched.io", (), True),
        ("extender", "watch", "greenpolicies.greensched.io", ("-A",), True),
        ("extender", "watch", "jobs.batch", ("-A",), True),
        ("extender", "list", "cronjobs.batch", ("-A",), True),
        ("extender", "get", "jobs.batch", HERE, False),
        ("extender", "patch", "jobs.batch", HERE, False),
        ("extender", "get", "nodes", (), False),
        ("extender", "get", "pods", HERE, False),
        ("extender", "update", "gridsignals.greensched.io", (), False),
        ("extender", "create", "pods", (*BINDING, *HERE), False),
        ("extender", "delete", "pods", HERE, False),
        ("extender", "create", "pods", HERE, False),
        ("extender", "patch", "nodes", (), False),
        ("extender", "get", "secrets", HERE, False),
        ("extender", "watch", "configmaps", HERE, True),
        ("extender", "list", "configmaps", ELSEWHERE, False),
        ("scheduler", "create", "pods", (*BINDING, *ELSEWHERE), True),
        ("scheduler", "patch", "pods", ("--subresource=status", *HERE), True),
        ("scheduler", "create", "events.events.k8s.io", HERE, True),
        ("scheduler", "watch", "persistentvolumeclaims", ("-A",), True),
        ("scheduler", "patch", "persistentvolumes", (), True),
        ("scheduler", "create", "leases.coordination.k8s.io", HERE, True),
        ("scheduler", "update", "leases.coordination.k8s.io/greensched-scheduler", HERE, True),
        ("scheduler", "update", "leases.coordination.k8s.io/another", HERE, False),
        ("scheduler", "get", "configmaps/extension-apiserver-authentication", ELSEWHERE, True),
        ("scheduler", "get", "configmaps", HERE, False),
        ("scheduler", "get", "secrets", HERE, False),
        ("scheduler", "create", "pods", HERE, False),
        ("scheduler", "delete", "nodes", (), False),
    ]
    wrong = [
        f"{account} {verb} {what} {' '.join(where)}: want {want}"
        for account, verb, what, where, want in table
        if allowed(kubectl, account, verb, what, *where) is not want
    ]
    assert wrong == []


@pytest.mark.usefixtures("release")
def test_with_bind_on_the_extender_may_bind_and_still_not_delete(
    helm: Helm, kubectl: Kubectl
) -> None:
    upgraded(
        helm,
        "--set",
        "extender.bind.enabled=true,extender.bind.allowWithoutClientCertificates=true",
    )
    assert allowed(kubectl, "extender", "create", "pods", *BINDING, *HERE)
    assert not allowed(kubectl, "extender", "delete", "pods", *HERE)


def grid_signal(name: str, zone: str, **spec: str) -> str:
    return json.dumps(
        {
            "apiVersion": "greensched.io/v1alpha1",
            "kind": "GridSignal",
            "metadata": {"name": name},
            "spec": {"zone": zone, **spec},
        }
    )


def status_complaint(kubectl: Kubectl, status: dict[str, Any]) -> str:
    """Write the status of GridSignal zz; return the API server's complaint, or nothing."""
    patch = json.dumps({"status": status})
    result = kubectl(
        "patch", "gridsignal", "zz", "--subresource=status", "--type=merge", "-p", patch
    )
    return result.stderr


@pytest.mark.usefixtures("release")
def test_a_grid_signal_is_refused_with_a_sentence_that_helps(kubectl: Kubectl) -> None:
    def created(name: str, zone: str, **spec: str) -> str:
        return kubectl("create", "-f", "-", stdin=grid_signal(name, zone, **spec)).stderr

    assert kubectl("wait", "--for=condition=Established", "crd/gridsignals.greensched.io")
    assert created("zz", "ZZ", currency="EUR") == ""
    assert created("zz-north", "ZZ_NORTH") == ""
    assert "lower case" in created("berlin", "DE")
    assert "three capital letters" in created("yy", "YY", currency="euro")

    def current(**values: Any) -> str:
        return status_complaint(kubectl, {"current": values})

    assert "carbonGramsPerKwh cannot be negative" in current(carbonGramsPerKwh=-1)
    assert "grams per kWh" in current(carbonGramsPerKwh=380_000)
    assert current(carbonGramsPerKwh=None, pricePerMwh=-12.5) == "", "negative prices are real"
    late, early = {"start": "2026-01-01T01:00:00Z"}, {"start": "2026-01-01T00:00:00Z"}
    assert "in the order" in status_complaint(kubectl, {"forecast": [late, early]})
    end = "2026-01-01T00:30:00Z"
    complaint = status_complaint(kubectl, {"forecast": [early, late], "forecastEnd": end})
    assert "forecastEnd must be later" in complaint


@pytest.mark.usefixtures("release")
def test_a_grid_signal_shows_what_matters_in_one_line(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=grid_signal("zz", "ZZ", currency="EUR"))
    values = {"carbonGramsPerKwh": 123.5, "pricePerMwh": 45}
    observed = {"source": "static", "observedAt": "2026-01-01T00:00:00.5Z", "current": values}
    assert status_complaint(kubectl, observed) == ""
    header, row = kubectl("get", "gridsignals", "zz").stdout.splitlines()
    assert header.split() == ["NAME", "ZONE", "CARBON", "PRICE", "SOURCE", "OBSERVED", "AGE"]
    assert row.split()[:5] == ["zz", "ZZ", "123.5", "45", "static"]


@pytest.mark.usefixtures("release")
def test_the_signals_of_kind_are_published_also_after_the_example_of_one(
    kubectl: Kubectl, control_plane: ControlPlane
) -> None:
    for file in (ROOT / "examples/02-grid-signal.yaml", KIND / "gridsignals.yaml"):
        applied = kubectl("apply", "-f", str(file))
        assert applied.returncode == 0, applied.stderr
    published = subprocess.run(
        [str(KIND / "publish-signal.sh"), "de", "380", "92"],
        env={
            "PATH": f"{control_plane.programs}:{os.environ['PATH']}",
            "HOME": str(control_plane.folder / "home"),  # kubectl keeps a cache there
            "KUBECONFIG": str(control_plane.kubeconfig),
        },
        capture_output=True,
        text=True,
    )
    assert published.returncode == 0, published.stderr
    row = kubectl("get", "gridsignals", "de", "--no-headers").stdout.split()
    assert row[:5] == ["de", "DE", "380", "92", "example"]
