"""Makes the files of a release from a checkout."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deploy.release.chart_values import NamedImage
from deploy.release.checksums import sha256, write_checksums
from deploy.release.contents import list_image, list_wheel
from deploy.release.debian_base import make_base
from deploy.release.images import COMPONENTS, Building, BuiltImage, build_image
from deploy.release.notes import rehearsal_notes, release_notes, require_nothing_unreleased
from deploy.release.packages import build_wheel, package_chart
from deploy.release.programs import ROOT
from deploy.release.provenance import Origin, base_image, statement
from deploy.release.signing import Signer
from deploy.release.source import Source, checked_out, require_no_other_tag
from deploy.release.versions import require_version

MATERIALS = (
    *("Dockerfile", "requirements/extender.txt", "requirements/operator.txt"),
    *("requirements/all.txt", "requirements/cli.txt", "requirements/kernel.txt"),
    "testbed/greensched_testbed/go/release/go.sum",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The release that a maintainer asks for."""

    version: str
    registry: str  # of the images: host and path, without a scheme
    platforms: tuple[str, ...]
    build_options: str
    is_rehearsal: bool
    on_debian: bool = False  # instead of the Dockerfile's base


def make(wanted: Wanted, signer: Signer) -> Path:
    """Make all files of a release and return their folder; raise ReleaseFault with the reason."""
    began = _now()
    require_version(ROOT, wanted.version)
    source = checked_out(may_differ=wanted.is_rehearsal)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if wanted.is_rehearsal:
        notes = rehearsal_notes(changelog, wanted.version)
    else:
        require_nothing_unreleased(changelog)
        require_no_other_tag(wanted.version, source.commit)
        notes = release_notes(changelog, wanted.version)
    folder = ROOT / "dist/release" / wanted.version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "RELEASE_NOTES.md").write_text(notes, encoding="utf-8")
    complete(wanted, source, began, folder, _images(wanted, source, folder), signer)
    return folder


def complete(
    wanted: Wanted,
    source: Source,
    began: str,
    folder: Path,
    images: Mapping[str, BuiltImage],
    signer: Signer,
) -> None:
    """Add chart, wheel, package lists, provenance, checksums and signature to the images."""
    named = {
        name: NamedImage(f"{wanted.registry}/greensched-{name}", image.digest)
        for name, image in images.items()
    }
    _print_step("chart")
    package_chart(folder, named, wanted.version)
    _print_step("wheel and its list of packages")
    list_wheel(build_wheel(folder, source.commit_time_s), wanted.version, folder)
    _write_provenance(wanted, source, began, folder, named, signer)
    signer.sign(write_checksums(folder))


def _images(wanted: Wanted, source: Source, folder: Path) -> dict[str, BuiltImage]:
    storage, options = ROOT / "build/release/storage", wanted.build_options
    if wanted.on_debian:
        _print_step("base of Debian's packages")
        options = f"{make_base(wanted.platforms, storage)} {options}"
    building = Building(
        *(wanted.version, source.commit, source.commit_time_s, wanted.platforms),
        storage=storage,
        options=options,
    )
    images = {}
    for name in COMPONENTS:
        _print_step(f"image of the {name}, for {', '.join(wanted.platforms)}")
        images[name] = build_image(name, building, folder)
        _print_step(f"list of its packages: {images[name].digest}")
        list_image(images[name], wanted.version, folder)
    return images


def _write_provenance(
    wanted: Wanted,
    source: Source,
    began: str,
    folder: Path,
    images: dict[str, NamedImage],
    signer: Signer,
) -> None:
    files = {path.name: sha256(path) for path in folder.iterdir()}
    indexes = {each.repository: each.digest.removeprefix("sha256:") for each in images.values()}
    builder = os.environ.get("RELEASE_BUILDER", f"host:{os.uname().machine}")
    ended = _now()
    origin = Origin(
        *(source.repository, source.commit, wanted.version, builder, began, ended),
        materials(wanted),
    )
    signer.attest(statement(origin, files | indexes), folder / "provenance.intoto.json")


def materials(wanted: Wanted) -> dict[str, str]:
    """Return the sha256 of what goes into a release beside its commit, by name or address.

    A base that is made here of Debian's packages is in no registry, and is left out.
    """
    found = {name: sha256(ROOT / name) for name in MATERIALS}
    base = base_image((ROOT / "Dockerfile").read_text(), wanted.build_options)
    if base is not None and not wanted.on_debian:
        found |= dict([base])
    return found


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _print_step(step: str) -> None:
    print(f"release: {step}", flush=True)
