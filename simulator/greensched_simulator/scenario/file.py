"""Reads YAML with the line of each entry, by the rules of YAML 1.2.

PyYAML itself follows YAML 1.1, in which the zone `NO` is false, `12:30` is 750 and `2023-06-01` is
a date. It also accepts a repeated name silently and keeps the last value.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from greensched_core.errors import BadInput

FieldPlace = tuple[str | int, ...]
FaultsByPlace = Iterator[tuple[FieldPlace, str]]

_RESOLVED = {
    "bool": (re.compile(r"(?:true|false)\Z"), "tf"),
    "int": (re.compile(r"[-+]?[0-9]+\Z"), "-+0123456789"),
    "float": (
        re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z"),
        "-+.0123456789",
    ),
    "null": (re.compile(r"(?:~|null|)\Z"), ["~", "n", ""]),
}


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars as YAML 1.2 does."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # none of YAML 1.1's


for _name, (_pattern, _first) in _RESOLVED.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, list(_first))


@dataclass(frozen=True)
class Document:
    """The content of a YAML file, and the line of each entry."""

    content: dict[str, Any]
    lines: dict[FieldPlace, int]
    repeated: tuple[FieldPlace, ...]  # entries whose name was given before


def read_document(path: Path) -> Document:
    """Return a YAML file's entries; raise BadInput if it is not YAML or has no names."""
    found = read_documents(path)
    if not found:
        raise BadInput(f"{path} is empty; docs/scenarios.md shows what a scenario holds")
    if len(found) > 1:
        raise BadInput(f"{path} holds {len(found)} YAML documents; it may hold 1")
    return found[0]


def read_documents(path: Path) -> list[Document]:
    """Return the entries of each document of a YAML file that is not empty.

    Raises BadInput if it is not YAML, or a document has no names.
    """
    loader = _Loader(_text(path))
    found = list[Document]()
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # there is one, by check_node
            content = loader.construct_document(node)
            lines: dict[FieldPlace, int] = {}
            repeated: list[FieldPlace] = []
            _walk(node, (), lines, repeated)
            if content is not None:
                found.append(Document(content, lines, tuple(repeated)))
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        raise BadInput(f"{path} is not valid YAML: {fault}") from fault
    finally:
        loader.dispose()
    for each in found:
        if not isinstance(each.content, dict) or not all(isinstance(k, str) for k in each.content):
            raise BadInput(f"{path} must hold names with values, such as `name: my-scenario`")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as fault:
        raise BadInput(f"there is no file {path}") from fault
    except IsADirectoryError as fault:
        raise BadInput(f"{path} is a folder; name a scenario file in it") from fault
    except OSError as fault:
        raise BadInput(f"{path} cannot be read: {fault.strerror}") from fault
    except UnicodeDecodeError as fault:
        raise BadInput(f"{path} is not text in UTF-8") from fault


def _walk(
    node: yaml.Node, place: FieldPlace, lines: dict[FieldPlace, int], repeated: list[FieldPlace]
) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            if inner in lines:
                repeated.append(inner)
            lines[inner] = key.start_mark.line + 1
            _walk(value, inner, lines, repeated)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*place, index)] = value.start_mark.line + 1
            _walk(value, (*place, index), lines, repeated)
