"""Which end-to-end tests run, and which of them are skipped: the real ones, in a pytest below."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from greensched_testbed.end_to_end.foreign_cluster import (
    EXTENDER_IMAGE,
    KUBECONFIG,
    OPERATOR_IMAGE,
)
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
    assert not (tmp_path / "greensched/bin").exists(), "it fails before programs are built"


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


def kubectl_that(folder: Path, answers: str) -> str:
    """Put kubectl and Helm of a cluster without objects into a folder; return the PATH."""
    (folder / "kubeconfig").touch()
    for name, script in (("kubectl", answers), ("helm", '[ "$1" != status ]')):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_run_that_skips_every_test_on_a_named_cluster_fails_and_says_why(tmp_path: Path) -> None:
    path = kubectl_that(tmp_path, 'case "$*" in *mutating*) echo \'{"items": []}\';; esac')
    ended = run_e2e(
        *("tests/e2e/test_installed.py", "-rs"),
        **{KUBECONFIG: str(tmp_path / "kubeconfig"), "PATH": path},
    )
    assert ended.returncode == 1, ended.stdout
    assert f"name them by {EXTENDER_IMAGE} and {OPERATOR_IMAGE}" in ended.stdout
    assert f"e2e: no test ran on the cluster that {KUBECONFIG} names" in ended.stdout


def test_a_cluster_that_does_not_answer_is_one_message(tmp_path: Path) -> None:
    path = kubectl_that(tmp_path, "echo connection refused >&2; exit 1")
    ended = run_e2e(
        "tests/e2e/test_installed.py",
        **{KUBECONFIG: str(tmp_path / "kubeconfig"), "PATH": path},
    )
    assert ended.returncode == 1, ended.stdout
    (told,) = (line for line in ended.stdout.splitlines() if "connection refused" in line)
    assert "gave no answer that tests can use; check the kubeconfig, its login" in told
    assert "Traceback" not in ended.stdout + ended.stderr
