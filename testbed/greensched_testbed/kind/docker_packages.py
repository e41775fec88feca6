"""Unpacks Docker's engine and client from Debian's packages, without installing them.

Installing would start the engine in this machine's network.
"""

import shutil
from pathlib import Path

from greensched_testbed.commands import run_builder
from greensched_testbed.errors import BuildFailed
from greensched_testbed.kind.node_image import node_image_folder
from greensched_testbed.progress import LiveLine

_PACKAGES = ("docker.io", "tini")
_CLIENT = "docker-cli"  # a package of its own since Debian 13
_SEARCHED = ("usr/bin", "usr/sbin")


def docker_folders() -> tuple[Path, ...]:
    """Return the folders with dockerd, docker and docker-init; download them on first use.

    Raises BuildFailed if they are not available.
    """
    root = node_image_folder() / "docker"
    if not (root / "usr/bin/docker").is_file():
        _download(root)
    return tuple(root / each for each in _SEARCHED)


def _download(root: Path) -> None:
    """Unpack the packages into a folder beside `root`, and replace `root` with it."""
    known = run_builder(["apt-cache", "search", "--names-only", f"^{_CLIENT}$"])
    packages = [*_PACKAGES, *([_CLIENT] if known.strip() else [])]
    LiveLine().say(f"kind: downloading {' and '.join(packages)} (36 MB), once")
    partial = root.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    run_builder(["apt-get", "--quiet", "download", *packages], partial)
    for package in partial.glob("*.deb"):
        run_builder(["dpkg-deb", "--extract", package.name, "."], partial)
        package.unlink()
    if not (partial / "usr/bin/docker").is_file():
        raise BuildFailed(f"there is no usr/bin/docker in the packages {' '.join(packages)}")
    shutil.rmtree(root, ignore_errors=True)
    partial.rename(root)
