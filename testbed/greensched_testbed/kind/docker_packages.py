"""Docker's engine and client out of Debian's packages, unpacked and never installed.

Their installation would start the engine in this machine's own network.
"""

import shutil
import subprocess
from pathlib import Path

from greensched_testbed.errors import BuildFailed
from greensched_testbed.kind.node_image import default_folder
from greensched_testbed.progress import LiveLine

_PACKAGES = ("docker.io", "tini")
_SEARCHED = ("usr/bin", "usr/sbin")


def docker_folders() -> tuple[Path, ...]:
    """Return the folders with dockerd, docker and docker-init; fetch them on first use.

    Raises BuildFailed where they are not to be had.
    """
    root = default_folder() / "docker"
    if not root.is_dir():
        LiveLine().say(f"kind: fetching {' and '.join(_PACKAGES)} (36 MB), once")
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _run("apt-get", "--quiet", "download", *_PACKAGES, folder=partial)
        for package in partial.glob("*.deb"):
            _run("dpkg-deb", "--extract", package.name, ".", folder=partial)
            package.unlink()
        partial.rename(root)
    return tuple(root / each for each in _SEARCHED)


def _run(*command: str, folder: Path) -> None:
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as fault:
        raise BuildFailed(f"{command[0]}: {fault}; Debian and Ubuntu have it") from fault
    if result.returncode != 0:
        raise BuildFailed(
            f"{' '.join(command[:3])} ended with {result.returncode} (is `apt-get update` due?):\n"
            f"{result.stderr}"
        )
