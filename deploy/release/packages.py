"""The wheel and the chart of a release."""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deploy.release.chart_values import NamedImage, values_by_digest
from deploy.release.programs import ROOT, run, run_command
from deploy.release.versions import CHART


def build_wheel(into: Path, commit_time_s: int) -> Path:
    """Build the wheel of all packages with the pinned hatchling."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        run_command(command, {"SOURCE_DATE_EPOCH": str(commit_time_s)})
        (built,) = Path(folder).glob("*.whl")
        return Path(shutil.copy(built, into))


def package_chart(into: Path, images: Mapping[str, NamedImage], version: str) -> Path:
    """Package the chart with values that name the images by digest."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(shutil.copytree(ROOT / CHART, Path(folder) / "greensched"))
        values = chart / "values.yaml"
        values.write_text(values_by_digest(values.read_text(encoding="utf-8"), images))
        run("helm", "lint", "--strict", chart)
        run("helm", "package", chart, "--destination", into)
    return into / f"greensched-{version}.tgz"
