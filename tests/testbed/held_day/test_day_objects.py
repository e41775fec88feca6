"""What is created for a day: nodes as the simulator has them, and objects for each job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import build_world
from greensched_testbed.held_day.day import CRON_RUN, GANG, JOB, POD, Day
from greensched_testbed.held_day.objects import item_objects, node_groups_of
from greensched_testbed.nodes import node_object
from greensched_testbed.operator_processes import FastClock
from greensched_testbed.replay import TESTBED_RUNTIME

SCENARIOS = Path(__file__).resolve().parents[3] / "examples" / "scenarios"
HOUR_S = 3600.0
FAST, SLOW = {"cpu_capacity": 8.0, "speed": 2.0}, {"cpu_capacity": 8.0, "speed": 0.5}


def day_of(*jobs: dict[str, float], nodes: tuple[dict[str, float], ...] = (FAST, SLOW)) -> Day:
    return Day(make_world(list(jobs), list(nodes)), FastClock(3600.0, 0.0, 0.0), "day")


def objects_of(day: Day, place: int) -> list[dict[str, Any]]:
    return [body for _, body in item_objects(day, day.items()[place], "owner")]


def test_a_job_of_three_workers_is_three_pods_of_one_gang() -> None:
    day = day_of({"workers": 3.0, "deadline_s": 2 * HOUR_S})
    pods = objects_of(day, 0)
    assert [pod["metadata"]["name"] for pod in pods] == ["gang-0-0", "gang-0-1", "gang-0-2"]
    assert {pod["metadata"]["annotations"][labels.GANG] for pod in pods} == {"gang-0"}
    assert {pod["metadata"]["annotations"][labels.DEADLINE] for pod in pods} == {"7200s"}


def test_jobs_of_one_worker_take_each_kind_in_turn() -> None:
    day = day_of(*[{} for _ in range(4)], {"workers": 2.0})
    assert [item.kind for item in day.items()] == [JOB, JOB, POD, CRON_RUN, GANG]
    [run] = objects_of(day, 3)
    assert run["metadata"]["ownerReferences"][0]["uid"] == "owner"


def test_gpus_are_requested_and_limited_alike() -> None:
    [job] = objects_of(day_of({"gpus": 2.0}), 0)
    [container] = job["spec"]["template"]["spec"]["containers"]
    asked = container["resources"]
    assert asked["requests"][labels.NVIDIA_GPU] == asked["limits"][labels.NVIDIA_GPU] == "2"


def test_where_nodes_differ_a_runtime_is_known_only_with_the_node() -> None:
    unequal, equal = day_of({"runtime_s": HOUR_S}), day_of({"runtime_s": HOUR_S}, nodes=(FAST,))
    [first], [second] = objects_of(unequal, 0), objects_of(equal, 0)
    assert TESTBED_RUNTIME not in first["spec"]["template"]["metadata"]["annotations"]
    assert second["spec"]["template"]["metadata"]["annotations"][TESTBED_RUNTIME] == "0.500s"
    assert [unequal.run_wall_s(0, node) for node in (0, 1)] == [0.5, 2.0]


def test_a_runtime_is_declared_for_the_reference_node() -> None:
    [job] = objects_of(day_of({"runtime_s": HOUR_S, "estimate_s": 2 * HOUR_S}), 0)
    assert job["metadata"]["annotations"][labels.RUNTIME] == "7200s"


@pytest.mark.parametrize("name", ["three-zones", "pipelines-and-gangs", "one-solar-grid"])
def test_greensched_reads_each_node_as_the_simulator_has_it(name: str) -> None:
    loaded = load_scenario(SCENARIOS / f"{name}.yaml")
    world = build_world(loaded)
    nodes, curves = world.nodes, world.curve_watts.reshape(-1, CURVE_POINTS)
    for row, group in enumerate(node_groups_of(world, loaded.cluster.nodes)):
        [name_of] = group.names()
        item = msgspec.convert(node_object(name_of, group, is_ready=True), NodeObject)
        read, faults = NodeReader(PowerCatalogue(), {}).read(item)
        assert faults == ()
        assert read.zone == world.zones[nodes.zone[row]]
        assert (read.speed, read.pue) == pytest.approx((nodes.speed[row], nodes.pue[row]))
        assert read.curve.watts == pytest.approx(curves[int(nodes.curve_class[row])], abs=1e-3)
        gpu_w = (read.gpu.idle_w, read.gpu.peak_w) if read.gpu else (0.0, 0.0)
        assert gpu_w == pytest.approx((nodes.gpu_idle_w[row], nodes.gpu_peak_w[row]))
