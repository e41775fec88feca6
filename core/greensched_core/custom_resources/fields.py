"""Fields of custom resources, each defined once: at the attribute that its value becomes.

`custom_field` defines a field's name, kind, default and meaning. The reader follows from that
(`reader_of`), and so does what `make docs` writes: the schema and rules of the CRD, and the tables
of the resource's page.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec

from greensched_core.durations import parse_duration
from greensched_core.errors import BadDuration, BadInput
from greensched_core.quoting import LONGEST_QUOTE, near, quoted

Value = TypeVar("Value")
Other = TypeVar("Other")
Part = TypeVar("Part")
Word = TypeVar("Word", bound=StrEnum)
_ABOUT = "custom field"  # the key of a field's metadata


class SchemaRule(NamedTuple):
    """A check of the API server, in CEL, and its error message."""

    cel: str
    message: str
    path: str = ""  # of the field below that the message is about, such as .bundle


@dataclass(frozen=True, slots=True)
class FieldKind(Generic[Value]):
    """The kind of values that a field takes."""

    read: Callable[[object, str], Value]  # takes a value and its place; raises BadInput
    schema: Mapping[str, Any]  # OpenAPI schema, without rules, fields and items
    unit: str  # as the tables of docs/ show it
    rules: tuple[SchemaRule, ...] = ()
    below: "Mapping[str, FieldDefinition] | None" = None  # an object's fields, by attribute
    each: "FieldKind[Any] | None" = None  # kind of a list's items


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """The definition of a field."""

    name: str
    kind: FieldKind[Any]
    meaning: str
    default: object = None  # that the API server writes into objects; None: it writes nothing
    absent: str = ""  # what an absent field means, if it has no default
    needed: str = ""  # error message if a required field is absent


@overload
def custom_field(
    name: str, kind: FieldKind[Value], meaning: str, *, default: str | float | Mapping[str, object]
) -> Value: ...
@overload
def custom_field(
    name: str, kind: FieldKind[Value], meaning: str, *, unset: Other, absent: str
) -> Value | Other: ...
@overload
def custom_field(name: str, kind: FieldKind[Value], meaning: str, *, needed: str) -> Value: ...
def custom_field(
    name: str,
    kind: FieldKind[Any],
    meaning: str,
    *,
    default: object = None,
    unset: object = None,
    absent: str = "",
    needed: str = "",
) -> Any:
    """Define a field of a custom resource at a dataclass's attribute.

    `default` is as users write it. Without a default, `unset` is the attribute's value if the field
    is absent, and `absent` says in a word or two what that means. A required field has `needed`,
    the error message if it is absent.
    """
    metadata = {_ABOUT: FieldDefinition(name, kind, meaning, default, absent, needed)}
    if needed:
        return field(metadata=metadata)
    return field(default=unset if default is None else kind.read(default, name), metadata=metadata)


def fields_of(kind: type[Any]) -> Mapping[str, FieldDefinition]:
    """Return the custom fields of a dataclass, by attribute, in the order of definition."""
    return {each.name: each.metadata[_ABOUT] for each in fields(kind) if _ABOUT in each.metadata}


def reader_of(known: Mapping[str, FieldDefinition]) -> Callable[[object, str], dict[str, Any]]:
    """Return a function of an object and its place that returns a dataclass's attributes.

    It treats null as absent, and skips unknown fields, such as those of a later version. It raises
    BadInput for the first field that it cannot read.
    """
    steps = [(name, each.name, each.kind.read, each.needed) for name, each in known.items()]

    def read(raw: object, where: str) -> dict[str, Any]:
        if not isinstance(raw, dict):  # the usual case; checking for other mappings is slower
            raw = raw if isinstance(raw, Mapping) else plain(dict, raw, where)
        found = {}
        for attribute, name, value_of, needed in steps:
            if (value := raw.get(name)) is not None:
                found[attribute] = value_of(value, f"{where}.{name}")
            elif needed:
                raise BadInput(f"{where}: {needed}")
        return found

    return read


class FieldFault(NamedTuple):
    """What is wrong at a place of an object that a person wrote, such as ("spec", "mode")."""

    place: tuple[str | int, ...]
    message: str


def all_faults(
    known: Mapping[str, FieldDefinition], raw: object, place: tuple[str | int, ...]
) -> list[FieldFault]:
    """Return everything that is wrong with an object's fields, unknown names included.

    Readers of an API server's objects stop at the first fault, and skip unknown fields. For a file
    this says what `kubectl apply` would refuse.
    """
    if not isinstance(raw, Mapping):
        return _faults_of(lambda: plain(dict, raw, _text_of(place)), place)
    kinds = {each.name: each.kind for each in known.values()}
    found = list[FieldFault]()
    for name, value in raw.items():
        inner = (*place, str(name))
        if name not in kinds:
            close = near(str(name), kinds)
            found.append(FieldFault(inner, f"{_text_of(inner)}: there is no such field{close}"))
        elif value is not None:
            found += _value_faults(kinds[name], value, inner)
    for each in known.values():
        if each.needed and raw.get(each.name) is None:
            found.append(FieldFault(place, f"{_text_of(place)}: {each.needed}"))
    return found


def _value_faults(
    kind: FieldKind[Any], value: object, place: tuple[str | int, ...]
) -> list[FieldFault]:
    inner = list[FieldFault]()
    if kind.below is not None:
        inner = all_faults(kind.below, value, place)
    elif kind.each is not None and isinstance(value, list):
        for at, one in enumerate(value):
            inner += _value_faults(kind.each, one, (*place, at))
    return inner or _faults_of(lambda: kind.read(value, _text_of(place)), place)


def _faults_of(read: Callable[[], object], place: tuple[str | int, ...]) -> list[FieldFault]:
    try:
        read()
    except BadInput as fault:
        return [FieldFault(place, str(fault))]
    return []


def _text_of(place: tuple[str | int, ...]) -> str:
    whole = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return whole.removeprefix(".")


def plain(kind: type[Value], raw: object, where: str) -> Value:
    """Return a JSON value of that type; raise BadInput, with the field, for another type."""
    if isinstance(raw, kind) and (kind is bool or not isinstance(raw, bool)):
        return raw  # in Python, true is an int too
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        raise BadInput(f"{where}: {_shown(raw)} is not {_WANTED[kind]}") from None


_WANTED: Mapping[Any, str] = {
    str: "text; write it in quotes",
    float: "a number; write it without a unit and without quotes",
    int: "a whole number; write it without a unit and without quotes",
    bool: "true or false; write one of these without quotes",
    list: "a list",
    dict: "an object with fields",
}


def _shown(raw: object) -> str:
    """Return a JSON value as a person wrote it, or what it is if it has parts."""
    match raw:
        case None:
            return "null"
        case bool():
            return "true" if raw else "false"
        case str():
            return quoted(raw)
        case list():
            return "a list"
        case Mapping():
            return "an object"
    return str(raw)[:LONGEST_QUOTE]


_seconds = lru_cache(maxsize=1024)(parse_duration)  # objects arrive again with the same durations
_LONGEST_DURATION = 32  # characters
_IS_DURATION = SchemaRule(
    "self.matches('^([0-9]+([.][0-9]+)?(ms|d|h|m|s))+$')",
    "this is not a duration; write a number with a unit of d, h, m, s or ms, such as 90s, 1h30m "
    "or 2d",
)


def duration(above_zero: str = "") -> FieldKind[float]:
    """Return the kind of durations, in seconds; `above_zero` is the error message for zero."""

    def read(raw: object, where: str) -> float:
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            raise BadInput(f"{where}: {_shown(raw)} has no unit; write for example 90s, 6h or 7d")
        given = plain(str, raw, where)
        _check_length(given, _LONGEST_DURATION, where)
        try:
            seconds = _seconds(given)
        except BadDuration as fault:
            raise BadInput(f"{where}: {fault}") from None
        if given != given.strip():
            raise BadInput(f"{where}: {quoted(given)} has blanks around it; leave them out")
        if above_zero and seconds <= 0:
            raise BadInput(f"{where}: must be above zero")
        return seconds

    longer = (SchemaRule("self.matches('[1-9]')", above_zero),) if above_zero else ()
    unit = "duration above 0" if above_zero else "duration"
    return FieldKind(
        read, {"type": "string", "maxLength": _LONGEST_DURATION}, unit, (_IS_DURATION, *longer)
    )


def number(
    most: float, unit: str, *rules: SchemaRule, per: float = 1.0, least: float = 0.0
) -> FieldKind[float]:
    """Return the kind of numbers from `least` to `most`; the value is divided by `per`."""

    def read(raw: object, where: str) -> float:
        value = plain(float, raw, where)
        if not least <= value <= most:
            raise BadInput(f"{where}: {value:.12g} must be from {least:.12g} to {most:.12g}")
        return value / per

    return FieldKind(read, {"type": "number"}, unit, rules)


def percent(
    of: str,
    most: float = 100.0,
    message: str = "a percentage must be from 0 to 100",
    least: float = 0.0,
) -> FieldKind[float]:
    """Return the kind of percentages of something; the value is a share of 1."""
    unit = f"% of {of}" + ("" if (least, most) == (0.0, 100.0) else f", {least:g} to {most:g}")
    rule = SchemaRule(f"self >= {least!r} && self <= {most!r}", message)
    return number(most, unit, rule, per=100.0, least=least)


def flag() -> FieldKind[bool]:
    """Return the kind of booleans."""
    return FieldKind(lambda raw, where: plain(bool, raw, where), {"type": "boolean"}, "true, false")


def text(longest: int, unit: str, *rules: SchemaRule) -> FieldKind[str]:
    """Return the kind of texts with at most `longest` characters."""

    def read(raw: object, where: str) -> str:
        given = plain(str, raw, where)
        _check_length(given, longest, where)
        return given

    return FieldKind(read, {"type": "string", "maxLength": longest}, unit, rules)


def _check_length(given: str, longest: int, where: str) -> None:
    if len(given) > longest:
        raise BadInput(f"{where}: {quoted(given)} has more than {longest} characters")


def word(words: type[Word]) -> FieldKind[Word]:
    """Return the kind of the words of an enumeration."""

    def read(raw: object, where: str) -> Word:
        given = plain(str, raw, where)
        try:
            return words(given)
        except ValueError:
            known = ", ".join(words)
            raise BadInput(f"{where}: {quoted(given)} is none of {known}") from None

    unit = ", ".join(f"`{each}`" for each in words)
    return FieldKind(read, {"type": "string", "enum": [str(each) for each in words]}, unit)


def group(
    below: type[Part], finish: Callable[[Part, str], Value], *rules: SchemaRule
) -> FieldKind[Value]:
    """Return the kind of objects with a dataclass's fields, which `finish` turns into the value.

    `finish` also takes the place, and raises BadInput for fields that do not fit together.
    """

    known = fields_of(below)
    attributes = reader_of(known)

    def read(raw: object, where: str) -> Value:
        return finish(below(**attributes(raw, where)), where)

    return FieldKind(read, {"type": "object"}, "", rules, below=known)


def many(
    each: FieldKind[Part],
    most: int,
    finish: Callable[[tuple[Part, ...], str], Value],
    *rules: SchemaRule,
    unit: str = "list",
    list_type: str = "atomic",
) -> FieldKind[Value]:
    """Return the kind of lists of at most `most` items, which `finish` turns into the value."""

    item = each.read

    def read(raw: object, where: str) -> Value:
        given = plain(list, raw, where)
        if len(given) > most:
            raise BadInput(f"{where}: {len(given)} are more than {most}")
        return finish(tuple(item(one, f"{where}[{at}]") for at, one in enumerate(given)), where)

    schema = {"type": "array", "maxItems": most, "x-kubernetes-list-type": list_type}
    return FieldKind(read, schema, unit, rules, each=each)


def as_read(found: Value, where: str) -> Value:
    """Return the value unchanged: a `finish` that does nothing."""
    return found
