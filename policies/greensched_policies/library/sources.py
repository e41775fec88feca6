"""The source files of a module and of all that it imports, found by their text."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_IMPORT = re.compile(
    r"^(?:from|import) (greensched_(?:core|policies|simulator)[\w.]*)"
    r"(?: import (?:\(([\w,\s]+)\)|([\w, ]+)))?",
    re.MULTILINE,
)


def sources_of(module: str) -> list[Path]:
    """Return the files of a module, and of all modules of ours that it imports, by their names."""
    found: dict[str, Path] = {}
    ahead = [module]
    while ahead:
        name = ahead.pop()
        path = _file_of(name)
        if path is not None and name not in found:
            found[name] = path
            ahead += imported_by(path.read_text())
    return [found[name] for name in sorted(found)]


def imported_by(source: str) -> Iterator[str]:
    """Yield the modules that a source imports, and each imported name as if it were a module."""
    for module, in_lines, in_line in _IMPORT.findall(source):
        yield module
        names = in_lines or in_line
        yield from (f"{module}.{name.strip()}" for name in names.split(",") if name.strip())


@cache
def folder_of(package: str) -> Path:
    """Return the folder of an installed package."""
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is not installed"
    return Path(next(iter(spec.submodule_search_locations)))


def _file_of(module: str) -> Path | None:
    package, *inner = module.split(".")
    path = folder_of(package).joinpath(*inner).with_suffix(".py")
    return path if inner and path.exists() else None
