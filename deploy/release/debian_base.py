"""A base for a rehearsal where no image registry is to be had: Debian's, for every platform.

The programs of another processor than this machine's are unpacked and not set up: nothing of an
image is run while it is made.
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
    if listed:  # of an earlier rehearsal, for other platforms perhaps
        run(*buildah, "manifest", "rm", _NAME)
    run(*buildah, "manifest", "create", _NAME)
    for platform in sorted({*platforms, ours}):
        processor = "" if platform == ours else platform.rpartition("/")[2]
        with tempfile.TemporaryDirectory() as folder:
            write_python_base(Path(folder), processor=processor)
            how = ("--isolation=chroot", "--platform", platform, "--manifest", _NAME)
            run(*buildah, "bud", *how, folder)
    return shlex.join(build_options(_NAME))
