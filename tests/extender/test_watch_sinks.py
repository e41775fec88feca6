"""Raw objects as a watch brings them, through the sinks, into the snapshot."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject, PodObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.signals.chain import GridSignals
from greensched_core.signals.readings import Reading
from greensched_core.signals.static import load_static_zones
from greensched_core.signals.watched import SignalSink, decode_signal
from greensched_core.testing import make_node
from greensched_extender.grid import OutlookCache
from greensched_extender.watch_cluster import NodeSink, PodSink

World = Any
OURS = "greensched"


def node(name: str) -> NodeObject:
    item = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi"}}}
    return msgspec.convert(item, NodeObject)


def pod(uid: str, on: str | None, phase: str = "Running", scheduler: str = OURS) -> PodObject:
    requests = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    item = {
        "metadata": {"name": uid, "namespace": "default", "uid": uid},
        "spec": {"nodeName": on, "schedulerName": scheduler, "containers": [requests]},
        "status": {"phase": phase},
    }
    return msgspec.convert(item, PodObject)


@pytest.fixture
def nodes(world: World) -> NodeSink:
    return NodeSink(world.snapshot, NodeReader(PowerCatalogue(), {}))


def pod_sink(world: World) -> PodSink:
    return PodSink(
        world.snapshot,
        world.decisions,
        world.clock,
        scheduler_names={OURS},
        count_binding=world.metrics.count_binding,
    )


@pytest.fixture
def pods(world: World) -> PodSink:
    return pod_sink(world)


def test_what_a_new_list_does_not_hold_is_gone(
    world: World, nodes: NodeSink, pods: PodSink
) -> None:
    nodes.upsert(node("a"))
    nodes.upsert(node("b"))
    pods.upsert(pod("1", "a"))
    pods.upsert(pod("2", "b"))
    assert (world.snapshot.node_count, world.snapshot.pod_count) == (2, 2)
    nodes.list_began()
    nodes.upsert(node("b"))
    nodes.list_ended()
    pods.list_began()
    pods.upsert(pod("2", "b"))
    assert world.snapshot.pod_count == 2, "nothing is forgotten half-way"
    pods.list_ended()
    assert world.snapshot.node_names() == ["b"]
    assert world.snapshot.pod_uids() == ["2"]


def test_only_bound_and_running_pods_hold_room(world: World, pods: PodSink) -> None:
    pods.upsert(pod("1", None, "Pending"))
    assert world.snapshot.pod_count == 0
    pods.upsert(pod("1", "a"))
    assert world.snapshot.pod_count == 1
    pods.upsert(pod("1", "a", "Succeeded"))
    assert world.snapshot.pod_count == 0
    pods.upsert(pod("2", "a"))
    pods.remove(pod("2", "a"))
    assert world.snapshot.pod_count == 0


def test_pods_of_the_first_list_may_have_run_for_long_and_later_ones_not(
    world: World, nodes: NodeSink, pods: PodSink
) -> None:
    nodes.upsert(node("a"))
    nodes.upsert(node("b"))
    pods.list_began()
    pods.upsert(pod("1", "a"))
    pods.list_ended()
    pods.upsert(pod("2", "b"))
    measured = {name: Reading(0.5, "ratio", 0.0, "x") for name in "ab"}
    world.snapshot.measure(measured, {}, {})
    assert world.snapshot.report("a").utilisation == 0.5
    assert world.snapshot.report("b").utilisation > 0.5


def test_a_pending_pod_keeps_its_provisional_place(
    world: World, nodes: NodeSink, pods: PodSink
) -> None:
    nodes.upsert(node("a"))
    world.snapshot.expect("1", 0, (1.0, 1.0, 0.0))
    pods.upsert(pod("1", None, "Pending"))
    assert world.snapshot.provisional_count == 1
    pods.upsert(pod("1", "a"))
    assert (world.snapshot.provisional_count, world.snapshot.pod_count) == (0, 1)


def bindings(world: World) -> tuple[float, float]:
    """Return how many pods of ours were bound with scores of this replica, and without."""
    scored, unscored = (world.counted("bindings_total", scored=each) for each in ("yes", "no"))
    return scored, unscored


@pytest.mark.parametrize("decisions_max_bytes", [0, 1_000_000])
def test_a_pod_of_ours_that_is_bound_is_counted_once_by_whether_it_was_scored(
    new_world: Callable[..., World], decisions_max_bytes: int
) -> None:
    world = new_world(decisions_max_bytes=decisions_max_bytes)
    world.add(make_node("a"), make_node("b"))
    pods = pod_sink(world)
    pods.list_began()
    pods.upsert(pod("before", "a"))  # who scored it is not known
    pods.list_ended()
    assert bindings(world) == (0.0, 0.0)
    world.scores("a", "b")  # of the pod uid-p1
    for phase in ("Pending", "Running"):
        pods.upsert(pod("uid-p1", "a", phase))
    assert bindings(world) == (1.0, 0.0)
    for phase in ("Pending", "Running"):
        pods.upsert(pod("unscored", "a", phase))
    pods.upsert(pod("of-another", "a", scheduler="default-scheduler"))
    assert bindings(world) == (1.0, 1.0)


def test_a_pod_that_is_scored_after_its_binding_was_placed_without_scores(
    world: World, nodes: NodeSink, pods: PodSink
) -> None:
    nodes.upsert(node("a"))
    nodes.upsert(node("b"))
    pods.list_ended()
    pods.upsert(pod("uid-p1", "a"))
    world.scores("a", "b")  # of the pod uid-p1
    pods.remove(pod("uid-p1", "a"))
    pods.upsert(pod("uid-p1", "a"))  # as after a list that was cut
    assert bindings(world) == (0.0, 2.0)


def test_grid_signals_reach_the_outlook_and_fall_back_when_they_go(world: World) -> None:
    steps: list[tuple[str, str]] = []
    signals = GridSignals(
        load_static_zones(), count_steps=lambda kind, step, _: steps.append((kind, step))
    )
    sink = SignalSink(signals, world.clock)
    grid = OutlookCache(signals.zone, signals.zone_means)
    zones = ("", "DE")

    def seen() -> tuple[float | None, str]:
        world.clock.advance(1.0)
        signal = grid.outlook(zones, world.clock.now(), 3600.0).signals[1]
        return signal.carbon_g_per_kwh, signal.carbon_step

    static, step = seen()
    assert step == "static-zone"
    raw = {
        "metadata": {"name": "de"},
        "spec": {"zone": "DE", "currency": "EUR"},
        "status": {
            "observedAt": "2027-01-15T08:00:00Z",  # the clock's second
            "source": "test",
            "current": {"startedAt": "2027-01-15T08:00:00Z", "carbonGramsPerKwh": 123.0},
        },
    }
    item = decode_signal(msgspec.Raw(json.dumps(raw).encode()))
    sink.list_began()
    sink.upsert(item)
    sink.list_ended()
    assert seen() == (123.0, "gridsignal")
    sink.remove(item)
    assert seen() == (123.0, "last-good")
    world.clock.advance(2 * 86_400.0)
    assert seen() == (static, "static-zone")
    assert ("carbon", "last-good") in steps


def test_an_outlook_is_looked_up_once_a_second_and_run(world: World) -> None:
    zones = ("", "DE", "FR")
    first = world.known.grid.outlook(zones, 100.0, 60.0)
    assert world.known.grid.outlook(zones, 100.9, 60.0) is first
    assert world.known.grid.outlook(zones, 100.9, 61.0) is not first
    assert world.known.grid.outlook(zones, 101.0, 60.0) is not first
