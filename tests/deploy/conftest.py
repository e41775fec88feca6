"""The chart, and the real Helm, kubectl and kube-scheduler to try it with."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.controlplane import ControlPlane

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "greensched"

Run = Callable[..., subprocess.CompletedProcess[str]]
Render = Callable[..., list[dict[str, Any]]]


def runner(program: Path, environment: dict[str, str]) -> Run:
    """Return a function that runs the program; CHART among the arguments is the chart's folder."""

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(program), *(str(CHART) if part == "CHART" else part for part in arguments)]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=environment
        )

    return run


def helm_environment(home: Path, kubeconfig: Path) -> dict[str, str]:
    """Return an environment that holds none of the user's own Helm and Kubernetes settings."""
    folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    path = os.environ["PATH"]
    return {"PATH": path, "HOME": str(home), "KUBECONFIG": str(kubeconfig), **folders}


@pytest.fixture(scope="session")
def values() -> dict[str, Any]:
    """values.yaml, parsed."""
    parsed: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return parsed


@pytest.fixture(scope="session")
def helm_offline(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The real Helm, without any cluster."""
    home = tmp_path_factory.mktemp("helm")
    return runner(control_plane_programs() / "helm", helm_environment(home, home / "no-kubeconfig"))


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    """The real kube-scheduler's program."""
    return control_plane_programs() / "kube-scheduler"


@pytest.fixture(scope="session")
def render(helm_offline: Run) -> Render:
    """Return the objects that the chart renders to with further `helm template` arguments."""

    def run(*arguments: str) -> list[dict[str, Any]]:
        result = helm_offline(
            "template", "greensched", "CHART", "--namespace", "greensched", *arguments
        )
        assert result.returncode == 0, result.stderr
        return [document for document in yaml.safe_load_all(result.stdout) if document]

    return run


@pytest.fixture(scope="session")
def refusal(helm_offline: Run) -> Callable[..., str]:
    """Return what Helm says when it refuses the values; fail when it takes them."""

    def run(*arguments: str) -> str:
        result = helm_offline("template", "greensched", "CHART", *arguments)
        assert result.returncode != 0, "Helm took the values"
        return result.stderr

    return run


@pytest.fixture
def kubectl(control_plane: ControlPlane, tmp_path: Path) -> Run:
    """Kubectl on the real control plane."""
    environment = helm_environment(tmp_path, control_plane.kubeconfig)
    return runner(control_plane.programs / "kubectl", environment)


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Run:
    """Helm on the real control plane."""
    environment = helm_environment(tmp_path, control_plane.kubeconfig)
    return runner(control_plane.programs / "helm", environment)
