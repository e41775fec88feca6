import sys

import pytest

from benchmarks.bench_cluster import chart_objects, noop_extender
from benchmarks.command_line import ROOT
from greensched_testbed.controlplane import ControlPlane


def test_no_benchmark_has_the_name_of_a_module_of_the_standard_library() -> None:
    """Some are started as files, with their folder first on the path: `operator.py` ended those."""
    names = {file.stem for file in (ROOT / "benchmarks").glob("*.py")}
    assert not names & sys.stdlib_module_names - {"__init__"}


@pytest.mark.controlplane
def test_the_extender_that_does_nothing_serves(control_plane: ControlPlane) -> None:
    with noop_extender(control_plane) as running:
        assert running.ready_s > 0.0


@pytest.mark.controlplane
@pytest.mark.helm
def test_benchmarks_install_nothing_into_a_namespace_that_only_a_hook_makes(
    control_plane: ControlPlane,
) -> None:
    """`helm test` has one to itself; by its objects `make bench-extender` once ended at once."""
    objects = chart_objects(control_plane, "http://127.0.0.1:1")
    spaces = {each["metadata"].get("namespace", "greensched") for each in objects}
    assert spaces == {"greensched", "kube-system"}
