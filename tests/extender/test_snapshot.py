from dataclasses import replace
from inspect import signature
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.clock import ManualClock
from greensched_core.metering.measured import PowerReader
from greensched_core.power.hardware import Gpu
from greensched_core.signals.readings import Reading
from greensched_core.testing import GIB, make_node
from greensched_extender.snapshot import METER_WINDOW_S, Snapshot
from greensched_extender.view import View
from greensched_policies.library.node_table import CPU_BEFORE, GPU_FREE, IS_EMPTY, MEMORY_FREE

World = Any


def make_snapshot(clock: ManualClock | None = None) -> Snapshot:
    assumed = {"utilisation_ratio": 0.5, "gpu_ratio": 0.6, "default_pue": 1.2}
    return Snapshot(clock or ManualClock(), **assumed, provisional_ttl_s=10.0)


def watts(value: float, source: str = "kepler-psys") -> Reading:
    return Reading(value, "W", 0.0, source)


def measure(snapshot: Snapshot, utilisation: dict[str, Reading], watts: dict[str, Reading]) -> None:
    snapshot.measure(snapshot.utilisation_by_watts(watts.items()) | utilisation, watts, {})


def column(view: View, name: str, which: int) -> float:
    return float(view.moving[view.names.row_of[name], which])


def test_bound_pods_take_room_and_give_it_back() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(replace(make_node("a", cpu_cores=10.0), memory_bytes=10 * GIB))
    snapshot.put_pod("u1", "a", (4.0, GIB, 0.0))
    view = snapshot.view()
    assert column(view, "a", CPU_BEFORE) == pytest.approx(0.2)  # 4 of 10 cores, half used
    assert column(view, "a", MEMORY_FREE) == 9 * GIB
    assert column(view, "a", IS_EMPTY) == 0.0
    snapshot.drop_pod("u1")
    assert column(snapshot.view(), "a", CPU_BEFORE) == 0.0
    assert column(snapshot.view(), "a", IS_EMPTY) == 1.0


def test_a_view_is_read_only_and_the_same_while_no_node_changes() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    view = snapshot.view()
    assert snapshot.view() is view
    snapshot.put_node(make_node("a"))  # a heartbeat
    assert snapshot.view() is view
    with pytest.raises(ValueError, match="read-only"):
        view.moving[0, 0] = 1.0
    snapshot.put_pod("u", "a", (1.0, 1.0, 0.0))
    assert snapshot.view() is view
    snapshot.put_node(make_node("a", cpu_cores=99.0))
    assert snapshot.view().names is view.names
    assert snapshot.view().facts is not view.facts


def test_a_pod_may_come_before_its_node() -> None:
    snapshot = make_snapshot()
    snapshot.put_pod("u1", "late", (5.0, GIB, 0.0))
    assert "late" not in snapshot.view().names.row_of
    snapshot.put_node(make_node("late", cpu_cores=10.0))
    assert column(snapshot.view(), "late", CPU_BEFORE) == pytest.approx(0.25)


def test_a_pods_node_is_known_whether_or_not_the_node_is() -> None:
    snapshot = make_snapshot()
    snapshot.put_pod("u1", "late", (5.0, GIB, 0.0))
    snapshot.put_node(make_node("gone"))
    snapshot.put_pod("u2", "gone", (5.0, GIB, 0.0))
    snapshot.drop_node("gone")
    assert [snapshot.node_of(uid) for uid in ("u1", "u2", "nobody")] == ["late", "gone", ""]


def test_a_pod_resized_on_a_node_not_seen_yet_burdens_no_other_node() -> None:
    snapshot = make_snapshot()
    snapshot.put_pod("u1", "late", (5.0, GIB, 0.0))
    snapshot.put_pod("u1", "late", (6.0, GIB, 0.0))
    snapshot.put_node(make_node("other", cpu_cores=10.0))
    snapshot.put_node(make_node("late", cpu_cores=10.0))
    assert column(snapshot.view(), "other", IS_EMPTY) == 1.0
    assert column(snapshot.view(), "late", CPU_BEFORE) == pytest.approx(0.3)


def test_pods_of_a_deleted_node_do_not_burden_the_next_one() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("old"))
    snapshot.put_pod("u1", "old", (5.0, GIB, 0.0))
    before = snapshot.view()
    snapshot.drop_node("old")
    assert "old" not in snapshot.view().names.row_of
    snapshot.put_node(make_node("new"))
    assert column(snapshot.view(), "new", IS_EMPTY) == 1.0
    snapshot.drop_pod("u1")
    snapshot.put_node(make_node("newer"))  # takes the row of `old`
    view = snapshot.view()
    assert view.names.row_of["newer"] == before.names.row_of["old"]
    assert before.names.by_row[before.names.row_of["old"]] == "old", "an old view keeps its names"
    assert column(view, "newer", IS_EMPTY) == 1.0


def test_a_node_that_comes_back_finds_its_pods() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    snapshot.put_pod("u1", "a", (5.0, GIB, 0.0))
    snapshot.drop_node("a")
    snapshot.put_node(make_node("a"))
    assert column(snapshot.view(), "a", IS_EMPTY) == 0.0


def test_a_provisional_pod_counts_until_the_watch_shows_it() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", cpu_cores=10.0))
    snapshot.put_node(make_node("b", cpu_cores=10.0))
    snapshot.expect("u1", snapshot.view().names.row_of["a"], (4.0, GIB, 0.0))
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.2)
    assert snapshot.put_pod("u1", "b", (4.0, GIB, 0.0))  # the scheduler chose another one
    view = snapshot.view()
    assert (column(view, "a", CPU_BEFORE), column(view, "b", CPU_BEFORE)) == (0.0, 0.2)
    assert snapshot.provisional_count == 0
    assert not snapshot.put_pod("u1", "b", (4.0, GIB, 0.0)), "it is there already"


@pytest.mark.parametrize(("after_s", "left"), [(9.9, 1), (10.0, 0)], ids=["holds", "expires"])
def test_a_provisional_pod_that_is_never_seen_is_dropped(after_s: float, left: int) -> None:
    clock = ManualClock()
    snapshot = make_snapshot(clock)
    snapshot.put_node(make_node("a"))
    snapshot.expect("u1", 0, (4.0, GIB, 0.0))
    clock.advance(after_s)
    view = snapshot.view()
    assert snapshot.provisional_count == left
    assert column(view, "a", IS_EMPTY) == 1.0 - left
    assert snapshot.expired == 1 - left


def test_a_bound_pod_is_never_expected() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    snapshot.put_pod("u1", "a", (4.0, GIB, 0.0))
    snapshot.expect("u1", 0, (4.0, GIB, 0.0))
    assert snapshot.provisional_count == 0


def test_a_resized_pod_counts_with_its_new_size() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", cpu_cores=10.0))
    snapshot.put_pod("u1", "a", (4.0, GIB, 0.0))
    snapshot.put_pod("u1", "a", (8.0, GIB, 0.0))
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.4)
    assert snapshot.pod_count == 1


def test_measured_watts_become_utilisation_and_later_pods_come_on_top() -> None:
    snapshot = make_snapshot()
    node = make_node("a", cpu_cores=10.0)
    snapshot.put_node(node)
    snapshot.put_pod("u1", "a", (8.0, GIB, 0.0), is_recent=False)
    measure(snapshot, {}, {"a": watts(node.curve.at(0.1)), "ghost": watts(50.0)})
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.1)
    report = snapshot.report("a")
    assert report is not None
    assert (report.utilisation_source, report.measured_w) == ("measured", node.curve.at(0.1))
    snapshot.put_pod("u2", "a", (2.0, GIB, 0.0))
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.2)
    measure(snapshot, {}, {})  # too old by now
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("after_s", "busy"),
    [(0.0, 0.4), (30.0, 0.35), (119.0, 0.2 + 0.2 / 120), (120.0, 0.2), (500.0, 0.2)],
)
def test_a_mean_over_two_minutes_does_not_hide_the_pods_bound_meanwhile(
    after_s: float, busy: float
) -> None:
    clock = ManualClock()
    snapshot = make_snapshot(clock)
    snapshot.put_node(make_node("a", cpu_cores=10.0))
    snapshot.put_pod("old", "a", (2.0, GIB, 0.0), is_recent=False)
    snapshot.put_pod("gone", "a", (6.0, GIB, 0.0))
    snapshot.put_pod("new", "a", (4.0, GIB, 0.0))
    snapshot.drop_pod("gone")
    clock.advance(after_s)
    measure(snapshot, {"a": Reading(0.2, "ratio", 0.0, "node-exporter")}, {})
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(busy)


def test_an_expected_pod_stays_on_top_of_a_measurement_and_when_it_is_bound() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", cpu_cores=10.0))
    snapshot.expect("u", 0, (4.0, GIB, 0.0))
    measure(snapshot, {"a": Reading(0.2, "ratio", 0.0, "node-exporter")}, {})
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.4)
    snapshot.put_pod("u", "a", (4.0, GIB, 0.0))
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.4)


def test_the_meters_window_is_the_one_that_is_asked_for() -> None:
    assert signature(PowerReader).parameters["window_s"].default == METER_WINDOW_S


def test_all_rows_at_once_are_measured_as_each_alone() -> None:
    snapshot = make_snapshot()
    for number in range(40):
        snapshot.put_node(make_node(f"n{number}", cpu_cores=float(number % 7)))
        snapshot.put_pod(f"u{number}", f"n{number}", (number / 5, GIB, 0.0))
    shares = {f"n{number}": number / 30 for number in range(0, 40, 3)}
    measure(
        snapshot, {name: Reading(value, "ratio", 0.0, "x") for name, value in shares.items()}, {}
    )
    view = snapshot.view()
    for name in view.names.row_of:
        report = snapshot.report(name)
        assert report is not None
        assert column(view, name, CPU_BEFORE) == pytest.approx(report.utilisation)


def test_thousands_of_measurements_hold_nobody_up() -> None:
    snapshot = make_snapshot()
    for number in range(5_000):
        snapshot.put_node(make_node(f"n{number}"))
    readings = {f"n{number}": watts(100.0 + number % 200) for number in range(5_000)}
    shares = {name: Reading(0.5, "ratio", 0.0, "x") for name in readings}
    taken_s = []
    for _ in range(5):
        started = process_time()
        snapshot.measure(shares, readings, {})
        taken_s.append(process_time() - started)
    assert min(taken_s) < 0.012, "a request waits for this"


def test_a_row_that_is_taken_over_brings_no_measurement_along() -> None:
    snapshot = make_snapshot()
    snapshot.put_pod("u", "ghost", (4.0, GIB, 0.0), is_recent=False)
    measure(snapshot, {"ghost": Reading(0.9, "ratio", 0.0, "x")}, {})
    snapshot.drop_pod("u")
    snapshot.put_node(make_node("new", cpu_cores=10.0))
    assert column(snapshot.view(), "new", CPU_BEFORE) == 0.0
    report = snapshot.report("new")
    assert report is not None
    assert report.utilisation_source == "requests"
    snapshot.put_pod("v", "new", (2.0, GIB, 0.0))
    assert column(snapshot.view(), "new", CPU_BEFORE) == pytest.approx(0.1)


def test_different_requests_and_long_uids_are_not_remembered_without_end() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    for number in range(10_000):
        snapshot.put_pod("u", "a", (float(number), GIB, 0.0))
    assert len(snapshot._shared) <= 4_096
    snapshot.expect("u" * 100_000, 0, (1.0, GIB, 0.0))
    assert snapshot.provisional_count == 0


def test_measured_utilisation_wins_over_watts_and_over_requests() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    measure(snapshot, {"a": Reading(0.7, "ratio", 0.0, "node-exporter")}, {"a": watts(100.0)})
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.7)


def test_watts_of_a_cpu_package_do_not_pass_for_the_machines() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a"))
    measure(snapshot, {}, {"a": watts(300.0, "kepler")})
    assert column(snapshot.view(), "a", CPU_BEFORE) == 0.0
    report = snapshot.report("a")
    assert report is not None
    assert report.measured_w == 300.0


def test_watts_of_a_whole_platform_tell_how_busy_a_node_is() -> None:
    snapshot = make_snapshot()
    node = make_node("a")
    snapshot.put_node(node)
    measure(snapshot, {}, {"a": watts(node.curve.at(0.7), "scaphandre-psys")})
    assert column(snapshot.view(), "a", CPU_BEFORE) == pytest.approx(0.7)
    report = snapshot.report("a")
    assert report is not None
    assert report.meter == "scaphandre-psys"


def test_watts_of_a_node_with_gpus_do_not_pass_for_its_cpus() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", gpu=Gpu("A100", 8, 50.0, 400.0)))
    measure(snapshot, {}, {"a": watts(2000.0)})
    assert column(snapshot.view(), "a", CPU_BEFORE) == 0.0
    assert column(snapshot.view(), "a", GPU_FREE) == 8.0


def test_a_node_without_capacity_is_known_as_unreadable() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("a", cpu_cores=0.0), ("no allocatable",))
    view = snapshot.view()
    assert view.names.unreadable == {"a"}
    assert "a" not in view.names.row_of
    assert (snapshot.unreadable_count, snapshot.faulty_count) == (1, 1)
    snapshot.put_node(make_node("a"))
    assert snapshot.view().names.unreadable == frozenset()
    assert "a" in snapshot.view().names.row_of


def test_zones_and_curves_of_nodes_that_are_gone_do_not_pile_up() -> None:
    snapshot = make_snapshot()
    snapshot.put_node(make_node("stays", zone="FR", idle_w=70.0))
    for number in range(50):
        snapshot.put_node(make_node("moves", zone=f"Z{number}", idle_w=10.0 + number))
        facts = snapshot.view().facts
        row_of = snapshot.view().names.row_of
        assert facts.zones == ("", "FR", f"Z{number}")
        assert [facts.zones[facts.zone_of[row_of[name]]] for name in ("stays", "moves")] == [
            "FR",
            f"Z{number}",
        ]
        nodes = snapshot.view().candidates(np.array([row_of["stays"], row_of["moves"]]))
        first = facts.curve_watts[(nodes.curve_class[0] * 11).astype(int)]
        assert first.tolist() == [70.0, 10.0 + number]
    snapshot.drop_node("moves")
    assert snapshot.view().facts.zones == ("", "FR")


def test_rows_grow_with_the_cluster() -> None:
    snapshot = make_snapshot()
    for number in range(600):
        snapshot.put_node(make_node(f"node-{number}", cpu_cores=10.0))
        snapshot.put_pod(f"u{number}", f"node-{number}", (number / 100, GIB, 0.0))
    view = snapshot.view()
    rows = view.names.rows([f"node-{number}" for number in range(600)])
    nodes = view.candidates(rows)
    wanted = np.minimum(np.arange(600) / 100 * 0.5 / 10, 1.0)
    assert nodes.cpu_before[0] == pytest.approx(wanted)
    assert (nodes.cpu_capacity == 10.0).all()


Actions = list[tuple[str, int, int]]
actions = st.lists(
    st.tuples(
        st.sampled_from(["node", "drop-node", "pod", "drop-pod", "expect", "tick", "view"]),
        st.integers(0, 4),
        st.integers(0, 6),
    ),
    max_size=60,
)


@given(actions)
def test_whatever_happens_the_sums_are_those_of_the_pods_there_are(happened: Actions) -> None:
    snapshot = make_snapshot(clock := ManualClock())
    nodes: set[str] = set()
    bound: dict[str, str] = {}
    expected: dict[str, tuple[str, float]] = {}
    for what, n, p in happened:
        name, uid = f"n{n}", f"u{p}"
        match what:
            case "node":
                snapshot.put_node(make_node(name))
                nodes.add(name)
            case "drop-node":
                snapshot.drop_node(name)
                nodes.discard(name)
            case "pod":
                snapshot.put_pod(uid, name, (0.1 * (p + 1), 1.0 + p, 0.0))
                bound[uid] = name
                expected.pop(uid, None)
            case "drop-pod":
                snapshot.drop_pod(uid)
                bound.pop(uid, None)
                expected.pop(uid, None)
            case "expect":
                row = snapshot.view().names.row_of.get(name, -1)
                snapshot.expect(uid, row, (0.1 * (p + 1), 1.0 + p, 0.0))
                if name in nodes and uid not in bound:
                    expected[uid] = (name, clock.monotonic())
            case "tick":
                clock.advance(2.0 * p)
        snapshot.view()
        expected = {u: e for u, e in expected.items() if clock.monotonic() - e[1] < 10.0}
    assert set(snapshot.view().names.row_of) == nodes
    for name in nodes:
        report = snapshot.report(name)
        assert report is not None
        uids = [u for u, at in bound.items() if at == name]
        guests = [u for u, (at, _) in expected.items() if at == name]
        assert (report.pods, report.provisional) == (len(uids), len(guests))
        cores = sum(0.1 * (int(u[1:]) + 1) for u in uids + guests)
        assert report.requested[0] == pytest.approx(cores, abs=1e-9)
