"""The chart's values and the settings of extender and operator are one table."""

from collections.abc import Callable
from typing import Any

import pytest

from greensched_core.settings import load_settings, unknown_variables
from greensched_extender.settings import ExtenderSettings
from greensched_operator.runtime.settings import OperatorSettings

pytestmark = pytest.mark.helm

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]

# The chart sets these from other values, or the pod gives them.
SET_BY_THE_CHART = {
    *{"listen_host", "listen_port", "kubeconfig", "serviceaccount_dir", "scheduler_names"},
    *{"tls_cert_file", "tls_key_file", "tls_client_ca_file", "static_zones_file", "bundle"},
    *{"filter_enabled", "bind_enabled", "policy_namespace"},
    *{"pod_name", "pod_namespace", "pod_uid"},
    *{"clock_rate", "clock_anchor_wall_s", "clock_anchor_sim_s"},  # for tests and replays alone
}

# The operator's: set from other values, given by the pod, or for tests alone.
OPERATORS_SET_BY_THE_CHART = {
    *{"kubeconfig", "serviceaccount_dir", "namespace", "identity", "scheduler_names", "lease"},
    *{"heartbeat_lease", "budgets_config_map", "pod_name", "pod_namespace", "pod_uid"},
    *{"webhook_host", "webhook_port", "webhook_hosts", "webhook_secret", "webhook_configuration"},
    *{"ledger", "signal_files", "kueue", "kueue_gated_by"},
    *{
        "health_host",
        "health_port",
        "static_zones_file",
        "default_policy_file",
        "emergency_release_owner",
    },
    *{"clock_rate", "clock_anchor_wall_s", "clock_anchor_sim_s"},
}
# Told once, in extender.settings, for both.
SHARED = {
    *{"default_pue", "utilisation_ratio", "gpu_ratio", "currency", "exchange_rates", "zone_map"},
    *{"signal_fresh_s", "signal_max_stale_s", "prometheus_url", "prometheus_timeout_s"},
}


def environment(objects: Objects, component: str = "extender") -> dict[str, str]:
    (data,) = (
        o["data"]
        for o in objects
        if o["kind"] == "ConfigMap" and o["metadata"]["name"] == f"greensched-{component}"
    )
    return {str(name): str(value) for name, value in data.items()}


def settings(monkeypatch: pytest.MonkeyPatch, objects: Objects) -> ExtenderSettings:
    for name, value in environment(objects).items():
        monkeypatch.setenv(name, value)
    return load_settings(ExtenderSettings)


def test_default_values_are_the_extenders_defaults(
    render: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings(monkeypatch, render()) == ExtenderSettings.model_construct(
        **{name: field.get_default() for name, field in ExtenderSettings.model_fields.items()}
    )


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def test_every_setting_is_a_value_of_the_chart(values: dict[str, Any]) -> None:
    wanted = {camel(name) for name in set(ExtenderSettings.model_fields) - SET_BY_THE_CHART}
    assert set(values["extender"]["settings"]) == wanted


def test_the_extender_knows_every_variable_with_all_options_on(
    render: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = render(
        *["--set", "tls.enabled=true,tls.existingSecret=s,tls.client.enabled=true"],
        *["--set", "tls.client.existingSecret=c,extender.bundleConfigMap=b"],
        *["--set", "extender.bind.enabled=true,extender.powerLimits.enabled=true"],
        *["--set", "extender.staticZones.DE.carbonGramsPerKwh=380,extender.port=9000"],
        *["--set", "extender.settings.exchangeRates.USD=0.92,extender.settings.weightCarbon=0.5"],
        *["--set-json", 'extender.settings.zoneMap={"europe-west3":"DE"}'],
    )
    assert unknown_variables(ExtenderSettings, environment(objects)) == []
    read = settings(monkeypatch, objects)
    assert (read.filter_enabled, read.bind_enabled, read.listen_port) == (True, True, 9000)
    assert (read.exchange_rates, read.weight_carbon) == ({"USD": 0.92}, 0.5)
    assert read.zone_map == {"europe-west3": "DE"}
    assert str(read.tls_client_ca_file) == "/etc/greensched/client-ca/ca.crt"


def operator_settings(monkeypatch: pytest.MonkeyPatch, objects: Objects) -> OperatorSettings:
    for name, value in environment(objects, "operator").items():
        monkeypatch.setenv(name, value)
    return load_settings(OperatorSettings)


def test_default_values_are_the_operators_defaults(
    render: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = operator_settings(monkeypatch, render())
    different = {
        name: getattr(read, name)
        for name, field in OperatorSettings.model_fields.items()
        if getattr(read, name) != field.get_default()
    }
    assert {name: str(value) for name, value in different.items()} == {
        "emergency_release_owner": "greensched-emergency-release",
        "default_policy_file": "/etc/greensched/policy/policy.json",
        "ledger": "/var/lib/greensched/ledger.sqlite",
    }


def test_every_setting_of_the_operator_is_a_value_of_the_chart(values: dict[str, Any]) -> None:
    own = set(OperatorSettings.model_fields) - OPERATORS_SET_BY_THE_CHART - SHARED
    assert set(values["operator"]["settings"]) == {camel(name) for name in own}
    assert {camel(name) for name in SHARED} <= set(values["extender"]["settings"])


def test_the_operator_believes_what_the_extender_believes_of_grid_and_nodes(
    render: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = render(
        *["--set", "extender.settings.currency=USD,extender.settings.defaultPue=1.4"],
        *["--set", "extender.staticZones.DE.carbonGramsPerKwh=380,policy.create=false"],
        *["--set", "scheduler.name=green,operator.settings.releaseJitterS=0.5"],
        *["--set-json", 'extender.settings.zoneMap={"europe-west3":"DE"}'],
        *["--namespace", "elsewhere"],
    )
    assert unknown_variables(OperatorSettings, environment(objects, "operator")) == []
    read = operator_settings(monkeypatch, objects)
    assert (read.currency, read.default_pue, read.zone_map) == ("USD", 1.4, {"europe-west3": "DE"})
    assert (read.scheduler_names, read.release_jitter_s) == (["green"], 0.5)
    assert (read.namespace, read.default_policy_file) == ("elsewhere", None)
    assert read.webhook_hosts == ["greensched-webhook.elsewhere.svc"]
    assert str(read.static_zones_file) == "/etc/greensched/zones/zones.toml"
