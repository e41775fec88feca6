"""What is left of a node on its row: nothing, for the next one and for its own return."""

from greensched_core.clock import ManualClock
from greensched_core.signals.readings import Reading
from greensched_core.testing import GIB, make_node
from greensched_extender.snapshot import NodeReport, Snapshot


def make_snapshot() -> Snapshot:
    return Snapshot(
        ManualClock(), utilisation_ratio=0.5, gpu_ratio=0.6, default_pue=1.2, provisional_ttl_s=10.0
    )


def report(snapshot: Snapshot, name: str) -> NodeReport:
    found = snapshot.report(name)
    assert found is not None
    return found


def measured(share: float) -> Reading:
    return Reading(share, "ratio", 0.0, "node-exporter")


def test_when_the_last_pod_is_gone_nothing_is_requested_to_the_last_bit() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    for uid, cpu_cores in (("u", 0.1), ("v", 0.2)):
        snapshot.put_pod(uid, "a", (cpu_cores, cpu_cores * GIB, cpu_cores))
    assert 0.1 + 0.2 - 0.1 - 0.2 != 0.0, "sums of floats do not cancel"
    for uid in ("u", "v"):
        snapshot.drop_pod(uid)
    assert report(snapshot, "a").requested == (0.0, 0.0, 0.0)


def test_a_node_that_comes_back_is_not_as_busy_as_it_was_measured_before() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", cpu_cores=10.0))
    snapshot.put_pod("u", "a", (4.0, GIB, 0.0), is_recent=False)
    snapshot.measure({"a": measured(0.9)}, {}, {})
    snapshot.drop_node("a")  # its pod stays, and so its row
    snapshot.put_node(make_node("a", cpu_cores=10.0))
    assert report(snapshot, "a").utilisation_source == "requests"
    assert report(snapshot, "a").utilisation == 0.2


def test_an_unreadable_node_that_is_gone_is_no_longer_reported() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", cpu_cores=0.0))
    snapshot.put_pod("u", "a", (1.0, GIB, 0.0))  # its pod stays, and so its row
    assert snapshot.view().names.unreadable == {"a"}
    snapshot.drop_node("a")
    assert snapshot.unreadable_count == 0
    assert snapshot.view().names.unreadable == frozenset()


def test_a_row_that_is_taken_over_by_a_pods_node_has_the_new_name_and_no_capacity() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("old", cpu_cores=10.0))
    assert snapshot.view().names.row_of == {"old": 0}
    snapshot.drop_node("old")
    assert snapshot.view().names.row_of == {}
    snapshot.put_pod("u", "late", (5.0, GIB, 0.0))
    assert snapshot.node_of("u") == "late"
    assert report(snapshot, "late").utilisation == 0.0, "of no capacity that anybody knows"


def test_a_node_that_comes_back_when_its_row_is_taken_gets_another() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("old"))
    snapshot.drop_node("old")
    snapshot.put_node(make_node("new"))
    snapshot.put_node(make_node("old"))
    assert snapshot.view().names.row_of == {"new": 0, "old": 1}
