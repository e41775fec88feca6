"""The real kube-scheduler reads the chart's configuration, strictly, and runs with it."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_testbed.certificates import Authority
from greensched_testbed.controlplane import ControlPlane

pytestmark = [pytest.mark.helm, pytest.mark.controlplane]

Render = Callable[..., list[dict[str, Any]]]
Run = Callable[..., subprocess.CompletedProcess[str]]

# Nobody listens there; reading the configuration connects to nothing.
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
"""
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "chart-profile", "labels": {"greensched.io/chart-profile": "yes"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "chart-profile", "namespace": "default"},
    "spec": {
        "schedulerName": "greensched",
        "nodeSelector": {"greensched.io/chart-profile": "yes"},
        "tolerations": [{"operator": "Exists"}],  # a new node is not ready at once
        "containers": [{"name": "pause", "image": "pause"}],
    },
}
TLS = [
    *["--set", "tls.enabled=true,tls.existingSecret=s"],
    *["--set", "tls.client.enabled=true,tls.client.existingSecret=c"],
]


def config_text(objects: list[dict[str, Any]]) -> str:
    """Return the chart's KubeSchedulerConfiguration, word for word."""
    (text,) = (o["data"]["config.yaml"] for o in objects if "config.yaml" in o.get("data", {}))
    assert isinstance(text, str)
    return text


@pytest.fixture
def understood(
    render: Render, kube_scheduler: Path, tmp_path: Path
) -> Callable[..., dict[str, Any]]:
    """Return the configuration as the real kube-scheduler understood it."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)

    def read(*arguments: str) -> dict[str, Any]:
        chart = config_text(render(*arguments))
        given, written = tmp_path / "config.yaml", tmp_path / "understood.yaml"
        outside = chart.replace(
            "clientConnection:", f"clientConnection:\n  kubeconfig: {kubeconfig}"
        )
        given.write_text(outside.replace("/etc/greensched", str(tmp_path)))
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
        pytest.param(
            [
                "--set",
                "extender.bind.enabled=true,extender.bind.allowWithoutClientCertificates=true",
            ],
            id="bind",
        ),
        pytest.param(
            [
                "--set",
                "extender.powerLimits.enabled=true,extender.replicas=0,scheduler.extenderUrl=http://e",
            ],
            id="power-limits",
        ),
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


def test_the_real_scheduler_takes_certificates_from_where_the_chart_puts_them(
    understood: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "extender-ca")
    pair = authority.issue_client("scheduler", "greensched-scheduler")
    (tmp_path / "client").mkdir()
    shutil.copy(pair.certificate, tmp_path / "client" / "tls.crt")
    shutil.copy(pair.key, tmp_path / "client" / "tls.key")
    (extender,) = understood(*TLS)["extenders"]
    assert extender["enableHTTPS"] is True
    assert extender["tlsConfig"]["serverName"] == "greensched-extender.greensched.svc"


def test_the_chart_s_account_is_enough_to_run_and_an_absent_extender_blocks_nothing(
    control_plane: ControlPlane, helm: Run, kubectl: Run, render: Render
) -> None:
    url = "scheduler.extenderUrl=http://127.0.0.1:1"  # nobody listens there
    release = ("greensched", "CHART", "--namespace", "greensched", "--take-ownership")
    installed = helm("upgrade", "--install", *release, "--create-namespace", "--set", url)
    assert installed.returncode == 0, installed.stderr
    account = control_plane.kubeconfig_for_service_account("greensched", "greensched-scheduler")
    scheduler = "chart-profile"
    try:
        text = config_text(render("--set", url))
        control_plane.start_scheduler(scheduler, text, account)
        for item in (NODE, POD):
            created = kubectl("create", "-f", "-", stdin=json.dumps(item))
            assert created.returncode == 0, created.stderr
        bound = kubectl(
            "wait", "pod/chart-profile", "--for=condition=PodScheduled", "--timeout=30s"
        )
        assert bound.returncode == 0, bound.stderr
        log = (control_plane.folder / "logs" / f"{scheduler}.log").read_text()
        assert "forbidden" not in log
    finally:
        if scheduler in control_plane.processes:
            control_plane.stop(scheduler)
        kubectl(
            "delete", "pod/chart-profile", "node/chart-profile", "--ignore-not-found", "--force"
        )
        helm("uninstall", "greensched", "--namespace", "greensched", "--no-hooks")
