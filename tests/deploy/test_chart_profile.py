"""The real kube-scheduler reads the chart's configuration; it decodes strictly."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

Render = Callable[..., list[dict[str, Any]]]

# Nobody listens there; reading the configuration connects to nothing.
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
"""
TLS = [
    *["--set", "tls.enabled=true,tls.existingSecret=s"],
    *["--set", "tls.client.enabled=true,tls.client.existingSecret=c"],
]


@pytest.fixture
def understood(
    render: Render, kube_scheduler: Path, tmp_path: Path
) -> Callable[..., dict[str, Any]]:
    """Return the configuration as the real kube-scheduler understood it."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)

    def read(*arguments: str) -> dict[str, Any]:
        objects = render("--set", f"scheduler.kubeconfig={kubeconfig}", *arguments)
        (text,) = (o["data"]["config.yaml"] for o in objects if "config.yaml" in o.get("data", {}))
        given, written = tmp_path / "config.yaml", tmp_path / "understood.yaml"
        given.write_text(text)
        result = subprocess.run(
            [kube_scheduler, f"--config={given}", f"--write-config-to={written}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert result.returncode == 0, result.stderr
        assert "unknown field" not in result.stderr, result.stderr
        config: dict[str, Any] = yaml.safe_load(written.read_text())
        return config

    return read


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="default"),
        pytest.param(["--set", "extender.bind.enabled=true"], id="bind"),
        pytest.param(["--set", "extender.powerLimits.enabled=true"], id="power-limits"),
        pytest.param(["--set", "scheduler.defaultSpread=false"], id="no-default-spread"),
        pytest.param(["--set", "scheduler.scoreWeights.NodeAffinity=0"], id="fewer-scores"),
        pytest.param(["--set", "scheduler.scoreWeights.ImageLocality=4"], id="more-scores"),
        pytest.param(["--set", "scheduler.percentageOfNodesToScore=100"], id="all-nodes"),
    ],
)
def test_the_real_scheduler_accepts_the_configuration(
    understood: Callable[..., dict[str, Any]], arguments: list[str]
) -> None:
    (extender,) = understood(*arguments)["extenders"]
    assert (extender["ignorable"], extender["nodeCacheCapable"]) == (True, True)
    assert extender["httpTimeout"] == "200ms"


def test_the_real_scheduler_keeps_the_filters_of_switched_off_scores(
    understood: Callable[..., dict[str, Any]],
) -> None:
    (profile,) = understood()["profiles"]
    everywhere = {plugin["name"] for plugin in profile["plugins"]["multiPoint"]["enabled"]}
    assert "NodeResourcesFit" in everywhere, "a pod must still fit"
    assert profile["plugins"]["filter"] == {}
    assert profile["schedulerName"] == "greensched"


def test_the_real_scheduler_reads_the_tls_settings(
    understood: Callable[..., dict[str, Any]],
) -> None:
    # The files lie in the pod only; the scheduler does not open them to read its configuration.
    (extender,) = understood(*TLS)["extenders"]
    assert extender["enableHTTPS"] is True
    assert extender["tlsConfig"]["certFile"] == "/etc/greensched/client/tls.crt"
