"""Rules of the house that no linter knows: layout, packaging, what a tracked file may hold."""

import ast
import json
import operator
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repository_files import ROOT, files_of_the_repository

TESTS = ROOT / "tests"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MIB = 2**20

# In pieces, so that this file passes its own test.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("goproxy", "io"),
        ("goproxy", "cn"),
        ("registry", "npmjs", "org"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("mirrors", "aliyun", "com"),
        ("tuna", "tsinghua", "edu", "cn"),
    )
]
FOLDER_OF_ONE_MACHINE = re.compile(r"(?<![\w.$}-])/(work|home|root|Users)/\w")


FILES = files_of_the_repository()


def texts() -> list[tuple[str, str]]:
    """Return name and content of every text file."""
    found = []
    for path in FILES:
        content = path.read_bytes()
        if b"\0" not in content:
            found.append((str(path.relative_to(ROOT)), content.decode("utf-8", "replace")))
    return found


def test_the_standard_operator_is_untouched() -> None:
    assert operator.__file__ is not None
    assert operator.__file__.startswith(sysconfig.get_paths()["stdlib"])


def test_no_package_under_tests() -> None:
    assert not list(TESTS.rglob("__init__.py"))


def test_the_operator_folder_is_no_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_test_file_names_are_unique() -> None:
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_tests_of_a_package_lie_in_folders_of_the_same_names() -> None:
    """A theme that is no folder of a package has a folder of its own at the top of `tests`."""
    strangers = [
        str(folder.relative_to(ROOT))
        for package in PACKAGES
        for folder in {path.parent for path in TESTS.glob(f"{Path(package).parent}/**/test_*.py")}
        if not (ROOT / package / folder.relative_to(TESTS / Path(package).parent)).is_dir()
    ]
    assert strangers == ["tests/operator/faults"], "days of all processes together"
    misplaced = {
        str(path.relative_to(ROOT)): room
        for package in PACKAGES
        for path in TESTS.glob(f"{Path(package).parent}/**/test_*.py")
        if (room := deeper_room(imported(path), folder_tested_in(path.parent, package)))
    }
    assert misplaced == {}, "the sub-package that most of its imports are from has its own folder"


def folder_tested_in(folder: Path, package: str) -> str:
    """Return the sub-package of the same name as a folder of tests."""
    parts = folder.relative_to(TESTS / Path(package).parent).parts
    return ".".join([Path(package).name, *parts])


def imported(path: Path) -> set[str]:
    """Return our modules that a file imports; `.__init__` ends the name of a package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {module_of(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {module_of(f"{node.module}.{alias.name}") for alias in node.names}
    return found - {""}


@cache
def module_of(name: str) -> str:
    """Return the module of ours that a dotted name is or lies in; "" if it is not ours."""
    for end in (name, name.rpartition(".")[0]):
        path = ROOT / end.partition(".")[0].removeprefix("greensched_") / end.replace(".", "/")
        if path.with_suffix(".py").is_file():
            return end
        if (path / "__init__.py").is_file():
            return f"{end}.__init__"
    return ""


def deeper_room(modules: Collection[str], folder: str) -> str:
    """Return the sub-package in which three of four modules lie that a test of a folder imports.

    Modules outside the folder do not count, nor do a package's errors and worlds made for tests.
    """
    parts = [
        name.removeprefix(f"{folder}.").split(".")
        for name in modules
        if name.startswith(f"{folder}.")
    ]
    counted = [each for each in parts if each[0] not in {"errors", "testing"}]
    rooms = Counter(each[0] for each in counted if len(each) > 1)
    room, count = max(rooms.items(), key=lambda each: each[1], default=("", 0))
    return room if count and count >= 0.75 * len(counted) else ""


@pytest.mark.parametrize(
    ("modules", "room"),
    [
        pytest.param(["state.starts", "state.terms"], "state", id="all"),
        pytest.param(["state.a", "state.b", "state.c", "run"], "state", id="three-of-four"),
        pytest.param(["state.a", "state.b", "run"], "", id="two-of-three"),
        pytest.param(["state.a", "queue.b"], "", id="two-together"),
        pytest.param(["state.__init__", "errors"], "state", id="errors-do-not-count"),
        pytest.param(["run"], "", id="a-module-beside"),
        pytest.param([], "", id="none"),
    ],
)
def test_a_test_belongs_where_three_of_four_modules_lie(modules: list[str], room: str) -> None:
    elsewhere = [f"greensched_simulator.world.{name}" for name in "abcde"]
    inside = [f"greensched_simulator.engine.{name}" for name in modules]
    assert deeper_room([*elsewhere, *inside], "greensched_simulator.engine") == room


def test_each_source_folder_holds_exactly_one_package_and_the_project_names_it() -> None:
    sources = {path.parent for path in ROOT.glob("*/greensched_*/__init__.py")}
    assert {str(path.relative_to(ROOT)) for path in sources} == set(PACKAGES)
    assert all(path.name == f"greensched_{path.parent.name}" for path in sources)


def test_import_layers_know_every_package() -> None:
    names = {Path(package).name for package in PACKAGES}
    linter = PROJECT["tool"]["importlinter"]
    layers = " ".join(linter["contracts"][0]["layers"]).replace("|", " ").split()
    assert set(linter["root_packages"]) == names
    assert set(layers) == names


def test_types_are_checked_in_every_source_folder() -> None:
    assert set(PROJECT["tool"]["mypy"]["mypy_path"]) == {Path(p).parts[0] for p in PACKAGES}
    assert all((ROOT / package / "py.typed").exists() for package in PACKAGES)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the names in the wheel, built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built).namelist()


def test_the_wheel_holds_every_file_of_every_package(wheel: list[str]) -> None:
    expected = {
        str(path.relative_to((ROOT / package).parent))
        for package in PACKAGES
        for path in FILES
        if path.is_relative_to(ROOT / package)
    }
    assert expected, "no package has a file"
    assert expected - set(wheel) == set()


def test_the_wheel_holds_nothing_but_the_packages(wheel: list[str]) -> None:
    names = {Path(package).name for package in PACKAGES}
    others = {name.split("/")[0] for name in wheel} - names
    assert {name for name in others if not name.endswith(".dist-info")} == set()


@pytest.mark.parametrize("name", ["dev", "cli", "extender", "kernel", "operator"])
def test_every_requirement_is_pinned_by_hash_and_names_no_index(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^(\S+)==\S+.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    blocks = re.split(r"^(?=[a-zA-Z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(pins) == len(blocks) > (4 if name == "kernel" else 10)
    assert [block.split("==")[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert not re.search(r"^--|://", text, re.MULTILINE)


def test_no_file_names_a_package_registry() -> None:
    found = [(name, host) for name, text in texts() for host in REGISTRY_HOSTS if host in text]
    assert found == []


def test_no_file_holds_a_path_of_one_machine() -> None:
    found = [
        (name, hit[0]) for name, text in texts() if (hit := FOLDER_OF_ONE_MACHINE.search(text))
    ]
    assert found == []


def test_no_file_is_larger_than_one_mebibyte() -> None:
    assert [str(path) for path in FILES if path.stat().st_size > MIB] == []


def test_every_make_target_says_what_it_does() -> None:
    rules = re.findall(r"^([a-z][a-z0-9-]*):(.*)$", MAKEFILE, re.MULTILINE)
    phony = set(re.findall(r"^\.PHONY: (\S+)$", MAKEFILE, re.MULTILINE))
    assert {name for name, rest in rules if " ## " not in rest} == set()
    assert {name for name, _ in rules} == phony


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if p.suffix == ".sh" or p.parent == ROOT / ".ci"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_script_parses_and_may_be_run(path: Path) -> None:
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert os.access(path, os.X_OK)


def test_every_yaml_toml_and_json_file_parses() -> None:
    for path in FILES:
        if "templates" in path.parts:
            continue  # Helm's templates are YAML only after rendering
        if path.suffix in {".yaml", ".yml"}:
            list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        elif path.suffix == ".toml":
            tomllib.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
