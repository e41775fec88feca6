"""The sources of the machine code; edits of other files leave the cache valid.

These are all modules that declare compiled functions, and all that they import, directly or not:
compiled code also holds constants and field orders of imported modules. The catalogue and its rules
are excluded: each rule is compiled by itself, and numba drops its machine code when its file
changes. What rules import is included.
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
    """Return the files, in an order that does not depend on their paths."""
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
    """Yield the modules that a source imports, and each imported name as if it were a module."""
    for module, names in _IMPORT.findall(source):
        yield module
        yield from (f"{module}.{name.strip()}" for name in names.split(","))


def is_ours(path: Path) -> bool:
    """Return whether a file belongs to the policies or the simulator."""
    return any(path.is_relative_to(_folder(package)) for package in _PACKAGES)


def _modules(package: str) -> dict[str, Path]:
    """Return the files of a package's modules, by module name."""
    folder = _folder(package)
    inner = {path: path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")}
    return {".".join((package, *parts)): path for path, parts in inner.items()}


@cache
def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is not installed"
    return Path(next(iter(spec.submodule_search_locations)))
