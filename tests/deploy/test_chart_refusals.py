"""What Helm refuses before anything is sent to the cluster, and in which words."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.helm

Render = Callable[..., list[dict[str, Any]]]
Refusal = Callable[..., str]
Run = Callable[..., subprocess.CompletedProcess[str]]

SERVER_TLS = ["--set", "tls.enabled=true", "--set", "tls.existingSecret=server"]
MONITOR = ["--set", "serviceMonitor.enabled=true"]
CERT_MANAGER = [
    *["--set", "tls.enabled=true", "--set", "tls.certManager.enabled=true"],
    *["--set", "tls.certManager.issuerRef.name=ca"],
]
A_CLUSTER = ["--api-versions", "apiregistration.k8s.io/v1"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--set", "extender.replcas=3"], "'replcas' not allowed", id="misspelt"),
        pytest.param(["--set", "extendr.replicas=3"], "'extendr' not allowed", id="misspelt-group"),
        pytest.param(
            ["--set", "extender.settings.weightCarbn=3"], "'weightCarbn' not allowed", id="setting"
        ),
        pytest.param(
            ["--set", "scheduler.extenderTimeoutMilliseconds=600"],
            "/scheduler/extenderTimeoutMilliseconds': maximum: got 600, want 500",
            id="timeout-600ms",
        ),
        pytest.param(
            ["--set", "scheduler.name=default-scheduler"], "/scheduler/name", id="default-scheduler"
        ),
        pytest.param(
            ["--set", "extender.staticZones.DE.carbonGramsPerKwh=-1"],
            "minimum: got -1, want 0",
            id="negative-carbon",
        ),
        pytest.param(["--set", "tls.enabled=true"], "tls.enabled needs", id="tls-without-secret"),
        pytest.param(
            ["--set", "tls.client.enabled=true"], "needs tls.enabled", id="client-without-tls"
        ),
        pytest.param(
            ["--set", "extender.powerLimits.enabled=true"],
            "powerLimits.enabled needs tls.client.enabled",
            id="power-limits-for-anybody",
        ),
        pytest.param(
            ["--set", "extender.bind.enabled=true"],
            "bind.enabled needs tls.client.enabled",
            id="bind-for-anybody",
        ),
        pytest.param(
            ["--set", "extender.port=9000,extender.settings.explainPort=9000"],
            "both 9000: they must differ",
            id="one-port-twice",
        ),
        pytest.param(
            ["--kube-version", "1.31"], "no patch number", id="kube-version-without-patch"
        ),
        pytest.param(
            ["--set", r"extender.podLabels.app\.kubernetes\.io/name=mine"],
            "extender.podLabels: app.kubernetes.io/name is set by the chart",
            id="label-of-the-chart",
        ),
        pytest.param(
            ["--set", r"scheduler.podLabels.helm\.sh/chart=mine"],
            "scheduler.podLabels: helm.sh/chart is set by the chart",
            id="label-of-the-chart-on-the-scheduler",
        ),
        pytest.param(
            ["--set", "extender.podAnnotations.checksum/config=mine"],
            "extender.podAnnotations: checksum/config is set by the chart",
            id="annotation-of-the-chart",
        ),
        pytest.param(
            ["--set-string", r"extender.podAnnotations.greensched\.io/explain-port=1"],
            "extender.podAnnotations: greensched.io/explain-port is set by the chart",
            id="explain-port-as-annotation",
        ),
        pytest.param(
            ["--set", "scheduler.podAnnotations.checksum/config=mine"],
            "scheduler.podAnnotations: checksum/config is set by the chart",
            id="annotation-of-the-chart-on-the-scheduler",
        ),
        pytest.param(
            [*MONITOR, "--set", r"serviceMonitor.labels.app\.kubernetes\.io/instance=mine"],
            "serviceMonitor.labels: app.kubernetes.io/instance is set by the chart",
            id="label-of-the-chart-on-the-service-monitor",
        ),
        pytest.param(
            ["--set", "extender.settings.policy=least-carbn"],
            "/extender/settings/policy': value must be one of 'onnx', 'bin-pack'",
            id="misspelt-policy",
        ),
        pytest.param(
            ["--set", "extender.settings.fallbackPolicy=onnx"],
            "/extender/settings/fallbackPolicy': value must be one of 'bin-pack'",
            id="a-model-as-fallback",
        ),
        pytest.param(
            ["--set", "extender.settings.weightCarbon=much"],
            "/extender/settings/weightCarbon",
            id="no-number",
        ),
        pytest.param(
            ["--set", "extender.settings.utilisationRatio=1.5"],
            "/extender/settings/utilisationRatio",
            id="share-above-one",
        ),
        pytest.param(
            ["--set", "extender.settings.fallbackPolicy=nope"],
            "/extender/settings/fallbackPolicy",
            id="misspelt-fallback",
        ),
        pytest.param(
            ["--set", "extender.replicas=0"],
            "extender.replicas is 0: no extender would answer",
            id="no-extender",
        ),
        pytest.param(
            ["--set", "extender.replicas=-1"],
            "/extender/replicas",
            id="fewer-extenders-than-none",
        ),
        pytest.param(
            ["--set", "scheduler.replicas=0"],
            "every pod with schedulerName greensched would stay Pending",
            id="no-scheduler",
        ),
        pytest.param(
            ["--set", "extender.image.repository=registry.example.com/extender:0.1.0"],
            "/extender/image/repository",
            id="tag-in-the-repository",
        ),
        pytest.param(
            ["--set", "fullnameOverride=green.sched"],
            "/fullnameOverride",
            id="dot-in-a-services-name",
        ),
        pytest.param(
            ["--set", "scheduler.extenderUrl=http://a b"],
            "/scheduler/extenderUrl",
            id="blank-in-an-address",
        ),
        pytest.param(
            [*SERVER_TLS, "--set", "scheduler.extenderUrl=http://127.0.0.1:8888"],
            "begins with https://",
            id="tls-to-a-plain-address",
        ),
        pytest.param(
            ["--set", "scheduler.extenderUrl=https://127.0.0.1:8888"],
            "begins with https://, but tls.enabled is false",
            id="https-without-tls",
        ),
        pytest.param(
            ["--set", "scheduler.clientQps=5000000000"],
            "/scheduler/clientQps",
            id="calls-beyond-32-bits",
        ),
        pytest.param(
            ["--set-string", "extender.settings.modelBudgetMs=500.5"],
            "/extender/settings/modelBudgetMs",
            id="text-above-the-maximum",
        ),
        pytest.param(
            ["--set", "extender.settings.explainPort=80"],
            "/extender/settings/explainPort",
            id="port-of-root",
        ),
        pytest.param(
            ["--set", "extender.settings.signalMaxStaleS=60"],
            "signalMaxStaleS is shorter than signalFreshS",
            id="last-good-younger-than-fresh",
        ),
        pytest.param(
            ["--set", "extender.staticZones.DE.currency=EUR"],
            "/extender/staticZones/DE",
            id="zone-without-carbon-or-price",
        ),
        pytest.param(
            ["--set", "operator.releaser.replicas=0"],
            "operator.releaser.replicas is 0: held work would wait for ever",
            id="no-releaser",
        ),
        pytest.param(
            ["--set", "operator.controller.replicas=0"],
            "operator.controller.replicas is 0: work would be held without a plan",
            id="no-controller",
        ),
        pytest.param(
            ["--set", "operator.controller.ledger.persistentVolumeClaim=ledger"],
            "allows only one writer, but operator.controller.replicas is 2",
            id="one-volume-for-two",
        ),
        pytest.param(
            ["--set", "operator.healthPort=9443"], "both 9443: they must differ", id="one-port"
        ),
        pytest.param(
            ["--set", "operator.settings.ledgerPort=8080"],
            "operator.healthPort and operator.settings.ledgerPort are both 8080",
            id="one-port-for-ledger-and-health",
        ),
        pytest.param(
            [
                "--set",
                "operator.controller.replicas=1",
                "--set",
                "operator.controller.ledger.persistentVolumeClaim=ledger",
                "--set",
                "operator.controller.ledger.dsnSecret=dsn",
            ],
            "the ledger is kept in one place",
            id="two-ledgers",
        ),
        pytest.param(
            ["--set", "operator.settings.releaserGraceS=3600"],
            "/operator/settings/releaserGraceS': maximum: got 3,600, want 60",
            id="a-releaser-that-is-late",
        ),
        pytest.param(
            ["--set", "operator.webhook.url=http://10.0.0.5/mutate"],
            "/operator/webhook/url",
            id="webhook-without-tls",
        ),
        pytest.param(
            ["--set", "operator.settings.emergencyReleaseTimeoutS=600"],
            "/operator/settings/emergencyReleaseTimeoutS': maximum: got 600, want 230",
            id="longer-than-helm-waits",
        ),
        pytest.param(["--set", "policy.mode=enforced"], "'off', 'shadow'", id="misspelt-mode"),
        pytest.param(
            ["--set", "policy.spec.mode=enforce"], "/policy/spec", id="mode-where-it-is-not-read"
        ),
        pytest.param(
            ["--set", r"operator.podLabels.app\.kubernetes\.io/name=mine"],
            "operator.podLabels: app.kubernetes.io/name is set by the chart",
            id="label-of-the-chart-on-the-operator",
        ),
        pytest.param(
            ["--set-json", 'extender.settings.zoneMap={"europe-west3":""}'],
            "/extender/settings/zoneMap",
            id="zone-without-a-name",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    refusal: Refusal, arguments: list[str], sentence: str
) -> None:
    assert sentence in refusal(*arguments)


@pytest.mark.parametrize(
    ("release", "service"),
    [
        pytest.param("1st", "1st-greensched-extender", id="digit-first"),
        pytest.param("2greensched", "2greensched-extender", id="digit-before-the-charts-name"),
        pytest.param("green.sched", "green.sched-greensched-extender", id="dot"),
    ],
)
def test_a_release_whose_name_no_service_may_have_is_refused_until_it_gets_another(
    helm_offline: Run, release: str, service: str
) -> None:
    refused = helm_offline("template", release, "CHART")
    assert f"{service} cannot be the name of a Service" in refused.stderr
    named = helm_offline("template", release, "CHART", "--set", "fullnameOverride=first")
    assert named.returncode == 0, named.stderr


@pytest.mark.parametrize(
    "repository",
    [
        "extender",
        "registry.example.com/extender",
        "registry.example.com:5000/team/green_sched--extender",
        "localhost:5000/extender",
    ],
)
def test_a_repository_may_name_its_registrys_port(render: Render, repository: str) -> None:
    (deployment,) = (
        o
        for o in render("--set", f"extender.image.repository={repository}")
        if o["kind"] == "Deployment" and o["metadata"]["name"] == "greensched-extender"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith(f"{repository}:")


@pytest.mark.parametrize("component", ["extender", "scheduler"])
def test_who_runs_a_part_elsewhere_may_have_none_of_it_here(render: Render, component: str) -> None:
    elsewhere = "scheduler.extenderUrl=http://127.0.0.1:8888"
    replicas = {
        o["metadata"]["name"]: o["spec"]["replicas"]
        for o in render("--set", f"{component}.replicas=0,{elsewhere}")
        if o["kind"] == "Deployment"
    }
    assert replicas[f"greensched-{component}"] == 0


@pytest.mark.parametrize(
    ("option", "kind", "sentence"),
    [
        pytest.param(
            MONITOR,
            "monitoring.coreos.com/v1/ServiceMonitor",
            "serviceMonitor.enabled needs the Prometheus operator",
            id="service-monitor",
        ),
        pytest.param(
            CERT_MANAGER,
            "cert-manager.io/v1/Certificate",
            "tls.certManager.enabled needs cert-manager",
            id="certificate",
        ),
    ],
)
def test_an_option_whose_definition_the_cluster_lacks_is_refused_by_name(
    render: Render, refusal: Refusal, option: list[str], kind: str, sentence: str
) -> None:
    assert sentence in refusal(*option, *A_CLUSTER)
    with_definition = render(*option, *A_CLUSTER, "--api-versions", kind)
    without_a_cluster = render(*option)
    for objects in (with_definition, without_a_cluster):
        assert kind.rpartition("/")[2] in {o["kind"] for o in objects}
