"""CONTRIBUTING.md's recipe for a field of a custom resource, walked in a scratch copy."""

import re
import sys
from pathlib import Path

import pytest

from tests.repository_files import ROOT
from tests.scratch_checkout import copy_checkout, run_in

pytestmark = pytest.mark.recipe

PYTHON = (sys.executable, "-m")
FIELD = re.compile(r"```python\n# in (\S+), class (\w+)\n(.*?)```", re.DOTALL)
TEST = re.compile(r"```python\n# new: (tests/operator/\S+)\n(.*?)```", re.DOTALL)
WRITTEN = (
    "deploy/helm/greensched/files/crds/greenpolicies.yaml",
    "deploy/helm/greensched/values.schema.json",
    "docs/green-policy.md",
)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A copy of what git knows of the checkout."""
    copy_checkout(tmp_path)
    return tmp_path


def with_field(source: str, kind: str, field: str) -> str:
    """Return a module with a field behind the others of a dataclass."""
    before, head, behind = source.partition(f"class {kind}:\n")
    fields, end, rest = behind.partition("\n    )\n\n")
    assert head and end, f"no fields in {kind}"
    return f"{before}{head}{fields}\n    )\n{field}\n{rest}"


def test_the_field_that_contributing_shows_can_be_added_as_it_says(scratch: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    ((module, kind, field),) = FIELD.findall(page)
    ((test, text),) = TEST.findall(page)
    source = (scratch / module).read_text(encoding="utf-8")
    (scratch / module).write_text(with_field(source, kind, field), encoding="utf-8")
    (scratch / test).write_text(text, encoding="utf-8")
    for part in (("check",), ("format", "--check")):
        run_in(scratch, *PYTHON, "ruff", *part, "--quiet", module, test)
    run_in(scratch, *PYTHON, "docs.generate_tables")
    for name in WRITTEN:
        assert "shortestHold" in (scratch / name).read_text(encoding="utf-8"), name
    read_by = "tests/operator/objects/test_green_policy.py"
    run_in(scratch, *PYTHON, "pytest", "-q", "-p", "no:cacheprovider", test, read_by)
