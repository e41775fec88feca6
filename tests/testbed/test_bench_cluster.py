import pytest

from benchmarks.bench_cluster import chart_objects
from greensched_testbed.controlplane import ControlPlane


@pytest.mark.controlplane
@pytest.mark.helm
def test_benchmarks_install_nothing_into_a_namespace_that_only_a_hook_makes(
    control_plane: ControlPlane,
) -> None:
    """`helm test` has one to itself; by its objects `make bench-extender` once ended at once."""
    objects = chart_objects(control_plane, "http://127.0.0.1:1")
    spaces = {each["metadata"].get("namespace", "greensched") for each in objects}
    assert spaces == {"greensched", "kube-system"}
