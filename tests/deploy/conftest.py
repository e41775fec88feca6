"""The chart, and the real Helm and kubectl to try it with."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "greensched"

Render = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def values() -> dict[str, Any]:
    """values.yaml, parsed."""
    parsed: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return parsed


@pytest.fixture(scope="session")
def helm_result() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The real Helm; CHART among the arguments is the chart's folder."""
    program = os.environ["TRY_HELM"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [program, *(str(CHART) if part == "CHART" else part for part in arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="session")
def helm(helm_result: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """Run Helm and return its output; fail with its complaint otherwise."""

    def run(*arguments: str) -> str:
        result = helm_result(*arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


@pytest.fixture(scope="session")
def render(helm: Callable[..., str]) -> Render:
    """Return the objects that the chart renders to with further `helm template` arguments."""

    def run(*arguments: str) -> list[dict[str, Any]]:
        text = helm("template", "greensched", "CHART", "--namespace", "greensched", *arguments)
        return [document for document in yaml.safe_load_all(text) if document]

    return run


@pytest.fixture(scope="session")
def refusal(helm_result: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """Return what Helm says when it refuses the values; fail when it takes them."""

    def run(*arguments: str) -> str:
        result = helm_result("template", "greensched", "CHART", *arguments)
        assert result.returncode != 0, "Helm took the values"
        return result.stderr

    return run


Run = Callable[..., subprocess.CompletedProcess[str]]


def _runner(program: str, kubeconfig: str) -> Run:
    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [program, *(str(CHART) if part == "CHART" else part for part in arguments)]
        environment = {**os.environ, "KUBECONFIG": kubeconfig}
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=environment
        )

    return run


@pytest.fixture
def kubectl() -> Run:
    """kubectl on the real control plane."""
    return _runner(os.environ["TRY_KUBECTL"], os.environ["TRY_KUBECONFIG"])


@pytest.fixture
def helm_on_cluster() -> Run:
    """Helm on the real control plane."""
    return _runner(os.environ["TRY_HELM"], os.environ["TRY_KUBECONFIG"])


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    """The real kube-scheduler's program."""
    return Path(os.environ["TRY_HELM"]).with_name("kube-scheduler")
