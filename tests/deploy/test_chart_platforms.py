"""The values files for EKS, GKE, AKS and machines of one's own, and what they are there for."""

import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.helm

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]
Run = Callable[..., subprocess.CompletedProcess[str]]

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "greensched"
PLATFORMS = sorted((CHART / "platforms").glob("*.yaml"))
NAMESPACE = "greensched-platforms"


def one(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    (found,) = (o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)
    return found


def values(platform: str) -> list[str]:
    return ["--values", str(CHART / "platforms" / f"{platform}.yaml")]


def webhook(objects: Objects) -> dict[str, Any]:
    pod: dict[str, Any] = one(objects, "Deployment", "greensched-webhook")["spec"]["template"]
    spec: dict[str, Any] = pod["spec"]
    return spec


def leaves(given: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in given.items():
        name = f"{path}.{key}".lstrip(".")
        if isinstance(value, dict) and name != "extender.settings.zoneMap":
            yield from leaves(value, name)
        else:
            yield name


def test_there_is_a_file_for_each_platform() -> None:
    assert [each.stem for each in PLATFORMS] == ["aks", "eks", "gke", "on-prem"]


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda each: each.stem)
def test_the_real_api_server_takes_what_a_platforms_values_render_to(
    path: Path, render: Render, kubectl: Run
) -> None:
    kubectl("create", "namespace", NAMESPACE)
    objects = render("--values", str(path), "--namespace", NAMESPACE)
    told = kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda each: each.stem)
def test_whatever_a_platform_sets_says_why(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# Values for ")
    lines = [line.strip() for line in text.splitlines()]
    explained = {line.partition(":")[0] for above, line in pairwise(lines) if above[:1] == "#"}
    bare = {name for name in leaves(yaml.safe_load(text)) if not explained & set(name.split("."))}
    assert bare == set()


def test_on_gke_the_webhook_listens_where_a_private_clusters_firewall_lets_the_server_in(
    render: Render,
) -> None:
    (container,) = webhook(render(*values("gke")))["containers"]
    assert {each["name"]: each["containerPort"] for each in container["ports"]}["webhook"] == 10250


def pod_specs(objects: Objects) -> dict[str, dict[str, Any]]:
    """Return the spec of every pod that the chart makes, hooks too, by its owner's name."""
    pods = {o["metadata"]["name"]: o for o in objects if o["kind"] == "Pod"}
    owners = (o for o in objects if o["kind"] in ("Deployment", "Job"))
    templates = {o["metadata"]["name"]: o["spec"]["template"] for o in owners}
    return {name: each["spec"] for name, each in (pods | templates).items()}


def test_on_gke_no_pod_needs_a_quota_for_its_priority(render_with_tests: Render) -> None:
    pods = pod_specs(render_with_tests(*values("gke")))
    assert len(pods) == 7
    asking = [name for name, spec in pods.items() if "priorityClassName" in spec]
    assert asking == []


def test_on_machines_of_ones_own_the_ledgers_claim_is_the_examples_and_its_files_the_controllers(
    render: Render, kubectl: Run
) -> None:
    example = CHART.parents[2] / "examples" / "09-ledger-claim.yaml"
    told = kubectl("apply", "--dry-run=server", "-f", str(example))
    assert told.returncode == 0, told.stderr
    claim = yaml.safe_load(example.read_text())
    spec = pod_specs(render(*values("on-prem")))["greensched-controller"]
    (ledger,) = (each for each in spec["volumes"] if each["name"] == "ledger")
    assert ledger["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsUser"] == 65532


def test_on_aks_the_enforcer_is_asked_to_leave_the_webhook_to_helm(render: Render) -> None:
    configuration = one(render(*values("aks")), "MutatingWebhookConfiguration", "greensched")
    assert configuration["metadata"]["annotations"] == {"admissions.enforcer/disabled": "true"}


def test_on_eks_with_an_overlay_the_webhook_runs_in_its_nodes_network(render: Render) -> None:
    assert "hostNetwork" not in webhook(render(*values("eks")))
    objects = render(*values("eks"), "--set", "operator.webhook.hostNetwork=true")
    pod = webhook(objects)
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    deployment = one(objects, "Deployment", "greensched-webhook")
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0
    others = [o for o in objects if o["kind"] == "Deployment" and o != deployment]
    assert not any("hostNetwork" in o["spec"]["template"]["spec"] for o in others)


@pytest.mark.parametrize("platform", ["eks", "gke", "aks", "on-prem"])
def test_nodes_get_their_grid_zone_from_labels_that_the_platform_gives(
    render: Render, platform: str
) -> None:
    told = one(render(*values(platform)), "ConfigMap", "greensched-extender")["data"]
    assert "DE" in yaml.safe_load(told["GREENSCHED_EXTENDER_ZONE_MAP"]).values()
