"""Finds and runs the programs that make a release."""

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
    """Return the path of a program, after building it on first use if it is built from source.

    Raises ReleaseFault with the command that installs a missing program.
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


def run_command(
    command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path = ROOT
) -> str:
    """Run a command in a folder and return what it printed; raise ReleaseFault."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        output = "\n".join((ended.stdout + ended.stderr).splitlines()[-20:])
        raise ReleaseFault(f"{shlex.join(command)} exited with {ended.returncode}:\n{output}")
    return ended.stdout
