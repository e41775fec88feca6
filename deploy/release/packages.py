"""The wheel and the chart of a release."""

import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.release.chart_values import NamedImage, values_by_digest
from deploy.release.faults import ReleaseFault
from deploy.release.programs import ROOT, run, run_command
from deploy.release.versions import CHART
from greensched_policies.library.loading import BUILT, PROCESSORS, file_name

_EVERY = tuple(PROCESSORS.values())


def build_wheel(into: Path, commit_time_s: int, processors: Sequence[str] = _EVERY) -> Path:
    """Build the wheel of all packages, with the kernel for these processors.

    It is one wheel for every platform, py3-none-any: the kernel is loaded by its processor's name
    and needs no Python, and most of the wheel, such as the command line, needs no kernel. Raises
    ReleaseFault if a kernel cannot be built.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree, out = Path(folder, "tree"), Path(folder, "out")
        for name in run("git", "ls-files", "-z").split("\0"):
            if name:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        own = tree / BUILT.relative_to(ROOT)
        kernel = ("-m", "greensched_policies.kernel.build", "--folder", str(own), "--processor")
        run_command([sys.executable, *kernel, *processors])
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        run_command(command, {"SOURCE_DATE_EPOCH": str(commit_time_s)}, tree)
        (built,) = out.glob("*.whl")
        _require_kernels(built, processors)
        return Path(shutil.copy(built, into))


def _require_kernels(wheel: Path, processors: Sequence[str]) -> None:
    found = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    if missing := {file_name(processor) for processor in processors} - found:
        raise ReleaseFault(f"{wheel.name} lacks {', '.join(sorted(missing))}")


def package_chart(into: Path, images: Mapping[str, NamedImage], version: str) -> Path:
    """Package the chart with values that name the images by digest."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(shutil.copytree(ROOT / CHART, Path(folder) / "greensched"))
        values = chart / "values.yaml"
        values.write_text(values_by_digest(values.read_text(encoding="utf-8"), images))
        run("helm", "lint", "--strict", chart)
        run("helm", "package", chart, "--destination", into)
    return into / f"greensched-{version}.tgz"
