"""The Helm chart of this checkout, and what it installs on a control plane."""

import json
from pathlib import Path

from greensched_core.errors import BadInput
from greensched_testbed.controlplane import ControlPlane

RELEASE = "greensched"
CHART = Path(__file__).parents[2] / "deploy/helm/greensched"  # in a checkout only


def chart_folder(chart: Path = CHART) -> Path:
    """Return the chart's folder; raise BadInput if there is none, as in an installed wheel."""
    if not (chart / "Chart.yaml").is_file():
        raise BadInput(
            "the demo installs GreenSched's Helm chart, which only a checkout of the repository "
            f"has ({chart} does not exist): clone it and run `make demo` there"
        )
    return chart


def given_by_chart(plane: ControlPlane, name: str) -> dict[str, str]:
    """Return the data of one of the installed chart's ConfigMaps."""
    found = plane.kubectl("get", "configmap", name, "-n", RELEASE, "-o", "json")
    data: dict[str, str] = json.loads(found)["data"]
    return data
