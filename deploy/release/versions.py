"""The version, told in one place and repeated nowhere else than a release checks."""

import re
import tomllib
from pathlib import Path

import yaml

from deploy.release.faults import ReleaseFault

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
CHART = Path("deploy/helm/greensched")


def project_version(root: Path) -> str:
    """Return the version of pyproject.toml, which all others follow."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def version_faults(root: Path, wanted: str) -> list[str]:
    """Return what keeps the tree from being released as `wanted`: a sentence for each fault."""
    if not _VERSION.fullmatch(wanted):
        return [f"{wanted!r} is no version: write it as 1.2.3, without a v"]
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text(encoding="utf-8"))
    told = {
        "version in pyproject.toml": project_version(root),
        f"version in {CHART}/Chart.yaml": str(chart["version"]),
        f"appVersion in {CHART}/Chart.yaml": str(chart["appVersion"]),
    }
    return [
        f"{place} is {found}, not {wanted}: change it, commit, and try again"
        for place, found in told.items()
        if found != wanted
    ]


def require_version(root: Path, wanted: str) -> None:
    """Raise ReleaseFault with all faults at once unless the whole tree tells this version."""
    if faults := version_faults(root, wanted):
        raise ReleaseFault("; ".join(faults))
