"""What Helm refuses of `policy.spec` before anything is sent: what its definition can tell."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.policy_values import DEFINITION, policy_spec

pytestmark = pytest.mark.helm

Render = Callable[..., list[dict[str, Any]]]
Refusal = Callable[..., str]

ROOT = Path(__file__).resolve().parents[2]
NIGHT = {"from": "22:00", "to": "06:00"}


def spec(**fields: Any) -> list[str]:
    return ["--set-json", f"policy.spec={json.dumps(fields)}"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        pytest.param({"defaultDelay": "6hours"}, "defaultDelay", id="no-duration"),
        pytest.param({"defaultDelay": 6}, "defaultDelay", id="without-unit"),
        pytest.param({"defaultDelays": "6h"}, "defaultDelays", id="misspelt"),
        pytest.param({"defaultRuntime": "0h"}, "defaultRuntime", id="no-time"),
        pytest.param({"longestHold": "1h" * 17}, "longestHold", id="too-long"),
        pytest.param({"maxHeldSharePercent": 101}, "maxHeldSharePercent", id="above-its-bound"),
        pytest.param({"weights": {"carbon": -1}}, "weights/carbon", id="below-its-bound"),
        pytest.param({"weights": {"carbn": 1}}, "carbn", id="misspelt-below"),
        pytest.param({"whenPolicy": "cheapest"}, "whenPolicy", id="no-rule"),
        pytest.param({"quietHours": [{"from": "22:00"}]}, "'to'", id="no-end"),
        pytest.param({"quietHours": [{**NIGHT, "to": "6:00"}]}, "quietHours/0/to", id="no-hour"),
        pytest.param({"quietHours": [{**NIGHT, "days": []}]}, "quietHours/0/days", id="no-day"),
        pytest.param({"quietHours": [{**NIGHT, "days": ["Mon", "Mon"]}]}, "days", id="day-twice"),
        pytest.param({"budget": {"period": "Year", "carbonKg": 1}}, "budget/period", id="period"),
    ],
)
def test_a_spec_that_the_definition_forbids_is_refused_by_its_field(
    refusal: Refusal, fields: dict[str, Any], field: str
) -> None:
    told = refusal(*spec(**fields))
    assert "/policy/spec" in told
    assert field in told


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"defaultDelay": "1d2h3m4.5s6ms", "maxHeldSharePercent": 30}, id="durations"),
        pytest.param({"weights": {"carbon": 0, "performance": 0.1}}, id="weights"),
        pytest.param({"quietHours": [{**NIGHT, "timeZone": "Europe/Berlin"}]}, id="quiet-hours"),
        pytest.param({"budget": {"period": "Month", "energyKwh": 0}}, id="budget"),
        pytest.param({"whenPolicy": "onnx", "bundle": {"configMapName": "a.b-c"}}, id="bundle"),
    ],
)
def test_a_spec_that_the_definition_takes_is_taken(render: Render, fields: dict[str, Any]) -> None:
    objects = render(*spec(**fields))
    (written,) = (o for o in objects if o["metadata"]["name"] == "greensched-operator-policy")
    policy = yaml.safe_load(written["data"]["policy.json"])
    assert policy["spec"] == {"mode": "shadow", **fields}


def field_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an object's schema, with those below each."""
    inner = schema.get("items", schema)
    return {name: field_names(each) for name, each in inner.get("properties", {}).items()}


def test_values_and_definition_know_the_same_fields_but_the_mode() -> None:
    text = (ROOT / DEFINITION).read_text()
    (version,) = yaml.safe_load(text)["spec"]["versions"]
    whole = field_names(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    del whole["mode"]  # policy.mode
    assert field_names(policy_spec(text)) == whole


def test_the_chart_has_the_rules_that_its_definition_has() -> None:
    schema = json.loads((ROOT / "deploy/helm/greensched/values.schema.json").read_text())
    in_chart = schema["properties"]["policy"]["properties"]["spec"]
    assert in_chart == policy_spec((ROOT / DEFINITION).read_text())
