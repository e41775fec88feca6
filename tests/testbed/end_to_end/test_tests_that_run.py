"""Which end-to-end tests run, and which of them are skipped: the real ones, in a pytest below."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from greensched_testbed.end_to_end.foreign_cluster import KUBECONFIG
from greensched_testbed.requirements import IMAGES, NODES, missing

ROOT = Path(__file__).parents[3]


def run_e2e(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on the end-to-end tests; of our environment only PATH and HOME are left."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-m", "e2e", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT, env={**kept, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(bool(missing(IMAGES, NODES)), reason="; ".join(missing(IMAGES, NODES)))
def test_an_image_that_cannot_be_built_fails_the_tests(tmp_path: Path) -> None:
    buildah = tmp_path / "buildah"
    buildah.write_text("#!/bin/sh\necho the Dockerfile is broken\nexit 1\n")
    buildah.chmod(0o755)
    ended = run_e2e(
        "tests/e2e/test_installed.py",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert ended.returncode == 1, ended.stdout
    assert "the Dockerfile is broken" in ended.stdout
    assert "skipped" not in ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("named", [True, False])
def test_on_a_named_cluster_no_test_starts_nodes_of_this_machine(
    named: bool, tmp_path: Path
) -> None:
    environment = {KUBECONFIG: str(tmp_path / "kubeconfig")} if named else {}
    listed = run_e2e("tests/e2e", "--collect-only", "-q", **environment).stdout
    files = {line.partition("::")[0].removeprefix("tests/e2e/") for line in listed.splitlines()}
    assert files >= {"test_installed.py", "test_upgraded_with_held_work.py"}
    local = {
        "test_a_cluster_kept.py",
        "test_a_cluster_never_finished.py",
        "test_an_engine_killed.py",
    }
    assert files & local == (set() if named else local)
