"""Builds file systems from Debian's packages, as bases of images without a registry."""

from collections.abc import Sequence
from pathlib import Path

from greensched_testbed.commands import run_builder

PYTHON_PACKAGES = ("ca-certificates", "python-is-python3", "python3", "python3-pip", "python3-venv")
PYTHON_SUITE = "bookworm"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


def debian_tar(
    path: Path, suite: str, packages: Sequence[str], *, hook: str = "", processor: str = ""
) -> None:
    """Write a file system of a suite with these packages as a tar; raise BuildFailed.

    hook: a shell script that changes it at the end; $1 is its root. processor: another architecture
    than this machine's, by Debian's name. Its packages are only unpacked, since they cannot run
    here.
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


def write_python_base(folder: Path, *, processor: str = "") -> None:
    """Write the folder from which buildah builds a base with Python; raise BuildFailed."""
    debian_tar(folder / "root.tar", PYTHON_SUITE, PYTHON_PACKAGES, processor=processor)
    (folder / "Dockerfile").write_text(
        "FROM scratch\nADD root.tar /\nENV PATH=/usr/local/bin:/usr/bin:/bin\n"
    )


def build_options(base: str) -> list[str]:
    """Return buildah's options that build the Dockerfile on our base, also in a container.

    The machine's CA certificates, such as those of a proxy, are mounted for the build. The image
    does not contain them.
    """
    certificates = (
        ["--volume", f"{_CERTIFICATES}:{_CERTIFICATES}:ro"] if _CERTIFICATES.exists() else []
    )
    return [
        *("--isolation=chroot", "--network=host", "--pull-never"),
        *("--build-arg", f"PYTHON_IMAGE={base}", *certificates),
    ]
