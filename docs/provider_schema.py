"""The providers' part of the GridSignal's definition, from the types of their entries."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from docs.custom_resources import Dumper
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.catalogue import PROVIDERS, Provider

DEFINITION = Path("deploy/helm/greensched/files/crds/gridsignals.yaml")
_MARK = re.compile(r"( *)items: # of the providers of (\w+); written by `make docs`")
_TYPES = {str: "string", int: "integer"}
_KEPT = (
    "type", "description", "enum", "minLength", "maxLength", "minimum", "maximum", "minItems",
    "maxItems", "x-kubernetes-list-type", "x-kubernetes-validations",
)  # fmt: skip


class _Dumper(Dumper):
    """Writes short lists on one line."""


def _list(dumper: _Dumper, items: list[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(item, str | int) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)


_Dumper.add_representer(list, _list)


def grid_signals(text: str) -> str:
    """Return the definition of GridSignals with the entries of all providers."""
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    depth: int | None = None  # indentation of the part that is replaced
    for line in lines:
        if depth is not None and len(line) - len(line.lstrip()) > depth:
            continue
        depth = None
        yield line
        if found := _MARK.fullmatch(line):
            depth = len(found[1])
            entry = _written(_entry(cast(SignalKind, found[2])))
            yield textwrap.indent(entry, " " * (depth + 2)).rstrip("\n")


def _written(schema: Mapping[str, Any]) -> str:
    return yaml.dump(schema, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


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
