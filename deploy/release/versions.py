"""Checks that all places with a version have the same one."""

import re
import tomllib
from pathlib import Path

import yaml

from deploy.release.faults import ReleaseFault

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
CHART = Path("deploy/helm/greensched")


def project_version(root: Path) -> str:
    """Return the version in pyproject.toml, which is the leading one."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def version_faults(root: Path, wanted: str) -> list[str]:
    """Return a message for each fault that prevents a release of the tree as `wanted`."""
    if not _VERSION.fullmatch(wanted):
        return [f"{wanted!r} is not a version: write it as 1.2.3, without a v"]
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    versions = {
        "version in pyproject.toml": project_version(root),
        f"version in {CHART}/Chart.yaml": str(chart["version"]),
        f"appVersion in {CHART}/Chart.yaml": str(chart["appVersion"]),
    }
    return [
        f"{place} is {found}, not {wanted}: change it, commit, and try again"
        for place, found in versions.items()
        if found != wanted
    ]


def require_version(root: Path, wanted: str) -> None:
    """Raise ReleaseFault with all faults at once unless the whole tree has this version."""
    if faults := version_faults(root, wanted):
        raise ReleaseFault("; ".join(faults))
