"""TLS, network policy, ServiceMonitor, bundle and static zones, as `helm template` makes them."""

import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_core.signals.static import load_static_zones

pytestmark = pytest.mark.helm

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]
Run = Callable[..., subprocess.CompletedProcess[str]]

SERVER_TLS = ["--set", "tls.enabled=true", "--set", "tls.existingSecret=server"]
CLIENT_TLS = ["--set", "tls.client.enabled=true", "--set", "tls.client.existingSecret=client"]
CERT_MANAGER = [
    *["--set", "tls.enabled=true", "--set", "tls.client.enabled=true"],
    *["--set", "tls.certManager.enabled=true", "--set", "tls.certManager.issuerRef.name=ca"],
]


def one(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    found = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind}/{name}: {len(found)} found"
    return found[0]


def entry(objects: Objects) -> dict[str, Any]:
    text = one(objects, "ConfigMap", "greensched-scheduler")["data"]["config.yaml"]
    (found,) = yaml.safe_load(text)["extenders"]
    assert isinstance(found, dict)
    return found


def mounted_secret_keys(objects: Objects, deployment: str) -> dict[str, set[str]]:
    """Secret → the keys of it that the deployment's pods get to see."""
    pod = one(objects, "Deployment", deployment)["spec"]["template"]["spec"]
    return {
        volume["secret"]["secretName"]: {item["key"] for item in volume["secret"]["items"]}
        for volume in pod["volumes"]
        if "secret" in volume
    }


def probe_kinds(objects: Objects) -> set[str]:
    pod = one(objects, "Deployment", "greensched-extender")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    probes = [container[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    return {"tcp" if "tcpSocket" in p else p["httpGet"]["scheme"] for p in probes}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="defaults"),
        pytest.param([*SERVER_TLS, *CLIENT_TLS], id="tls"),
        pytest.param(CERT_MANAGER, id="cert-manager"),
        pytest.param(
            [
                *["--set", "networkPolicy.enabled=true,serviceMonitor.enabled=true"],
                *["--set", "operator.kueue.enabled=true,operator.webhook.hostNetwork=true"],
                *["--set", "operator.controller.ledger.dsnSecret=dsn"],
            ],
            id="all-else",
        ),
    ],
)
def test_no_key_stands_twice_in_a_map_also_of_hooks(
    render_with_tests: Render, options: list[str]
) -> None:
    objects = render_with_tests(*options)
    (container,) = one(objects, "Pod", "greensched-check")["spec"]["containers"]
    told = {each["name"] for each in container["env"]}
    assert {"GREENSCHED_OPERATOR_POD_NAME", "GREENSCHED_CHECK_RELEASE"} <= told


def test_tls_is_used_by_scheduler_service_and_probes(render: Render) -> None:
    objects = render(*SERVER_TLS)
    extender = entry(objects)
    assert extender["urlPrefix"].startswith("https://")
    assert extender["enableHTTPS"] is True
    assert extender["tlsConfig"] == {
        "serverName": "greensched-extender.greensched.svc",
        "caFile": "/etc/greensched/extender-ca/ca.crt",
    }
    assert probe_kinds(objects) == {"HTTPS"}


def test_each_side_gets_its_own_key_and_the_others_authority_only(render: Render) -> None:
    objects = render(*SERVER_TLS, *CLIENT_TLS)
    assert mounted_secret_keys(objects, "greensched-extender") == {
        "server": {"tls.crt", "tls.key"},
        "client": {"ca.crt"},
    }
    assert mounted_secret_keys(objects, "greensched-scheduler") == {
        "server": {"ca.crt"},
        "client": {"tls.crt", "tls.key"},
    }


def test_the_kubelet_without_a_certificate_probes_the_port_only(render: Render) -> None:
    assert probe_kinds(render(*SERVER_TLS, *CLIENT_TLS)) == {"tcp"}


def test_cert_manager_is_asked_for_one_certificate_a_side(render: Render) -> None:
    objects = render(*CERT_MANAGER)
    server = one(objects, "Certificate", "greensched-extender")["spec"]
    assert server["dnsNames"] == ["greensched-extender.greensched.svc"]
    assert server["usages"] == ["server auth"]
    client = one(objects, "Certificate", "greensched-scheduler")["spec"]
    assert client["usages"] == ["client auth"]
    assert mounted_secret_keys(objects, "greensched-extender").keys() == {
        server["secretName"],
        client["secretName"],
    }


@pytest.mark.parametrize(
    ("values", "callers"),
    [
        pytest.param("policy.create=true", 1, id="by-default"),
        pytest.param("serviceMonitor.enabled=true", 2, id="and-scrapers"),
        pytest.param("networkPolicy.metricsNamespace=mon", 2, id="and-those-of-a-namespace"),
    ],
)
def test_only_the_scheduler_may_reach_the_extender(
    render: Render, values: str, callers: int
) -> None:
    (policy,) = (each for each in render("--set", values) if each["kind"] == "NetworkPolicy")
    spec = policy["spec"]
    assert spec["policyTypes"] == ["Ingress"], "what it may reach differs by cluster"
    assert "egress" not in spec
    component = spec["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
    assert component["app.kubernetes.io/component"] == "scheduler"
    assert len(spec["ingress"]) == callers


@pytest.mark.parametrize(
    "values",
    [
        pytest.param("networkPolicy.extenderIngress=false", id="switched-off"),
        pytest.param("scheduler.replicas=0,scheduler.extenderUrl=http://e", id="from-outside"),
    ],
)
def test_a_scheduler_outside_the_cluster_is_not_kept_out(render: Render, values: str) -> None:
    assert "NetworkPolicy" not in {each["kind"] for each in render("--set", values)}


def test_the_scheduler_may_reach_the_extender_and_the_api_server_alone(render: Render) -> None:
    objects = render("--set", "networkPolicy.enabled=true")
    spec = one(objects, "NetworkPolicy", "greensched-scheduler")["spec"]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {
        *(53, 443, 6443, 8888)
    }


def test_the_network_policy_opens_one_port_inwards_and_three_ways_outwards(render: Render) -> None:
    objects = render(
        *["--set", "networkPolicy.enabled=true", "--set", "networkPolicy.metricsNamespace=mon"],
        *["--set", "extender.settings.prometheusUrl=http://prometheus.mon:9090"],
    )
    spec = one(objects, "NetworkPolicy", "greensched-extender")["spec"]
    assert [rule["ports"] for rule in spec["ingress"]] == [
        [{"protocol": "TCP", "port": "extender"}]
    ] * 2
    scheduler, scraper = (rule["from"][0] for rule in spec["ingress"])
    component = scheduler["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
    assert component == "scheduler"
    assert scraper["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "mon"}
    outwards = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
    assert outwards == {53, 443, 6443, 9090}


@pytest.mark.parametrize(
    ("value", "port"),
    [
        pytest.param(
            "extender.settings.prometheusUrl=http://prometheus.mon:9090", 9090, id="prometheus"
        ),
        pytest.param("operator.controller.ledger.dsnSecret=ledger", 5432, id="postgresql"),
    ],
)
def test_of_the_operator_the_controller_alone_may_reach_what_is_set(
    render: Render, value: str, port: int
) -> None:
    for more, expected in ((["--set", value], {"controller"}), ([], set[str]())):
        objects = render("--set", "networkPolicy.enabled=true", *more)
        allowed = {
            process
            for process in ("controller", "webhook", "releaser", "emergency-release")
            for rule in one(objects, "NetworkPolicy", f"greensched-{process}")["spec"]["egress"]
            for opened in rule["ports"]
            if opened["port"] == port
        }
        assert allowed == expected


def test_a_service_monitor_speaks_tls_where_the_extender_does(render: Render) -> None:
    assert "ServiceMonitor" not in {o["kind"] for o in render()}
    monitor = ["--set", "serviceMonitor.enabled=true", "--set", "serviceMonitor.labels.release=p"]
    plain = one(render(*monitor), "ServiceMonitor", "greensched-extender")
    assert plain["metadata"]["labels"]["release"] == "p"
    assert plain["spec"]["endpoints"][0]["scheme"] == "http"
    secured = one(
        render(*monitor, *SERVER_TLS, *CLIENT_TLS), "ServiceMonitor", "greensched-extender"
    )
    endpoint = secured["spec"]["endpoints"][0]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"]["keySecret"] == {"name": "client", "key": "tls.key"}


def test_static_zones_reach_the_extender_as_toml(render: Render) -> None:
    objects = render(
        "--set-json",
        'extender.staticZones={"DE":{"carbonGramsPerKwh":380,"pricePerMwh":-1.5,"currency":"EUR"},'
        '"US-CAL-CISO":{"carbonGramsPerKwh":250.5}}',
    )
    table = tomllib.loads(
        one(objects, "ConfigMap", "greensched-extender-zones")["data"]["zones.toml"]
    )
    assert table["zones"] == {
        "DE": {"carbon_grams_per_kwh": 380, "price_per_mwh": -1.5, "currency": "EUR"},
        "US-CAL-CISO": {"carbon_grams_per_kwh": 250.5},
    }
    settings = one(objects, "ConfigMap", "greensched-extender")["data"]
    assert settings["GREENSCHED_EXTENDER_STATIC_ZONES_FILE"] == "/etc/greensched/zones/zones.toml"


def test_a_bundle_is_mounted_from_its_configmap(render: Render) -> None:
    objects = render("--set", "extender.bundleConfigMap=my-bundle")
    pod = one(objects, "Deployment", "greensched-extender")["spec"]["template"]["spec"]
    assert {"name": "bundle", "configMap": {"name": "my-bundle"}} in pod["volumes"]
    settings = one(objects, "ConfigMap", "greensched-extender")["data"]
    assert settings["GREENSCHED_EXTENDER_BUNDLE"] == "/etc/greensched/bundle"


def test_the_core_reads_the_static_zones_that_the_chart_writes(
    render: Render, tmp_path: Path
) -> None:
    objects = render(
        "--set-json", 'extender.staticZones={"XX-1":{"carbonGramsPerKwh":7,"currency":"EUR"}}'
    )
    file = tmp_path / "zones.toml"
    file.write_text(one(objects, "ConfigMap", "greensched-extender-zones")["data"]["zones.toml"])
    zone = load_static_zones(file).find("XX-1")
    assert zone is not None
    assert (zone.carbon_g_per_kwh, zone.price_per_mwh, zone.currency) == (7, None, "EUR")


def leaves(part: object) -> Iterator[object]:
    """Every value within an object that is neither a map nor a list."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from leaves(inner)
    else:
        yield part


def test_a_name_of_digits_stays_a_text(helm_offline: Run) -> None:
    chosen = [
        *("scheduler.name", "scheduler.priorityClassName", "extender.bundleConfigMap"),
        *("tls.existingSecret", "tls.client.existingSecret", "tls.serverName"),
        "networkPolicy.metricsNamespace",
    ]
    switches = "tls.enabled=true,tls.client.enabled=true,networkPolicy.enabled=true"
    rendered = helm_offline(
        *["template", "1234", "CHART", "--namespace", "1234"],
        *["--set", f"fullnameOverride=first,{switches},serviceMonitor.enabled=true"],
        *["--set-string", ",".join(f"{name}=1234" for name in chosen)],
    )
    assert rendered.returncode == 0, rendered.stderr
    objects = list(yaml.safe_load_all(rendered.stdout))
    scheduler = yaml.safe_load(one(objects, "ConfigMap", "first-scheduler")["data"]["config.yaml"])
    written = list(leaves([*objects, scheduler]))
    assert "1234" in written
    assert 1234 not in written
