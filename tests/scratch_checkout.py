"""A copy of what git knows of this checkout, for tests that change it."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.repository_files import ROOT, files_of_the_repository


def copy_checkout(to: Path) -> None:
    """Copy all files that git tracks, or would, as they stand now."""
    for file in files_of_the_repository():
        copied = to / file.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copied)  # scripts stay executable


def run_in(copy: Path, *command: str | Path) -> str:
    """Run a program on a copy's sources instead of ours; return what it prints."""
    sources = [str(path.parent) for path in copy.glob("*/greensched_*")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sources, str(copy)])}
    done = subprocess.run(
        command, cwd=copy, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
