"""Nodes that nothing needs are removed: after which time, and which of them."""

import numpy as np
import pytest

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import (
    GIB,
    Fields,
    make_world,
    with_autoscaling,
    with_outages,
)
from greensched_simulator.world.world import World
from tests.simulator.engine.autoscaling.one_group import NODE, autoscaled

pytestmark = pytest.mark.engine

HOUR = 3600.0
FULL: Fields = {"runtime_s": 600.0, "cpu_cores": 10.0}


def removed(world: World) -> list[tuple[int, float]]:
    """Return the nodes that were removed, and when, in the order of time."""
    told = simulate(world, policy_named("run-now+first-fit")).sleeps
    rows = zip(told.node.tolist(), told.asleep_s.tolist(), strict=True)
    return sorted((each for each in rows if each[1] > 0.0), key=lambda each: (each[1], each[0]))


@pytest.mark.parametrize(("end_s", "removed_s"), [
    pytest.param(720.0, 1330.0, id="empty-at-a-scan"),
    pytest.param(719.0, 1330.0, id="before-it"),
    pytest.param(721.0, 1340.0, id="after-it"),
])  # fmt: skip
def test_an_empty_node_is_removed_after_more_than_ten_minutes(
    end_s: float, removed_s: float
) -> None:
    """It started at 0, was ready at 120, and is unneeded from the scan on that finds it empty."""
    world = autoscaled([{**FULL, "runtime_s": end_s - 120.0}], 1)
    assert removed(world) == [(0, removed_s)]


@pytest.mark.parametrize(("arrival_s", "removed_s"), [
    pytest.param(1329.0, [2540.0], id="used-before"),
    pytest.param(1330.0, [2540.0], id="used-at-that-moment"),
    pytest.param(1331.0, [1330.0, 2670.0], id="too-late"),
])  # fmt: skip
def test_work_that_comes_in_time_keeps_a_node(arrival_s: float, removed_s: list[float]) -> None:
    jobs = [FULL, {**FULL, "arrival_s": arrival_s}]
    assert [at_s for _, at_s in removed(autoscaled(jobs, 1))] == removed_s


@pytest.mark.parametrize(("asked", "more", "delay_s"), [
    pytest.param({"cpu_cores": 5.0}, {}, 0.0, id="half-of-the-cores"),
    pytest.param({"cpu_cores": 4.999}, {}, 300.0, id="less"),
    pytest.param({"memory_bytes": 32 * GIB}, {}, 0.0, id="half-of-the-memory"),
    pytest.param({"memory_bytes": 31 * GIB}, {}, 300.0, id="less-memory"),
    pytest.param({"cpu_cores": 9.0, "gpus": 1.0}, {"gpu_capacity": 4.0}, 300.0, id="few-gpus"),
    pytest.param({"cpu_cores": 1.0, "gpus": 2.0}, {"gpu_capacity": 4.0}, 0.0, id="half-the-gpus"),
])  # fmt: skip
def test_a_node_below_half_is_looked_at_again_after_five_minutes(
    asked: Fields, more: Fields, delay_s: float
) -> None:
    """Its work, from 120 to 1330, cannot move; so 120, 420, 720, 1020, 1320 and 1620 are looked at.

    The node becomes empty at 1320: at the second last of these, or just after it.
    """
    job: Fields = {"runtime_s": 1201.0, "cpu_cores": 1.0, **asked}
    found_s = 1620.0 if delay_s else 1330.0
    assert removed(autoscaled([job], 1, node={**NODE, **more})) == [(0, found_s + 610.0)]


def test_a_node_that_is_looked_at_when_it_becomes_empty_is_unneeded_at_once() -> None:
    job: Fields = {"runtime_s": 1200.0, "cpu_cores": 1.0}
    assert removed(autoscaled([job], 1)) == [(0, 1320.0 + 610.0)]


@pytest.mark.parametrize(("added_s", "removed_s"), [
    pytest.param(730.0, 1330.0, id="ten-minutes-before"),
    pytest.param(740.0, 1340.0, id="less"),
])  # fmt: skip
def test_nothing_is_removed_for_ten_minutes_after_a_start(added_s: float, removed_s: float) -> None:
    """The other job fits only on the other group, whose node starts for it."""
    nodes = [NODE, {**NODE, "cpu_capacity": 20.0}]
    jobs = [FULL, {**FULL, "cpu_cores": 20.0, "arrival_s": added_s, "runtime_s": HOUR}]
    world = with_autoscaling(make_world(jobs, nodes), [0, 1], [0, 0])
    assert removed(world)[0] == (0, removed_s)


@pytest.mark.parametrize(("min_nodes", "gone"), [
    pytest.param(0, [(0, 1330.0), (1, 1330.0), (2, 1330.0)], id="none"),
    pytest.param(1, [(0, 1210.0), (2, 1330.0)], id="one-which-was-up-at-first"),
    pytest.param(3, [], id="all"),
])  # fmt: skip
def test_no_group_gets_smaller_than_its_minimum(
    min_nodes: int, gone: list[tuple[int, float]]
) -> None:
    assert removed(autoscaled([FULL] * 3, 3, min_nodes)) == gone


def test_nothing_is_removed_while_pending_work_has_room_on_a_node_that_starts() -> None:
    nodes = [NODE, {**NODE, "cpu_capacity": 20.0, "wake_s": HOUR}]
    jobs = [FULL, {**FULL, "cpu_cores": 20.0, "arrival_s": 300.0}]
    world = with_autoscaling(make_world(jobs, nodes), [0, 1], [0, 0])
    # Unneeded since 720; the other node is ready at 3900.
    assert removed(world)[0] == (0, 3900.0)


def test_ten_nodes_are_removed_at_a_scan() -> None:
    gone = removed(autoscaled([FULL] * 12, 12))
    assert [at_s for _, at_s in gone] == [1330.0] * 10 + [1340.0] * 2
    assert sorted(node for node, _ in gone[:10]) == list(range(2, 12))


def test_a_failed_node_is_not_removed_and_unneeded_only_when_it_is_back() -> None:
    world = with_outages(autoscaled([FULL], 1), (0, 0.25, 2.0))
    assert removed(world) == [(0, 2 * HOUR + 610.0)]
    schedule = simulate(world, policy_named("run-now"))
    assert schedule.outages.asleep_s.tolist() == [0.25 * HOUR]
    assert np.isfinite(schedule.end_s).all()
