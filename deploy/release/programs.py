"""The programs that a release is made with, and how they are run."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.release.faults import ReleaseFault
from greensched_testbed.binaries import control_plane_programs, release_programs

ROOT = Path(__file__).resolve().parents[2]
_FROM_THE_SYSTEM = {
    "buildah": "apt install buildah",
    "git": "apt install git",
    "skopeo": "apt install skopeo",
}
_BUILT = ("cosign", "crane", "syft")


def program(name: str) -> str:
    """Return where a program is; those that are built from source are built on first use.

    Raises ReleaseFault that says how to install what is missing.
    """
    if name == "helm":
        return str(control_plane_programs() / name)
    if name in _BUILT:
        return str(release_programs() / name)
    found = shutil.which(name)
    if found is None:
        raise ReleaseFault(f"{name} is not installed; on Debian: {_FROM_THE_SYSTEM[name]}")
    return found


def run(
    name: str, *arguments: str | Path, environment: Mapping[str, str] | None = None
) -> str:  # fmt: skip
    """Run a program in the repository's root and return what it printed; raise ReleaseFault."""
    return run_command([program(name), *map(str, arguments)], environment)


def run_command(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command in the repository's root and return what it printed; raise ReleaseFault."""
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        told = "\n".join((ended.stdout + ended.stderr).splitlines()[-20:])
        raise ReleaseFault(f"{shlex.join(command)} ended with {ended.returncode}:\n{told}")
    return ended.stdout
