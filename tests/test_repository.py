"""Rules of the house that no linter knows: layout, packaging, what a tracked file may hold."""

import json
import operator
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
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
