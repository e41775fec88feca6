"""A base image of Debian packages for every platform, for a rehearsal without an image registry.

Programs for another processor are unpacked but not set up: the build runs no program of the image.
"""

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.release.images import builder_platform, in_storage
from deploy.release.programs import run
from greensched_testbed.images.debian import build_options, write_python_base

_NAME = "localhost/greensched-rehearsal-base"


def make_base(platforms: Sequence[str], storage: Path) -> str:
    """Make the base in buildah's storage, and return the options of `buildah bud` that use it.

    Raises BuildFailed or ReleaseFault.
    """
    buildah = ("buildah", *in_storage(storage))
    ours = builder_platform()
    listed = run(*buildah, "images", "--quiet", "--filter", f"reference={_NAME}")
    if listed:  # from an earlier rehearsal, perhaps for other platforms
        run(*buildah, "manifest", "rm", _NAME)
    run(*buildah, "manifest", "create", _NAME)
    for platform in sorted({*platforms, ours}):
        processor = "" if platform == ours else platform.rpartition("/")[2]
        with tempfile.TemporaryDirectory() as folder:
            write_python_base(Path(folder), processor=processor)
            how = ("--isolation=chroot", "--platform", platform, "--manifest", _NAME)
            run(*buildah, "bud", *how, folder)
    return shlex.join(build_options(_NAME))
