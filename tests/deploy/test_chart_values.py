"""What values.yaml and values.schema.json promise to whoever writes values."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_core.settings import ComponentSettings
from greensched_extender.settings import ExtenderSettings
from greensched_operator.runtime.settings import OperatorSettings
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.rules.catalogue import WHERE_RULES

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "greensched"
VALUES_LINES = (CHART / "values.yaml").read_text().splitlines()
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())

# Explained as one thing; their own keys are Kubernetes', not ours.
WHOLE = {"resources"}
# Maps whose keys the user chooses, with the type of what they hold stated instead.
FREE_KEYS = {"stringMap", "requests", "limits", "staticZones", "exchangeRates", "zoneMap"}
# Left to the API server, which knows the terms of each version.
CHECKED_BY_KUBERNETES = {"global", "nodeAffinity", "podAffinity", "podAntiAffinity"}


def leaves(node: yaml.MappingNode, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield path and line (from 0) of each value that a user would set."""
    for key, value in node.value:
        name = f"{path}.{key.value}".lstrip(".")
        grouped = isinstance(value, yaml.MappingNode) and value.value and key.value not in WHOLE
        if grouped:
            yield from leaves(value, name)
        else:
            yield name, key.start_mark.line


def value_lines() -> list[tuple[str, int]]:
    root = yaml.compose("\n".join(VALUES_LINES))
    assert isinstance(root, yaml.MappingNode)
    return list(leaves(root))


@pytest.mark.parametrize(
    ("name", "line"), [pytest.param(*leaf, id=leaf[0]) for leaf in value_lines()]
)
def test_every_value_has_a_comment_above_it(name: str, line: int) -> None:
    assert VALUES_LINES[line - 1].lstrip().startswith("#"), f"{name} has no comment"


def objects(schema: Any, name: str = "root") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema of an object with the key it stands under."""
    if isinstance(schema, list):
        for part in schema:
            yield from objects(part, name)
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield name, schema
        for key, part in schema.items():
            yield from objects(part, name if key in {"items", "additionalProperties"} else key)


def test_the_schema_refuses_unknown_keys_everywhere() -> None:
    for name, schema in objects(SCHEMA):
        if name in CHECKED_BY_KUBERNETES:
            continue
        expected_type = dict if name in FREE_KEYS and "properties" not in schema else bool
        assert isinstance(schema.get("additionalProperties"), expected_type), name
        assert schema["additionalProperties"] is not True, name


def test_the_schema_knows_every_value_and_no_other(values: dict[str, Any]) -> None:
    def keys(schema: dict[str, Any], given: Any, path: str) -> None:
        if "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
        known = set(schema.get("properties", {})) - {"global"}
        if known and isinstance(given, dict) and given and path.rpartition(".")[2] not in WHOLE:
            assert known == set(given), path
            for key, value in given.items():
                keys(schema["properties"][key], value, f"{path}.{key}")

    keys(SCHEMA, values, "values")


def test_the_schema_knows_every_policy_that_the_extender_knows() -> None:
    settings = SCHEMA["properties"]["extender"]["properties"]["settings"]["properties"]
    assert settings["policy"]["enum"] == [ONNX, *WHERE_RULES]
    assert settings["fallbackPolicy"]["enum"] == list(WHERE_RULES)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# What the service says of a setting -> whether the chart's words are as narrow.
AS_NARROW: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda ours, theirs: theirs >= ours,
    "exclusiveMinimum": lambda ours, theirs: theirs >= ours,
    "maximum": lambda ours, theirs: theirs <= ours,
    "enum": lambda ours, theirs: set(theirs) <= set(ours),
    "pattern": lambda ours, theirs: theirs == ours,
}


@pytest.mark.parametrize(
    ("component", "kind", "least"),
    [("extender", ExtenderSettings, 16), ("operator", OperatorSettings, 6)],
)
def test_what_a_program_refuses_to_start_with_the_schema_refuses_before(
    component: str, kind: type[ComponentSettings], least: int
) -> None:
    service = kind.model_json_schema()["properties"]
    chart = SCHEMA["properties"][component]["properties"]["settings"]["properties"]
    compared, wider = 0, []
    for name, ours in service.items():
        theirs = chart.get(camel(name), {})
        if "$ref" in theirs:
            theirs = SCHEMA["definitions"][theirs["$ref"].rpartition("/")[2]]
        for word in AS_NARROW.keys() & ours.keys() if theirs else ():
            compared += 1
            if word not in theirs or not AS_NARROW[word](ours[word], theirs[word]):
                wider.append(f"{name}: {word} {ours[word]}")
    assert wider == []
    assert compared >= least
