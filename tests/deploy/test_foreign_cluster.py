"""Which clusters `make e2e KUBECONFIG=…` takes, and which it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from greensched_core.errors import BadInput
from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.end_to_end.clusters import Capabilities, ClusterAccess
from greensched_testbed.end_to_end.foreign_cluster import (
    EXTENDER_IMAGE,
    KUBECONFIG,
    foreign_cluster,
)
from greensched_testbed.end_to_end.release import DEFINITIONS, REMOVALS, installed, remove_all
from greensched_testbed.end_to_end.two_grids import publish_grids

CRDS = Path(__file__).parents[2] / "deploy/helm/greensched/files/crds"

if TYPE_CHECKING:
    from tests.deploy.conftest import Installation, Run


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One of this module's own, on which no other test has installed anything."""
    with ControlPlane(ControlPlaneOptions(kwok=False, scheduler=False)) as plane:
        yield plane


@pytest.fixture
def named(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control plane is the cluster that is named."""
    monkeypatch.setenv(KUBECONFIG, str(control_plane.kubeconfig))


@pytest.fixture
def without_operator(helm: Run, kubectl: Run) -> Iterator[None]:
    """A release where tests would install theirs; it has no webhook."""
    where = ("--namespace", "greensched")
    told = ("--create-namespace", "--take-ownership", "--set", "operator.enabled=false")
    made = helm("upgrade", "--install", "greensched", "CHART", *where, *told)
    assert made.returncode == 0, made.stderr
    yield
    helm("uninstall", "greensched", *where, "--no-hooks", "--ignore-not-found")
    kubectl("delete", "namespace", "greensched", "--ignore-not-found")


@pytest.mark.helm
@pytest.mark.controlplane
@pytest.mark.usefixtures("named")
def test_a_cluster_without_greensched_is_taken(tmp_path: Path) -> None:
    assert foreign_cluster(tmp_path).can.kubelet_metrics


@pytest.mark.helm
@pytest.mark.controlplane
@pytest.mark.usefixtures("named")
def test_an_installation_in_any_namespace_is_left_alone(
    installation: Installation, tmp_path: Path
) -> None:
    installation.upgrade()
    with pytest.raises(BadInput, match="already: the MutatingWebhookConfiguration greensched"):
        foreign_cluster(tmp_path)


@pytest.mark.helm
@pytest.mark.controlplane
@pytest.mark.usefixtures("named", "without_operator")
def test_a_release_without_a_webhook_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the release greensched in the namespace greensched"):
        foreign_cluster(tmp_path)


@pytest.mark.helm
@pytest.mark.controlplane
@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("kind", "name", "manifest"),
    [
        pytest.param("CustomResourceDefinition", "gridsignals.greensched.io",
                     (CRDS / "gridsignals.yaml").read_text(), id="definition"),
        pytest.param("Namespace", "greensched",
                     '{"apiVersion": "v1", "kind": "Namespace",'
                     ' "metadata": {"name": "greensched"}}', id="namespace"),
    ],
)  # fmt: skip
def test_what_an_uninstall_left_is_left_alone(
    kubectl: Run, tmp_path: Path, kind: str, name: str, manifest: str
) -> None:
    for each in REMOVALS:
        kubectl(*each)
    kubectl("create", "-f", "-", stdin=manifest)
    with pytest.raises(BadInput, match=f"already: the {kind} {name}"):
        foreign_cluster(tmp_path)


@pytest.mark.helm
@pytest.mark.controlplane
@pytest.mark.usefixtures("named", "without_operator")
def test_all_that_tests_made_is_removed(control_plane: ControlPlane, tmp_path: Path) -> None:
    programs = control_plane.programs
    can = Capabilities("a control plane")
    cluster = ClusterAccess(
        control_plane.kubeconfig, programs / "kubectl", programs / "helm", tmp_path, can
    )
    publish_grids(cluster)
    remove_all(cluster)
    assert installed(cluster) == ""


def test_all_definitions_are_known() -> None:
    found = {yaml.safe_load(each.read_text())["metadata"]["name"] for each in CRDS.iterdir()}
    assert found == set(DEFINITIONS)


def test_a_tilde_that_the_shell_left_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(KUBECONFIG, "~/.kube/kind")
    with pytest.raises(BadInput, match=f"there is no file {tmp_path}/.kube/kind"):
        foreign_cluster(tmp_path)


@pytest.mark.parametrize("image", ["registry:5000/extender", "extender", "extender@sha256:ab"])
def test_an_image_without_a_tag_is_refused(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kubeconfig").touch()
    monkeypatch.setenv(KUBECONFIG, str(tmp_path / "kubeconfig"))
    monkeypatch.setenv(EXTENDER_IMAGE, image)
    with pytest.raises(BadInput, match=f"{EXTENDER_IMAGE}: {image} has no tag"):
        foreign_cluster(tmp_path)
