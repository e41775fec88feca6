"""The examples that we hand out are accepted by a real API server."""

import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.signals.timestamps import parse_timestamp
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.cluster import GreenSchedProcesses

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("greensched")]

EXAMPLES = Path(__file__).parents[2] / "examples"
OBJECTS = sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("stress/*.yaml")])


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.stem)
def test_the_api_server_accepts_the_example(
    control_plane: ControlPlane, greensched: GreenSchedProcesses, path: Path
) -> None:
    said = control_plane.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert "created (server dry run)" in said


def run_example(control_plane: ControlPlane, *argv: str) -> str:
    environment = {
        "KUBECONFIG": str(control_plane.kubeconfig),
        "HOME": str(control_plane.folder / "home"),  # kubectl keeps a cache there
        "PATH": f"{control_plane.programs}:{os.environ['PATH']}",
    }
    ran = subprocess.run(
        [str(EXAMPLES / argv[0]), *argv[1:]], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_example_of_a_grid_signal_is_fresh_whenever_it_is_run(
    control_plane: ControlPlane,
) -> None:
    try:
        for _ in range(2):
            row = run_example(control_plane, "02-grid-signal.sh").splitlines()[-1].split()
            assert row[:5] == ["de", "DE", "290", "61.2", "by-hand"]
        observed = control_plane.kubectl(
            "get", "gridsignal", "de", "-o", "jsonpath={.status.observedAt}"
        )
        assert abs(time.time() - parse_timestamp(observed)) < 60.0
    finally:
        control_plane.kubectl("delete", "gridsignal", "de")


def test_the_example_of_a_nodes_power_is_written_on_the_node_that_it_is_given(
    control_plane: ControlPlane,
) -> None:
    node = msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "example-node"}}
    )
    control_plane.kubectl("create", "-f", "-", stdin=node.decode())
    try:
        assert "Take it back" in run_example(control_plane, "04-node-power.sh", "example-node")
        found = control_plane.kubectl("get", "node", "example-node", "-o", "json")
        item = msgspec.json.decode(found, type=NodeObject)
        node_read, faults = NodeReader(PowerCatalogue(), {}).read(item)
        assert (node_read.zone, node_read.power_budget_w) == ("DE", 500.0)
        assert node_read.curve_source == "annotation"
        assert not [fault for fault in faults if "greensched.io" in fault]
    finally:
        control_plane.kubectl("delete", "node", "example-node")
