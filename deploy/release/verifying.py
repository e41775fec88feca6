"""Checks that a release's files are the signed ones and belong together."""

import re
import tarfile
from pathlib import Path

import yaml

from deploy.release.checksums import NAME, checksum_faults
from deploy.release.faults import ReleaseFault
from deploy.release.images import COMPONENTS, read_archive
from deploy.release.processors import require_processor
from deploy.release.programs import ROOT
from deploy.release.signing import Verifier

PROVENANCE = "provenance.intoto.json"
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)


def verify(folder: Path, version: str, verifier: Verifier) -> list[str]:
    """Return a line for each check that passed; raise ReleaseFault at the first that fails."""
    verifier.require(folder / NAME)
    if faults := checksum_faults(folder):
        raise ReleaseFault("; ".join(faults))
    passed = [f"{NAME} is signed, and every file has its checksum"]
    for path in _attested(folder, version):
        verifier.require_attested(path, folder / PROVENANCE)
        passed.append(f"the signed provenance names {path.name}")
    values = chart_values(folder, version)
    for component in COMPONENTS:
        archive = folder / f"greensched-{component}-{version}.oci.tar"
        digest, platforms = read_archive(archive)
        if values[component]["image"]["digest"] != digest:
            raise ReleaseFault(
                f"the chart's digest of the {component} is not that of its archive, {digest}"
            )
        passed.append(
            f"the chart names the {component} of {', '.join(sorted(platforms))}: {digest}"
        )
        for platform, manifest in sorted(platforms.items()):
            count = require_processor(archive, platform, manifest)
            passed.append(
                f"the {component} for {platform} adds {count} shared libraries, all for {platform}"
            )
    return passed


def pins(requirements: str) -> set[tuple[str, str]]:
    """Return name and version of every pin of a requirements file."""
    path = ROOT / "requirements" / f"{requirements}.txt"
    return {(each["name"], each["version"]) for each in _PIN.finditer(path.read_text())}


def _attested(folder: Path, version: str) -> list[Path]:
    images = [folder / f"greensched-{name}-{version}.oci.tar" for name in COMPONENTS]
    wheel = folder / f"greensched-{version}-py3-none-any.whl"
    return [*images, folder / f"greensched-{version}.tgz", wheel]


def chart_values(folder: Path, version: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the default values of a release's chart."""
    chart = folder / f"greensched-{version}.tgz"
    with tarfile.open(chart) as tar:
        member = tar.extractfile("greensched/values.yaml")
        if member is None:
            raise ReleaseFault(f"{chart} contains no values.yaml")
        values: dict[str, dict[str, dict[str, str]]] = yaml.safe_load(member)
    return values
