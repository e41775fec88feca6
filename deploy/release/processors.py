"""For which processor an image's shared libraries are.

Nothing of another processor's image runs where it is made: a wheel of the wrong one would be found
by whoever installs it.
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

    `manifest` is the digest of that image in the archive. Raises ReleaseFault where one of them is
    for another processor, or there are none: then nothing was looked at.
    """
    wanted = platform.rpartition("/")[2]
    found = _libraries(archive, manifest)
    if others := found.keys() - {wanted}:
        raise ReleaseFault(
            f"{archive.name} for {platform} holds shared libraries for {', '.join(sorted(others))}:"
            " deploy/images/install_dependencies.py chose their wheels"
        )
    if not found[wanted]:
        raise ReleaseFault(f"{archive.name} for {platform} holds no shared library below {_OURS}")
    return found[wanted]


def _libraries(archive: Path, manifest: str) -> Counter[str]:
    """Return how many there are for each processor."""
    found: Counter[str] = Counter()
    with tarfile.open(archive) as image:
        blob = image.extractfile(blob_path(manifest))
        assert blob is not None  # read_archive has told of it
        for layer in json.load(blob)["layers"]:
            with tarfile.open(
                fileobj=image.extractfile(blob_path(layer["digest"])), mode="r|*"
            ) as tar:
                for member in tar:
                    if not (member.isreg() and member.name.removeprefix("./").startswith(_OURS)):
                        continue
                    content = tar.extractfile(member)
                    assert content is not None  # of a file
                    header = content.read(_HEADER_BYTES)
                    if header.startswith(b"\x7fELF"):
                        machine = int.from_bytes(header[-2:], "little")
                        found[_PROCESSORS.get(machine, f"machine {machine}")] += 1
    return found
