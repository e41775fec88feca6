"""Which clusters `make e2e KUBECONFIG=…` takes, and which it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from greensched_core.errors import BadInput
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.end_to_end.foreign_cluster import (
    EXTENDER_IMAGE,
    KUBECONFIG,
    foreign_cluster,
)

if TYPE_CHECKING:
    from tests.deploy.conftest import Installation, Run


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
    helm("uninstall", "greensched", *where, "--no-hooks")
    kubectl("delete", "namespace", "greensched", "--wait=false")


@pytest.mark.helm
@pytest.mark.controlplane
@pytest.mark.usefixtures("named")
def test_a_cluster_without_greensched_is_taken(tmp_path: Path) -> None:
    assert foreign_cluster(tmp_path).can.outlives_tests


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
