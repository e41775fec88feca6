"""The packaged chart of a release holds what the pages say is in it."""

import tarfile
from pathlib import Path

import pytest

from deploy.release.chart_values import NamedImage
from deploy.release.packages import package_chart
from deploy.release.programs import ROOT
from deploy.release.versions import CHART, project_version

pytestmark = pytest.mark.helm


def test_the_values_of_platforms_are_in_the_chart(tmp_path: Path) -> None:
    images = {
        name: NamedImage(f"registry.example.com/greensched-{name}", f"sha256:{'a' * 64}")
        for name in ("extender", "operator")
    }
    with tarfile.open(package_chart(tmp_path, images, project_version(ROOT))) as tar:
        packaged = {name for name in tar.getnames() if "/platforms/" in name}
    files = (ROOT / CHART / "platforms").glob("*.yaml")
    assert packaged == {f"greensched/platforms/{path.name}" for path in files}
