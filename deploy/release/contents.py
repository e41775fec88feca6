"""Lists the packages in an image or the wheel, as SPDX, by syft."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from deploy.release.images import BuiltImage
from deploy.release.programs import ROOT, run

_ENVIRONMENT = {"SYFT_CHECK_FOR_APP_UPDATE": "false"}


def list_image(image: BuiltImage, version: str, into: Path) -> list[Path]:
    """Write the Debian and Python packages of each platform's image; return the files."""
    written = []
    for platform in image.platforms:
        name = f"greensched-{image.component}-{version}"
        target = into / f"{name}.{platform.replace('/', '-')}.spdx.json"
        source = f"oci-archive:{image.archive}"
        named = ("--source-name", name, "--source-version", version)
        _scan(target, "--platform", platform, *named, source)
        written.append(target)
    return written


def list_wheel(wheel: Path, version: str, into: Path) -> Path:
    """Write the pinned packages of an installation of the wheel with all its extras."""
    target = into / f"{wheel.name}.spdx.json"
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if ".dist-info/" in name]
            archive.extractall(folder, members)
        shutil.copy(ROOT / "requirements/all.txt", Path(folder) / "requirements.txt")
        named = ("--source-name", "greensched", "--source-version", version)
        _scan(target, *named, f"dir:{folder}")
    return target


def _scan(target: Path, *arguments: str) -> None:
    run("syft", "scan", "-q", "-o", f"spdx-json={target}", *arguments, environment=_ENVIRONMENT)
