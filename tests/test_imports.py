"""What a component declares, has pinned and loads: only what its image holds."""

import ast
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import grimp
import pytest

from greensched_cli.extras import BROUGHT

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

LIGHT_BYTES = 60 * 2**20  # pip, setuptools and we take another 35 MiB of the 120 there may be
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
    # The one only for a login by an auth-provider, inside a function; the others by SERVING alone.
    "greensched_core": {"kubernetes", "httptools", "starlette", "uvicorn"},
    # `compiling` and `kernel` alone, for the simulator; nothing else may import those.
    "greensched_policies": {"numba", "llvmlite", "platformdirs"},
    # Where a verb asks for the extra `report` first.
    "greensched_cli": {"plotly", "pyarrow"},
}
# For the components that serve HTTP, or ask through port-forwards, and have what it needs.
SERVING = {
    f"greensched_core.{name}"
    for name in ("serving", "connections", "server_handshakes", "bodies", "port_forward")
}


# For the simulator, and for who makes the compiled library: both have numba.
COMPILING = ("greensched_policies.compiling", "greensched_policies.kernel")


def modules(package: str) -> list[str]:
    """Return the names of a package's modules, __main__ included, without those for a compiler."""
    path = import_module(package).__path__
    names = [package, *(info.name for info in pkgutil.walk_packages(path, f"{package}."))]
    return [name for name in names if not name.startswith(COMPILING)]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return who imports whom, of all our packages."""
    return grimp.build_graph(*ABSENT, "greensched_testbed", "greensched_cli", cache_dir=None)


def folders(graph: grimp.ImportGraph) -> list[str]:
    """Return the names of the sub-packages."""
    return sorted(each for each in graph.modules if "." in each and graph.find_children(each))


def folder_beside(folder: str, module: str, known: Collection[str]) -> str:
    """Return the folder of the same package in which a module is; "" for a file beside it."""
    own, other = folder.split("."), module.split(".")
    apart = next(at for at, part in enumerate(other) if own[at : at + 1] != [part])
    return other[apart] if ".".join(other[: apart + 1]) in known else ""


def test_each_folder_says_which_other_folders_of_its_package_it_imports(
    graph: grimp.ImportGraph,
) -> None:
    known, wrong = folders(graph), {}
    for folder in known:
        inside = {folder, *graph.find_descendants(folder)}
        imported = set().union(*map(graph.find_modules_directly_imported_by, inside)) - inside
        package = f"{folder.partition('.')[0]}."
        beside = {
            folder_beside(folder, each, known) for each in imported if each.startswith(package)
        }
        sentence = re.search(r"Imports\s.*?(?=\sBegin|\.\s|$)", doc_of(folder), re.DOTALL)
        said = set(re.findall(r"`(\w+)[/`]", sentence[0] if sentence else ""))
        if said != beside - {""}:
            wrong[folder] = f"says {sorted(said)}, imports {sorted(beside - {''})}"
    assert len(known) > 30 and wrong == {}


def doc_of(package: str) -> str:
    """Return the docstring of a package, not imported for it."""
    (path,) = ROOT.glob(f"*/{package.replace('.', '/')}/__init__.py")
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


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
    [("dev", "all"), *((extra, extra) for extra in ("all", "cli", "extender", "operator"))],
)
def test_every_declared_dependency_is_pinned(name: str, extra: str) -> None:
    wanted = declared(extra)
    if name == "dev":
        wanted |= {requirement(line) for line in PROJECT["dependency-groups"]["dev"]}
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert wanted - set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE)) == set()


def test_what_builds_the_kernel_is_pinned_as_the_simulator_has_it() -> None:
    lines = PROJECT["dependency-groups"]["kernel"]
    simulator = set(PROJECT["project"]["optional-dependencies"]["simulator"])
    assert set(lines) - simulator == {line for line in lines if line.startswith("ziglang")}
    kernel, everything = (
        set(re.findall(r"^\w.*==.*$", (ROOT / "requirements" / name).read_text(), re.MULTILINE))
        for name in ("kernel.txt", "dev.txt")
    )
    assert {pin.split("==")[0] for pin in kernel - everything} == {"ziglang"}, "run `make lock`"
    assert {requirement(line) for line in lines} <= {pin.split("==")[0] for pin in kernel}


def test_the_command_line_for_a_cluster_brings_nothing_heavy() -> None:
    heavy = HEAVY | SERVERS | TOOLS - {"typer"} | {
        "cryptography", "duckdb", "fonttools", "kopf", "llvmlite", "matplotlib", "psycopg",
        "psycopg-binary", "pyarrow", "requests", "scipy", "sqlalchemy",
    }  # fmt: skip
    assert closure("cli") & {normalised(name) for name in heavy} == set()
    text = (ROOT / "requirements/cli.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE))
    assert pinned - {"colorama"} <= closure("cli"), "run `make lock`"  # colorama: Windows alone
    files = (file for name in closure("cli") for file in importlib.metadata.files(name) or ())
    weights = (path.stat().st_size for path in map(located, files) if path.is_file())
    assert sum(weights) < LIGHT_BYTES


@pytest.mark.parametrize("extra", BROUGHT)
def test_what_is_looked_for_comes_with_the_extra_alone(extra: str) -> None:
    providers = importlib.metadata.packages_distributions()
    for name in BROUGHT[extra]:
        (distribution,) = {normalised(each) for each in providers[name]}
        assert distribution in declared(extra) - closure("cli")


def closure(extra: str) -> set[str]:
    """Return the distributions that an extra brings, those that they ask for included."""
    found, waiting = set[str](), declared(extra)
    while waiting:
        name = waiting.pop()
        found.add(name)
        asked = [line for line in importlib.metadata.requires(name) or () if "extra ==" not in line]
        waiting |= {each for each in map(requirement, asked) if is_installed(each)} - found
    return found


def located(file: importlib.metadata.PackagePath) -> Path:
    """Return where a file of a distribution lies."""
    return Path(str(file.locate()))


def is_installed(name: str) -> bool:
    """Tell whether a distribution is there; what another system or Python needs is not."""
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


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


def test_a_simulation_starts_without_what_takes_a_second_to_import() -> None:
    code = "import sys, greensched_cli.simulation.simulation_terminal; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert "scipy.stats" not in loaded.stdout.decode().split()
