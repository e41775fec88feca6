"""Unpacks Docker's engine and client from Debian's packages, without installing them.

Installing would start the engine in this machine's network.
"""

import shutil
from pathlib import Path

from greensched_testbed.commands import run_builder
from greensched_testbed.kind.node_image import default_folder
from greensched_testbed.progress import LiveLine

_PACKAGES = ("docker.io", "tini")
_SEARCHED = ("usr/bin", "usr/sbin")


def docker_folders() -> tuple[Path, ...]:
    """Return the folders with dockerd, docker and docker-init; download them on first use.

    Raises BuildFailed if they are not available.
    """
    root = default_folder() / "docker"
    if not root.is_dir():
        LiveLine().say(f"kind: downloading {' and '.join(_PACKAGES)} (36 MB), once")
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        run_builder(["apt-get", "--quiet", "download", *_PACKAGES], partial)
        for package in partial.glob("*.deb"):
            run_builder(["dpkg-deb", "--extract", package.name, "."], partial)
            package.unlink()
        partial.rename(root)
    return tuple(root / each for each in _SEARCHED)
