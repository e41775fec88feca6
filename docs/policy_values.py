"""The schema of `policy.spec` in values.schema.json, from the GreenPolicy's definition.

Rules that such a schema cannot express, such as rules for two fields together, are left out: the
API server checks them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DEFINITION = Path("deploy/helm/greensched/files/crds/greenpolicies.yaml")
_SAME_IN_BOTH = ("type", "enum", "minLength", "maxLength", "maxItems")
_PATTERN = re.compile(r"self\.matches\('([^'\\]*)'\)")
_BOUND = re.compile(r"self (>=|<=|>|<) ([0-9.]+)")
_BOUND_WORDS = {
    ">=": "minimum",
    "<=": "maximum",
    ">": "exclusiveMinimum",
    "<": "exclusiveMaximum",
}
_ONE_OF = re.compile(r"self in \[(.*)\]")
# A word of a list, or a number within bounds.
_NUMBER_OR_WORD = re.compile(r"type\(self\) == int \? (.*) : (self in \[.*\])")
_NEEDED = re.compile(r"has\(self\.(\w+)\)")


def policy_spec(text: str) -> dict[str, Any]:
    """Return the schema of `policy.spec` from the definition of GreenPolicies (YAML)."""
    (version,) = yaml.safe_load(text)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = {name: field for name, field in spec["properties"].items() if name != "mode"}
    description = (
        "Written by `make docs` from files/crds; the API server checks the rest. No mode here."
    )
    return {"description": description, **_schema({**spec, "properties": fields})}


def _schema(field: Mapping[str, Any]) -> dict[str, Any]:
    schema = {word: field[word] for word in _SAME_IN_BOTH if word in field}
    if field.get("x-kubernetes-list-type") == "set":
        schema["uniqueItems"] = True
    if "properties" in field:
        schema["additionalProperties"] = False
        schema["properties"] = {name: _schema(each) for name, each in field["properties"].items()}
    if "items" in field:
        schema["items"] = _schema(field["items"])
    for rule in field.get("x-kubernetes-validations", ()):
        if found := _NUMBER_OR_WORD.fullmatch(rule["rule"]):
            number = _with_claims({"type": "integer"}, found[1])
            schema["anyOf"] = [number, _with_claims({}, found[2])]
        elif "||" not in rule["rule"]:
            _with_claims(schema, rule["rule"])
    return schema


def _with_claims(schema: dict[str, Any], rule: str) -> dict[str, Any]:
    for claim in rule.split(" && "):
        _add(schema, claim)
    return schema


def _add(schema: dict[str, Any], claim: str) -> None:
    """Add the requirement of one claim of a rule (CEL), if a schema can express it."""
    if found := _PATTERN.fullmatch(claim):
        if "pattern" in schema:
            schema.setdefault("allOf", []).append({"pattern": found[1]})
        else:
            schema["pattern"] = found[1]
    elif found := _BOUND.fullmatch(claim):
        schema[_BOUND_WORDS[found[1]]] = json.loads(found[2].removesuffix(".0"))
    elif found := _ONE_OF.fullmatch(claim):
        schema["enum"] = re.findall(r"'([^']*)'", found[1])
    elif found := _NEEDED.fullmatch(claim):
        schema.setdefault("required", []).append(found[1])
    elif claim == "self.size() > 0":
        schema["minItems"] = 1
