"""File systems from Debian's packages, for bases of images where no registry is."""

from collections.abc import Sequence
from pathlib import Path

from greensched_testbed.commands import run_builder

LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


def debian_tar(
    path: Path, suite: str, packages: Sequence[str], *, hook: str = "", processor: str = ""
) -> None:
    """Write a file system of a suite with these packages as a tar; raise BuildFailed.

    hook: a shell script that changes it at the end; $1 is its root. processor: another than this
    machine's, in Debian's words; its packages are unpacked then and not set up, since nothing of
    them runs here.
    """
    run_builder(
        [
            *("mmdebstrap", "--quiet"),
            *(f"--dpkgopt=path-exclude={each}" for each in LEFT_OUT),
            *(["--variant=minbase"] if not processor else ["--variant=extract"]),
            *([f"--architectures={processor}"] if processor else []),
            f"--include={','.join(packages)}",
            *([f"--customize-hook={hook}"] if hook else []),
            *(suite, str(path)),
        ]
    )
