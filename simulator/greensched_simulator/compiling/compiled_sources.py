"""Which sources machine code is made from, so that an edit of others leaves it as it is.

That is whatever declares compiled functions and, since compiled code also holds what others
declare, such as a constant or the order of a tuple's fields, all that is imported there, and there
in turn. The catalogue and its rules are none of them: a rule is compiled apart, and numba itself
keeps its machine code only as long as its file is unchanged; what rules import does count.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_IMPORT = re.compile(
    r"^(?:from|import) (greensched_(?:policies|simulator)[\w.]*)(?: import \(?([\w, ]+))?",
    re.MULTILINE,
)
_CATALOGUE = "greensched_policies.rules.catalogue"
_PACKAGES = ("greensched_policies", "greensched_simulator")
_COMPILES = "greensched_simulator.compiling.compiled"


def compiled_sources() -> list[Path]:
    """Return the files, in an order that does not depend on where they are."""
    modules = {name: path for package in _PACKAGES for name, path in _modules(package).items()}
    imports = {name: set(imported_by(path.read_text())) for name, path in modules.items()}
    found: set[str] = set()
    ahead = [name for name, imported in imports.items() if _COMPILES in imported]
    while ahead:
        name = ahead.pop()
        if name in found or name not in modules:
            continue
        found.add(name)
        for other in imports[name]:
            ahead += imports.get(other, ()) if name == _CATALOGUE else [other]
    return [modules[name] for name in sorted(found - {_CATALOGUE})]


def imported_by(source: str) -> Iterator[str]:
    """Yield what a source imports, and what would be imported if its names were modules."""
    for module, names in _IMPORT.findall(source):
        yield module
        yield from (f"{module}.{name.strip()}" for name in names.split(","))


def is_ours(path: Path) -> bool:
    """Say whether a file belongs to the packages of which these are."""
    return any(path.is_relative_to(_folder(package)) for package in _PACKAGES)


def _modules(package: str) -> dict[str, Path]:
    """Return the file of each of a package's modules by its name."""
    folder = _folder(package)
    inner = {path: path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")}
    return {".".join((package, *parts)): path for path, parts in inner.items()}


@cache
def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is not installed"
    return Path(next(iter(spec.submodule_search_locations)))
