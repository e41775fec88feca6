"""Builds the images for every platform and keeps each as one OCI archive."""

import json
import platform
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.release.faults import ReleaseFault
from deploy.release.programs import run

COMPONENTS = ("extender", "operator")
PLATFORMS = ("linux/amd64", "linux/arm64")
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image of all platforms in an OCI archive."""

    component: str
    archive: Path
    digest: str  # of its index
    platforms: Mapping[str, str]  # digest of each platform's manifest


@dataclass(frozen=True, slots=True)
class Building:
    """What all images of a release have in common."""

    version: str
    commit: str
    commit_time_s: int  # every file's time, so that a commit always gives the same image
    platforms: Sequence[str]
    storage: Path  # of buildah, separate from the user's
    options: str  # further options of `buildah bud`, in shell syntax


def build_image(component: str, building: Building, into: Path) -> BuiltImage:
    """Build a component for every platform; raise ReleaseFault if one cannot be built."""
    name = f"localhost/greensched-{component}:{building.version}"
    archive = into / f"greensched-{component}-{building.version}.oci.tar"
    archive.unlink(missing_ok=True)
    storage = in_storage(building.storage)
    run("buildah", *storage, "manifest", "create", name)
    try:
        for wanted in building.platforms:
            _bud(component, wanted, name, storage, building)
        target = f"oci-archive:{archive}:{building.version}"
        run("buildah", *storage, "manifest", "push", "--all", "--format", "oci", name, target)
    finally:
        run("buildah", *storage, "manifest", "rm", name)
    digest, platforms = read_archive(archive)
    if set(platforms) != set(building.platforms):
        raise ReleaseFault(f"{archive} contains {sorted(platforms)}, not {building.platforms}")
    return BuiltImage(component, archive, digest, platforms)


def in_storage(folder: Path) -> tuple[str, ...]:
    """Return the options with which buildah keeps its storage in a folder."""
    return ("--root", str(folder / "root"), "--runroot", str(folder / "run"))


def builder_platform() -> str:
    """Return the platform of this machine, on which the Dockerfile's programs run.

    BuildKit passes it to the Dockerfile by itself, buildah 1.28 does not.
    """
    machine = platform.machine()
    return f"linux/{_PROCESSORS.get(machine, machine)}"


def _bud(
    component: str, wanted: str, name: str, storage: Sequence[str], building: Building
) -> None:
    labels = {
        "org.opencontainers.image.version": building.version,
        "org.opencontainers.image.revision": building.commit,
    }
    run(
        "buildah",
        *storage,
        *("bud", "--target", component, "--manifest", name, "--platform", wanted),
        *("--build-arg", f"BUILDPLATFORM={builder_platform()}"),
        # With a cache, buildah 1.28 writes an older build's labels.
        *("--format", "oci", "--layers=false", "--timestamp", str(building.commit_time_s)),
        *(part for key, value in labels.items() for part in ("--label", f"{key}={value}")),
        *shlex.split(building.options),
        ".",
    )


def read_archive(archive: Path) -> tuple[str, dict[str, str]]:
    """Return the digest of an archive's index, and of each platform's manifest in it."""
    with tarfile.open(archive) as tar:
        (top,) = _json(tar, "index.json")["manifests"]
        index = _json(tar, blob_path(top["digest"]))
    if "manifests" not in index:
        raise ReleaseFault(f"{archive} contains an image of one platform, without an index")
    return str(top["digest"]), {
        f"{each['platform']['os']}/{each['platform']['architecture']}": str(each["digest"])
        for each in index["manifests"]
    }


def blob_path(digest: str) -> str:
    """Return the path of a digest's content in an OCI layout."""
    return "blobs/" + digest.replace(":", "/")


def _json(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    member = tar.extractfile(name)
    if member is None:
        raise ReleaseFault(f"{tar.name!r} contains no {name}")
    found: dict[str, Any] = json.load(member)
    return found
