"""The sources of the machine code; edits of other files leave the cache valid.

These are all modules that declare compiled functions, and all that they import, directly or not:
compiled code also holds constants and field orders of imported modules. The catalogue and its rules
are excluded: each rule is compiled by itself, and numba drops its machine code when its file
changes. What rules import is included.
"""

from importlib.util import find_spec
from pathlib import Path

from greensched_policies.library.sources import folder_of, imported_by

_CATALOGUE = "greensched_policies.rules.catalogue"
_PACKAGES = ("greensched_policies", "greensched_simulator")
_COMPILES = "greensched_policies.compiling.compiled"


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


def is_our_source(path: Path) -> bool:
    """Return whether a file belongs to the policies or the simulator."""
    installed = [package for package in _PACKAGES if find_spec(package)]
    return any(path.is_relative_to(folder_of(package)) for package in installed)


def _modules(package: str) -> dict[str, Path]:
    """Return the files of a package's modules, by module name; none if it is not installed."""
    if find_spec(package) is None:
        return {}
    folder = folder_of(package)
    inner = {path: path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")}
    return {".".join((package, *parts)): path for path, parts in inner.items()}
