"""The GridSignal's spec with the entries of all providers, by the types of their fields."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from greensched_core.custom_resources.fields import FieldDefinition
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.catalogue import PROVIDERS, Provider
from greensched_operator.signals.spec import KINDS, SPEC

_TYPES = {str: "string", int: "integer"}
_KEPT = (
    "type", "description", "enum", "minLength", "maxLength", "minimum", "maximum", "minItems",
    "maxItems", "x-kubernetes-list-type", "x-kubernetes-validations",
)  # fmt: skip


def grid_signal_spec() -> FieldDefinition:
    """Return the definition of a GridSignal's spec, with the schema of each provider's entry."""
    below = dict(SPEC.kind.below or {})
    for kind in KINDS:
        listed = below[kind].kind
        assert listed.each is not None, "providers are a list"
        entries = replace(listed, each=replace(listed.each, schema=_entry(kind)))
        below[kind] = replace(below[kind], kind=entries)
    return replace(SPEC, kind=replace(SPEC.kind, below=below))


def _entry(kind: SignalKind) -> dict[str, Any]:
    names = list(PROVIDERS[kind])
    are_there = ", ".join(f"has(self.{name})" for name in names)
    message = (
        f"name exactly one provider in each entry of {kind}: {', '.join(names[:-1])} or "
        f"{names[-1]}; begin a new entry (with -) for the next one"
    )
    rule = f"[{are_there}].filter(named, named).size() == 1"
    return {
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule, "message": message}],
        "properties": {name: _provider(each) for name, each in PROVIDERS[kind].items()},
    }


def _provider(provider: type[Provider]) -> dict[str, Any]:
    schema = msgspec.json.schema(provider)
    checks = [
        {"rule": rule, "message": message} for rule, message in getattr(provider, "checks", ())
    ]
    more = {"x-kubernetes-validations": checks} if checks else {}
    return _structural({**schema, **more}, schema["$defs"])


def _structural(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema of msgspec as Kubernetes wants it: no references, no null."""
    if "$ref" in schema:
        schema = {**named[schema["$ref"].rpartition("/")[2]], **schema}
        return _structural({k: v for k, v in schema.items() if k != "$ref"}, named)
    if "anyOf" in schema:  # a value, or none
        (value,) = (each for each in schema["anyOf"] if each != {"type": "null"})
        rest = {word: each for word, each in schema.items() if word != "anyOf"}
        return _structural({**rest, **value}, named)
    found = {word: schema[word] for word in _KEPT if word in schema}
    if "enum" in found:
        found = {"type": _TYPES[type(found["enum"][0])], **found}
    if "description" in found:
        found["description"] = " ".join(found["description"].partition("\n\n")[0].split())
    if schema.get("default") and not isinstance(schema["default"], list | tuple):
        found["default"] = schema["default"]
    if schema.get("required"):
        found["required"] = schema["required"]
    if "properties" in schema:
        found["properties"] = {
            name: _structural(each, named) for name, each in schema["properties"].items()
        }
    if "items" in schema:
        found["items"] = _structural(schema["items"], named)
    return found
