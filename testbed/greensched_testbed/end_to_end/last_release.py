"""Unpacks the last release from the checkout's git history, and builds its images."""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from greensched_testbed.end_to_end.real_cluster import image_archives
from greensched_testbed.errors import CannotBuildHere

TAG = "v0.1.0"
# The commit of release 0.1.0, for clones without its tag.
COMMIT = "afea0e79f0c6d709310b3d5180e09b81de26c7e0"


@dataclass(frozen=True, slots=True)
class LastRelease:
    """A release's chart, and its image archives by image name."""

    chart: Path
    archives: Mapping[str, Path]

    @property
    def images(self) -> tuple[str, str]:
        """Return the names of the extender's and the operator's image."""
        extender, operator = self.archives
        return extender, operator


def last_release(checkout: Path, folder: Path) -> LastRelease:
    """Unpack the last release below `folder` and build its images, unless already done.

    Raises CannotBuildHere if git's history lacks it, BuildFailed if an image cannot be built.
    """
    unpack_last_release(checkout, folder)
    return LastRelease(folder / "deploy/helm/greensched", image_archives(folder))


def unpack_last_release(checkout: Path, folder: Path) -> None:
    """Write the last release's sources into a folder; raise CannotBuildHere if git lacks them."""
    if shutil.which("git") is None:
        raise CannotBuildHere("the last release needs git")
    if not (checkout / ".git").exists():
        raise CannotBuildHere(
            f"the last release needs git's history, and {checkout} is not a clone"
        )
    try:
        packed = _git(checkout, "archive", TAG)
    except CannotBuildHere:
        packed = _git(checkout, "archive", COMMIT)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")


def _git(checkout: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(checkout), *arguments]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode != 0:
        message = result.stderr.decode(errors="replace").strip()
        raise CannotBuildHere(
            f"the last release is neither {TAG} nor {COMMIT[:12]} here: {message}"
        )
    return result.stdout
