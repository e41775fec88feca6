"""The names allowed in a scenario file, and the places where each belongs."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from greensched_core.quoting import near
from greensched_simulator.scenario.file import FieldPlace
from greensched_simulator.scenario.model import Scenario

_Path = tuple[str, ...]  # the parts of a place, as in docs/scenarios.md
_ITEM, _NAME = "[]", "NAME"
_MOST_SHOWN = 3


def hint(place: FieldPlace) -> str:
    """Return names similar to the unknown one at this place, and places where it belongs."""
    name, known = str(place[-1]), list(dict.fromkeys(_paths(Scenario, ())))
    here = [path[-1] for path in known if len(path) == len(place) == _common(path, place) + 1]
    elsewhere = [path for path in known if path[-1] == name]
    if not elsewhere:
        return near(name, here) or near(name, {path[-1] for path in known})
    elsewhere.sort(key=lambda path: _common(path, place), reverse=True)
    places = " or ".join(map(_shown, elsewhere[:_MOST_SHOWN]))
    return f"{near(name, here)}; {name} belongs at {places}"


def _paths(kind: Any, at: _Path) -> Iterator[_Path]:
    """Yield the path of each name below a type of the file."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            path = (*at, field.alias or name)
            yield path
            yield from _paths(field.annotation, path)
        return
    inner_at = {list: (*at, _ITEM), dict: (*at, _NAME)}.get(get_origin(kind), at)
    for inner in get_args(kind):
        yield from _paths(inner, inner_at)


def _common(path: _Path, place: FieldPlace) -> int:
    """Return the length of the common beginning of a path and a place, without their last parts."""
    pairs = zip(path[:-1], place[:-1], strict=False)
    return sum(1 for _ in takewhile(_fits, pairs))


def _fits(pair: tuple[str, str | int]) -> bool:
    part, at = pair
    return part == _ITEM if isinstance(at, int) else part in (_NAME, at)


def _shown(path: _Path) -> str:
    return ".".join(path).replace(f".{_ITEM}", _ITEM) if len(path) > 1 else "the top"
