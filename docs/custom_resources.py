"""The definitions of our custom resources and the tables of their page, from the fields in code."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from docs.policy_values import DEFINITION
from docs.provider_schema import grid_signal_spec
from greensched_core.custom_resources.fields import FieldDefinition, FieldKind, SchemaRule
from greensched_operator.objects import green_policy, job_power_profile


class Resource(NamedTuple):
    """A custom resource, the page with the table of its fields, and their definitions."""

    kind: str
    page: str
    spec: FieldDefinition


# By the file of the CRD. A new resource is one line.
SPECS: Mapping[Path, Resource] = {
    DEFINITION: Resource("GreenPolicy", "docs/green-policy.md", green_policy.SPEC),
    DEFINITION.with_name("jobpowerprofiles.yaml"): Resource(
        "JobPowerProfile", "docs/green-policy.md", job_power_profile.SPEC
    ),
    DEFINITION.with_name("gridsignals.yaml"): Resource(
        "GridSignal", "docs/signals.md", grid_signal_spec()
    ),
}
_HEAD = ("field of `spec`", "unit", "default", "meaning")
# This module writes the part between the comment and `status`.
_SPEC = re.compile(r"(?ms)^( +)(# Written by `make docs`[^\n]*\n)\1spec:\n.*?(?=^\1status:\n)")
_ROWS = re.compile(r"(?:[|].*\n)*")
_WIDTH = 100

Fields = Mapping[str, FieldDefinition]  # of an object, by attribute


class Dumper(yaml.SafeDumper):
    """Indents lists like the rest of the definitions, and writes no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists too."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        """Return True: write every value in full."""
        return True


def _list(dumper: Dumper, items: list[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(item, str | int) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)


Dumper.add_representer(list, _list)


def definition(text: str, spec: FieldDefinition) -> str:
    """Return a definition (YAML) with its spec as the code has it; raise ValueError without one."""
    found = _SPEC.search(text)
    if found is None:
        raise ValueError("the definition has no spec between `# Written by` and status")
    indent, comment = found[1], found[2]
    schema = yaml.dump(
        {spec.name: schema_of(spec)},
        Dumper=Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH,
    )  # fmt: skip
    written = f"{indent}{comment}{textwrap.indent(schema, indent)}"
    return f"{text[: found.start()]}{written}{text[found.end() :]}"


def schema_of(about: FieldDefinition) -> dict[str, Any]:
    """Return a field's schema for the definition of a custom resource."""
    kind = about.kind.schema
    schema: dict[str, Any] = {"type": kind["type"]} if "type" in kind else {}
    if about.default is not None:
        schema["default"] = about.default
    if about.meaning:
        schema["description"] = about.meaning
    return {**schema, **_schema_of_kind(about.kind)}


def _schema_of_kind(kind: FieldKind[Any]) -> dict[str, Any]:
    schema = dict(kind.schema)
    if kind.rules:
        schema["x-kubernetes-validations"] = [_rule(each) for each in kind.rules]
    if kind.below is not None:
        schema["properties"] = {each.name: schema_of(each) for each in kind.below.values()}
    if kind.each is not None:
        schema["items"] = _schema_of_kind(kind.each)
    return schema


def _rule(rule: SchemaRule) -> dict[str, str]:
    written = {"rule": rule.cel, "message": rule.message}
    return {**written, "fieldPath": rule.path} if rule.path else written


def resource_tables(page: str, text: str) -> str:
    """Return a page's text with a table of each resource's fields that it is to show.

    Raises ValueError without a place for one.
    """
    for resource in SPECS.values():
        if resource.page != page:
            continue
        kind = resource.kind
        comment = f"<!-- The fields of a {kind}, written by `make docs`; changes are lost. -->\n\n"
        before, found, behind = text.partition(comment)
        if not found:
            raise ValueError(f"{page} has no place for the fields of a {kind}")
        table = "".join(f"| {' | '.join(row)} |\n" for row in _table(resource.spec))
        text = f"{before}{comment}{table}{_ROWS.sub('', behind, count=1)}"
    return text


def _table(spec: FieldDefinition) -> Iterator[tuple[str, ...]]:
    yield _HEAD
    yield ("---",) * len(_HEAD)
    yield from _rows(spec.kind.below, "", [])


def _rows(below: Fields | None, before: str, shown: list[Fields]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each field, then its own fields; the same fields are shown once."""
    if below is None or below in shown:
        return
    shown.append(below)
    for about in below.values():
        name, kind = f"{before}{about.name}", about.kind
        inner, ending = (kind.each.below, "[]") if kind.each else (kind.below, "")
        yield f"`{name}`", kind.unit, _default(about), about.meaning
        yield from _rows(inner, f"{name}{ending}.", shown)


def _default(about: FieldDefinition) -> str:
    if about.needed:
        return "required"
    if about.default is None:
        return about.absent
    if about.default == {}:
        return ""
    return f"`{str(about.default).lower() if isinstance(about.default, bool) else about.default}`"
