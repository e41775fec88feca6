"""The names that a scenario file may hold, and the places where each one belongs."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from greensched_core.quoting import near
from greensched_simulator.scenario.file import Place
from greensched_simulator.scenario.model import Scenario

_Path = tuple[str, ...]  # a place in parts, as docs/scenarios.md writes it
_ITEM, _NAME = "[]", "NAME"
_MOST_SHOWN = 3


def hint(place: Place) -> str:
    """Return names like the unknown one at this place, and the places where it belongs."""
    name, known = str(place[-1]), list(dict.fromkeys(_paths(Scenario, ())))
    here = [path[-1] for path in known if len(path) == len(place) == _common(path, place) + 1]
    elsewhere = [path for path in known if path[-1] == name]
    if not elsewhere:
        return near(name, here) or near(name, {path[-1] for path in known})
    elsewhere.sort(key=lambda path: _common(path, place), reverse=True)
    places = " or ".join(map(_shown, elsewhere[:_MOST_SHOWN]))
    return f"{near(name, here)}; {name} belongs at {places}"


def _paths(kind: Any, at: _Path) -> Iterator[_Path]:
    """Yield the path of each name that a type of the file leads to."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            path = (*at, field.alias or name)
            yield path
            yield from _paths(field.annotation, path)
        return
    inner_at = {list: (*at, _ITEM), dict: (*at, _NAME)}.get(get_origin(kind), at)
    for inner in get_args(kind):
        yield from _paths(inner, inner_at)


def _common(path: _Path, place: Place) -> int:
    """Return how many parts a path and a place have in common before their last ones."""
    pairs = zip(path[:-1], place[:-1], strict=False)
    return sum(1 for _ in takewhile(_fits, pairs))


def _fits(pair: tuple[str, str | int]) -> bool:
    part, at = pair
    return part == _ITEM if isinstance(at, int) else part in (_NAME, at)


def _shown(path: _Path) -> str:
    return ".".join(path).replace(f".{_ITEM}", _ITEM) if len(path) > 1 else "the top"
