"""The chart's values and the extender's settings are one table."""

from collections.abc import Callable
from typing import Any

import pytest

from greensched_core.settings import load_settings, unknown_variables
from greensched_extender.settings import ExtenderSettings

pytestmark = pytest.mark.helm

Objects = list[dict[str, Any]]
Render = Callable[..., Objects]

# The chart sets these from other values, or the pod gives them.
SET_BY_THE_CHART = {
    *{"listen_host", "listen_port", "kubeconfig", "serviceaccount_dir", "scheduler_names"},
    *{"tls_cert_file", "tls_key_file", "tls_client_ca_file", "static_zones_file", "bundle"},
    *{"filter_enabled", "bind_enabled"},
}


def environment(objects: Objects) -> dict[str, str]:
    (data,) = (
        o["data"]
        for o in objects
        if o["kind"] == "ConfigMap" and o["metadata"]["name"] == "greensched-extender"
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


def test_every_setting_is_a_value_of_the_chart(values: dict[str, Any]) -> None:
    def camel(name: str) -> str:
        first, *rest = name.split("_")
        return first + "".join(word.capitalize() for word in rest)

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
