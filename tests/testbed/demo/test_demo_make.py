"""`make demo`, as far as make itself answers."""

import subprocess
from pathlib import Path


def made(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--dry-run", "demo", *arguments],
        cwd=repository, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_arguments_reach_the_demo(repository: Path) -> None:
    assert "greensched demo" in made(repository, "ARGS=--keep").stdout
    assert "--keep" in made(repository, "ARGS=--keep").stdout


def test_a_misspelt_variable_is_reported_instead_of_ignored(repository: Path) -> None:
    done = made(repository, "ARG=--keep")
    assert done.returncode == 2
    assert 'did you mean ARGS="--keep"?' in done.stderr
