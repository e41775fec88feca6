"""The examples that we hand out are accepted by a real API server."""

from pathlib import Path

import pytest

from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.cluster import GreenSchedProcesses

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("greensched")]

EXAMPLES = Path(__file__).parents[2] / "examples"
OBJECTS = sorted(path for path in EXAMPLES.glob("*.yaml") if not path.stem.endswith("-status"))


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.stem)
def test_the_api_server_accepts_the_example(
    control_plane: ControlPlane, greensched: GreenSchedProcesses, path: Path
) -> None:
    said = control_plane.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert "created (server dry run)" in said


def test_the_example_of_a_signals_status_is_what_the_signal_then_shows(
    control_plane: ControlPlane,
) -> None:
    signal, status = EXAMPLES / "02-grid-signal.yaml", EXAMPLES / "02-grid-signal-status.yaml"
    control_plane.kubectl("apply", "-f", str(signal))
    try:
        control_plane.kubectl(
            *["patch", "gridsignal", "de", "--subresource=status", "--type=merge"],
            *["--patch-file", str(status)],
        )
        row = control_plane.kubectl("get", "gridsignal", "de", "--no-headers").split()
        assert row[:5] == ["de", "DE", "290", "61.2", "by-hand"]
    finally:
        control_plane.kubectl("delete", "gridsignal", "de")
