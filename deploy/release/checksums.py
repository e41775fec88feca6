"""SHA256SUMS: one line for each file of a release, as `sha256sum --check` reads them."""

import hashlib
from pathlib import Path

from deploy.release.faults import ReleaseFault

NAME = "SHA256SUMS"


def sha256(path: Path) -> str:
    """Return the digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path) -> Path:
    """Write the checksums of all files of a folder, and return the file's path."""
    target = folder / NAME
    files = sorted(path for path in folder.iterdir() if path.is_file() and path != target)
    target.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files))
    return target


def checksum_faults(folder: Path) -> list[str]:
    """Return a message for each file that is missing, changed or unlisted."""
    faults, listed = [], {NAME}
    for line in _lines(folder):
        digest, _, name = line.partition("  ")
        listed.add(name)
        path = folder / name
        if not path.is_file():
            faults.append(f"{name} is missing")
        elif sha256(path) != digest:
            faults.append(f"{name} was changed: its checksum differs")
    others = {path.name for path in folder.iterdir() if path.is_file()} - listed
    unsigned = sorted(name for name in others if not name.startswith(f"{NAME}."))
    return [*faults, *(f"{name} is not listed in {NAME}" for name in unsigned)]


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / NAME).read_text(encoding="utf-8").splitlines()
    except OSError as fault:
        raise ReleaseFault(f"{folder} contains no release: {fault}") from fault
