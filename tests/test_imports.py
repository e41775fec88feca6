"""What a component declares, has pinned and loads: only what its image holds."""

import ast
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

HEAVY = {"numpy", "onnxruntime", "onnx", "torch", "numba"}
SERVERS = {"fastapi", "starlette", "uvicorn", "prometheus_client"}
TOOLS = {"kubernetes", "typer", "plotly", "psutil", "pytest", "hypothesis"}
ABSENT = {
    "greensched_core": HEAVY | SERVERS | TOOLS,
    "greensched_policies": {"torch", "onnx", "numba"} | SERVERS | TOOLS,
    "greensched_extender": {"torch", "onnx", "numba"} | TOOLS,
    # kopf loads `kubernetes` where it is there; the image lacks it.
    "greensched_operator": {"torch", "onnx", "numba", "pyarrow"} | TOOLS - {"kubernetes"},
    "greensched_simulator": {"torch", "onnx"} | SERVERS,
}
# Imported by those who have it: not part of the package's own extra.
OPTIONAL = {
    # The one only to read a kubeconfig, inside a function; the others by SERVING alone.
    "greensched_core": {"kubernetes", "starlette", "uvicorn"},
}
# For the components that serve HTTP, and have what it needs.
SERVING = {
    f"greensched_core.{name}" for name in ("serving", "connections", "server_handshakes", "bodies")
}


def modules(package: str) -> list[str]:
    """Return the names of a package's modules, __main__ included."""
    path = import_module(package).__path__
    return [package, *(info.name for info in pkgutil.walk_packages(path, f"{package}."))]


@pytest.mark.parametrize("package", ABSENT)
def test_a_package_does_not_load_what_its_image_lacks(package: str) -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {[name for name in modules(package) if name not in SERVING]!r}:\n"
        "    importlib.import_module(name)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) & ABSENT[package] == set()


@pytest.mark.parametrize(
    "package", ["core", "policies", "extender", "operator", "simulator", "testbed", "cli"]
)
def test_a_package_imports_only_what_its_extra_declares(package: str) -> None:
    providers = importlib.metadata.packages_distributions()
    name = f"greensched_{package}"
    allowed = declared(package)
    undeclared = {
        top: sorted(distributions)
        for top, distributions in (
            (top, {normalised(each) for each in providers.get(top, ["absent"])})
            for top in third_party(ROOT / package / name) - OPTIONAL.get(name, set())
        )
        if not distributions & allowed
    }
    assert undeclared == {}


@pytest.mark.parametrize(
    ("name", "extra"),
    [("dev", "cli"), ("cli", "cli"), ("extender", "extender"), ("operator", "operator")],
)
def test_every_declared_dependency_is_pinned(name: str, extra: str) -> None:
    wanted = declared(extra)
    if name == "dev":
        wanted |= {requirement(line) for line in PROJECT["dependency-groups"]["dev"]}
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert wanted - set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE)) == set()


def third_party(folder: Path) -> set[str]:
    """Return the top-level names that a package imports from elsewhere."""
    tops: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                tops |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                tops.add(node.module.split(".")[0])
    return {top for top in tops - sys.stdlib_module_names if not top.startswith("greensched_")}


def declared(extra: str) -> set[str]:
    """Return the distributions that the core and an extra ask for, extras within followed."""
    names = {requirement(line) for line in PROJECT["project"]["dependencies"]}
    for line in PROJECT["project"]["optional-dependencies"].get(extra, []):
        inner = re.fullmatch(r"greensched\[([\w,]+)\]", line)
        if inner:
            names |= set().union(*(declared(each) for each in inner[1].split(",")))
        else:
            names.add(requirement(line))
    return names


def requirement(line: str) -> str:
    """Return the name in a requirement such as `Typer>=0.15`."""
    return normalised(re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0])


def normalised(name: str) -> str:
    """Return a distribution's name as the requirements write it."""
    return re.sub(r"[-_.]+", "-", name).lower()
