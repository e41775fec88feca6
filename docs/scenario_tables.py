"""The tables of docs/scenarios.md: all fields of a scenario file, from its schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from greensched_simulator.world.scenario_loading import schema_of_scenarios

Schema = Mapping[str, Any]

_BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}"}
_VARIANTS = ("anyOf", "oneOf")
_WORDS = {"string": "text", "boolean": "true or false", "number": "number"}
_LARGEST = 1e6  # higher limits only protect memory and are not shown


def scenario_tables() -> str:
    """Return a section for each part of the file, with its place and a table of its names."""
    whole = schema_of_scenarios()
    parts = []
    for name, places in _places(whole).items():
        part = whole["$defs"][name] if name else whole
        where = " and ".join(f"`{place}`" for place in places) if name else "The file"
        what = part["description"].rstrip(".")
        needed = part.get("required", ())
        rows: list[tuple[str, ...]] = [
            (f"`{field}`", _kind(kind), _default(field, kind, needed), kind.get("description", ""))
            for field, kind in part["properties"].items()
        ]
        parts += [f"### {where}: {what[0].lower()}{what[1:]}", _table(rows)]
    return "\n\n".join(parts)


def _places(whole: Schema) -> dict[str, list[str]]:
    """Return the places of each part in the file, in its order; the file itself is ""."""
    found: dict[str, list[str]] = {"": []}

    def visit(part: Schema, place: str) -> None:
        for field, kind in part["properties"].items():
            for name, ending in _parts(kind):
                inner = f"{place}{field}{ending}"
                if inner not in found.setdefault(name, []):
                    found[name].append(inner)
                    visit(whole["$defs"][name], f"{inner}.")

    visit(whole, "")
    return found


def _parts(kind: Schema) -> Iterator[tuple[str, str]]:
    """Yield the parts that a field refers to, each with the suffix of its place."""
    if "$ref" in kind:
        yield kind["$ref"].rpartition("/")[2], ""
    for variants in _VARIANTS:
        for each in kind.get(variants, ()):
            yield from _parts(each)
    for inner, ending in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(kind.get(inner), dict):
            yield from ((name, ending + more) for name, more in _parts(kind[inner]))


def _kind(kind: Schema) -> str:
    for variants in _VARIANTS:
        if variants in kind:
            words = [_kind(each) for each in kind[variants] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(words))
    if "$ref" in kind:
        return "map"
    if "enum" in kind or "const" in kind:
        return " · ".join(f"`{value}`" for value in kind.get("enum", [kind.get("const")]))
    if kind["type"] == "array":
        return f"list of {_kind(kind['items'])}"
    if kind["type"] == "object":
        return f"map to {_kind(kind['additionalProperties'])}"
    if "examples" in kind:
        return f"text such as `{kind['examples'][0]}`"
    bounds = [
        words.format(f"{kind[bound]:g}")
        for bound, words in _BOUNDS.items()
        if bound in kind and abs(kind[bound]) < _LARGEST
    ]
    return ", ".join([_WORDS.get(kind["type"], "whole number"), *bounds])


def _default(field: str, kind: Schema, needed: tuple[str, ...]) -> str:
    if field in needed:
        return "must be given"
    default = kind.get("default")
    if default is None or default in ("", {}):
        return "none"
    if isinstance(default, dict):
        return "see below"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _table(rows: list[tuple[str, ...]]) -> str:
    lines = [("name", "what it is", "default", "meaning"), ("---",) * 4, *rows]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in lines)
