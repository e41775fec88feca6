"""CI runs the tests of images and nodes too, and notices where it could not."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
RUN = ".ci/run"
AS_ROOT = "sudo -H .ci/run-as-root"
IMAGE_TEST = "tests/images/test_entry_points.py"


@pytest.mark.parametrize(("workflow", "job"), [("ci", "all"), ("release", "release")])
def test_images_and_nodes_are_tested_as_root_before_anything_is_made(
    workflow: str, job: str
) -> None:
    text = (ROOT / f".github/workflows/{workflow}.yaml").read_text()
    steps = [each.get("run", "") for each in yaml.safe_load(text)["jobs"][job]["steps"]]
    tests = steps.index(RUN)
    assert steps[tests + 1] == AS_ROOT
    assert not [each for each in steps[:tests] if "make release" in each]


@pytest.mark.parametrize(
    ("options", "status"),
    [pytest.param([], 0, id="elsewhere"), pytest.param(["--none-skipped"], 1, id="as-root")],
)
def test_a_skipped_test_fails_the_run_where_none_may_be(
    options: list[str], status: int, tmp_path: Path
) -> None:
    command = "-m pytest -n0 -q -p no:cacheprovider -m image -k adds_little".split()
    done = subprocess.run(
        [sys.executable, *command, *options, IMAGE_TEST],
        cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 skipped" in done.stdout, done.stdout + done.stderr
    assert done.returncode == status
