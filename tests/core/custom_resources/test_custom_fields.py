"""A field defined once is read, described to the API server and shown on its page by that."""

from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from docs.custom_resources import SPECS, Resource, definition, resource_tables, schema_of
from greensched_core.custom_resources.fields import (
    FieldDefinition,
    FieldKind,
    SchemaRule,
    as_read,
    custom_field,
    duration,
    fields_of,
    flag,
    group,
    many,
    number,
    percent,
    reader_of,
    text,
)
from greensched_core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Step:
    """An item of Made."""

    name: str = custom_field("name", text(9, "name"), "What it is called.", needed="it has no name")
    is_last: bool = custom_field("last", flag(), "Whether it is.", unset=False, absent="false")


@dataclass(frozen=True, slots=True)
class Made:
    """A made-up spec."""

    origin: str = ""  # no field of the resource
    least_s: float = custom_field("least", duration("least is nothing"), "The least.", default="5m")
    share: float = custom_field("sharePercent", percent("all"), "The share.", default=10)
    watts: float | None = custom_field(
        "watts", number(9.0, "W", SchemaRule("self >= 0.0", "too few")), "The power.", unset=None,
        absent="none",
    )  # fmt: skip
    steps: tuple[Step, ...] = custom_field(
        "steps",
        many(
            group(Step, as_read, SchemaRule("has(self.name)", "a step needs its name")), 3, as_read
        ),
        "The steps.",
        unset=(),
        absent="none",
    )


NO_NUMBER = "is not a number; write it without a unit and without quotes"
MADE = FieldDefinition("spec", group(Made, as_read), "All of it.", default={})


def read(raw: object) -> Made:
    return Made(**reader_of(fields_of(Made))(raw, "spec"))


def test_what_is_written_becomes_the_attributes_and_what_is_not_their_defaults() -> None:
    raw = {"least": "90s", "sharePercent": 25, "watts": 3, "steps": [{"name": "a", "last": True}]}
    assert read(raw) == Made("", 90.0, 0.25, 3.0, (Step("a", True),))
    assert read({}) == read(dict.fromkeys(raw)) == read({"later": 1}) == Made()
    assert (Made().least_s, Made().share) == (300.0, 0.1)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        pytest.param([], "spec: a list is not an object with fields", id="no-object"),
        pytest.param({"least": 5}, "spec.least: 5 has no unit; write for example 90s, 6h or 7d",
                     id="no-unit"),
        pytest.param({"least": False}, "spec.least: false is not text; write it in quotes",
                     id="no-text"),
        pytest.param({"least": "0s"}, "spec.least: must be above zero", id="no-time"),
        pytest.param({"watts": True}, f"spec.watts: true {NO_NUMBER}", id="flag"),
        pytest.param({"watts": "9 W"}, f"spec.watts: '9 W' {NO_NUMBER}", id="with-unit"),
        pytest.param({"watts": 9.5}, "spec.watts: 9.5 must be from 0 to 9", id="above-the-most"),
        pytest.param({"sharePercent": 101}, "spec.sharePercent: 101 must be from 0 to 100",
                     id="above-the-whole"),
        pytest.param({"steps": {}}, "spec.steps: an object is not a list", id="list"),
        pytest.param({"steps": [{}]}, "spec.steps[0]: it has no name", id="nameless"),
        pytest.param({"steps": [{"name": "a"}, None]},
                     "spec.steps[1]: null is not an object with fields", id="no-item"),
        pytest.param({"steps": [{"name": "a", "last": "yes"}]},
                     "spec.steps[0].last: 'yes' is not true or false; write one of these without "
                     "quotes", id="no-flag"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_its_place(raw: object, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(raw)
    assert str(refused.value) == told


def test_the_api_server_gets_types_defaults_rules_and_meanings() -> None:
    schema = schema_of(MADE)
    assert (schema["type"], schema["default"], schema["description"]) == (
        "object",
        {},
        "All of it.",
    )
    assert list(schema["properties"]) == ["least", "sharePercent", "watts", "steps"]
    assert schema["properties"]["sharePercent"] == {
        "type": "number",
        "default": 10,
        "description": "The share.",
        "x-kubernetes-validations": [
            {
                "rule": "self >= 0.0 && self <= 100.0",
                "message": "a percentage must be from 0 to 100",
            }
        ],
    }
    steps = schema["properties"]["steps"]
    assert (steps["type"], steps["maxItems"], steps["x-kubernetes-list-type"]) == (
        "array", 3, "atomic",
    )  # fmt: skip
    assert steps["items"]["x-kubernetes-validations"] == [
        {"rule": "has(self.name)", "message": "a step needs its name"}
    ]
    assert steps["items"]["properties"]["name"] == {
        "type": "string", "description": "What it is called.", "maxLength": 9,
    }  # fmt: skip


BEFORE = "kind: Made # by hand\nproperties:\n  # Written by `make docs` from there.\n"
BEHIND = "  status:\n    type: object # by hand\n"


def test_a_definition_keeps_what_stands_around_its_spec() -> None:
    written = definition(f"{BEFORE}  spec:\n    type: string\n    status:\n    - a\n{BEHIND}", MADE)
    assert written.startswith(BEFORE)
    assert written.endswith(BEHIND)
    assert yaml.safe_load(written)["properties"]["spec"] == schema_of(MADE)
    assert definition(written, MADE) == written


@pytest.mark.parametrize("text", [BEFORE + BEHIND, f"properties:\n  spec:\n    a: b\n{BEHIND}"])
def test_a_definition_without_a_place_for_its_spec_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has no spec between"):
        definition(text, MADE)


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the fields of a GreenPolicy"):
        resource_tables("docs/green-policy.md", "# A page\n")


def kinds_below(kind: FieldKind[Any]) -> list[tuple[str, FieldKind[Any]]]:
    """Return the name and the kind of each field below a kind, however deep."""
    inner = kind.each or kind
    found: list[tuple[str, FieldKind[Any]]] = []
    for about in inner.below.values() if inner.below is not None else ():
        found += [(about.name, about.kind), *kinds_below(about.kind)]
    return found


@pytest.mark.parametrize("resource", SPECS.values(), ids=lambda resource: resource.kind)
def test_every_text_and_list_of_a_resource_has_a_longest(resource: Resource) -> None:
    """The API server refuses rules whose cost it cannot bound."""
    bounds = {"string": ("maxLength", "enum"), "array": ("maxItems",)}
    boundless = [
        field
        for field, kind in kinds_below(resource.spec.kind)
        if not any(
            bound in kind.schema
            for bound in bounds.get(kind.schema.get("type", "string"), ("type",))
        )
    ]
    assert boundless == []
