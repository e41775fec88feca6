"""The recipes of CONTRIBUTING.md, walked in a scratch copy: what it shows works as it stands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CATALOGUE = Path("policies/greensched_policies/rules/catalogue.py")
BLOCK = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)
LINE = re.compile(r'^"([a-z-]+)": (\w+),  # in (\w+)$', re.MULTILINE)
GREEN_POLICIES = Path("deploy/helm/greensched/files/crds/greenpolicies.yaml")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A copy of what git knows of the checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def run(scratch: Path, *arguments: str) -> None:
    """Run a module of Python on the copy's sources instead of ours."""
    sources = [str(path.parent) for path in scratch.glob("*/greensched_*")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sources, str(scratch)])}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=scratch, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def with_rule(catalogue: str, name: str, function: str, table: str) -> str:
    """Return the catalogue with a rule's import and its line in a table."""
    module = f"greensched_policies.rules.{table.split('_')[0].lower()}.{function}"
    first = "import numpy as np\n"
    catalogue = catalogue.replace(first, f"{first}from {module} import {function}\n", 1)
    head = re.compile(rf"^({table}: .* = {{\n)", re.MULTILINE)
    return head.sub(rf'\1    "{name}": {function},\n', catalogue)


def test_the_rules_that_contributing_shows_can_be_added_as_it_says(scratch: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = dict(BLOCK.findall(page))
    assert len(files) == 4
    for name, text in files.items():
        (scratch / name).write_text(text, encoding="utf-8")
    catalogue = (scratch / CATALOGUE).read_text(encoding="utf-8")
    for name, function, table in LINE.findall(page):
        catalogue = with_rule(catalogue, name, function, table)
    (scratch / CATALOGUE).write_text(catalogue, encoding="utf-8")
    run(scratch, "ruff", "check", "--fix", "--quiet", "policies", "tests/policies")
    run(scratch, "ruff", "format", "--quiet", "--check", *files)
    run(scratch, "docs.generate_tables")
    assert "'least-price'" in (scratch / GREEN_POLICIES).read_text(encoding="utf-8")
    ours = [name for name in files if name.startswith("tests/")]
    run(
        scratch,
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *ours,
        "tests/policies/rules/test_rules.py",
    )
