"""Checks the processor of an image's shared libraries.

The machine that builds an image for another processor runs none of it. Without this check, users
would be the first to find a wheel for the wrong processor.
"""

import json
import tarfile
from collections import Counter
from pathlib import Path

from deploy.release.faults import ReleaseFault
from deploy.release.images import blob_path

_OURS = "opt/greensched/"  # where the Dockerfile puts what it adds to its base
_PROCESSORS = {62: "amd64", 183: "arm64"}  # e_machine of an ELF header (elf(5))
_HEADER_BYTES = 20  # up to e_machine, which has the last two


def require_processor(archive: Path, platform: str, manifest: str) -> int:
    """Return how many shared libraries a platform's image adds to its base.

    `manifest` is the digest of that image in the archive. Raises ReleaseFault if one of them is for
    another processor, or if there are none, because then nothing was checked.
    """
    wanted = platform.rpartition("/")[2]
    found = _libraries(archive, manifest)
    if wrong := found.keys() - {wanted}:
        raise ReleaseFault(
            f"{archive.name} for {platform} has shared libraries for {', '.join(sorted(wrong))};"
            " deploy/images/install_dependencies.py chose their wheels"
        )
    if not found[wanted]:
        raise ReleaseFault(
            f"{archive.name} for {platform} contains no shared library below {_OURS}"
        )
    return found[wanted]


def _libraries(archive: Path, manifest: str) -> Counter[str]:
    """Return the number of shared libraries for each processor."""
    found: Counter[str] = Counter()
    with tarfile.open(archive) as image:
        blob = image.extractfile(blob_path(manifest))
        assert blob is not None  # read_archive has found it
        for layer in json.load(blob)["layers"]:
            with tarfile.open(
                fileobj=image.extractfile(blob_path(layer["digest"])), mode="r|*"
            ) as tar:
                for member in tar:
                    if not (member.isreg() and member.name.removeprefix("./").startswith(_OURS)):
                        continue
                    content = tar.extractfile(member)
                    assert content is not None  # it is a regular file
                    header = content.read(_HEADER_BYTES)
                    if header.startswith(b"\x7fELF"):
                        machine = int.from_bytes(header[-2:], "little")
                        found[_PROCESSORS.get(machine, f"machine {machine}")] += 1
    return found
