"""What jobs may expect of nodes before they are placed."""

import math

import numpy as np

from greensched_simulator.arrays.moving import LATENCY_S
from greensched_simulator.engine.state.job_estimates import JobEstimates, estimates_of
from greensched_simulator.testing.small_worlds import GIB, make_world

HOUR = 3600.0


def expected(job: dict[str, float], *nodes: dict[str, float]) -> JobEstimates:
    """Return what one job may expect of nodes in two zones; all that can, sleep."""
    world = make_world([job], nodes, [[(0.0, 1.0, 1.0)]] * 2)
    return estimates_of(world.jobs, world.precedence, world.nodes, 2, world.nodes.wake_s)


def test_a_run_is_as_long_as_on_the_mean_core_of_the_zone() -> None:
    fast, slow = {"cpu_capacity": 30.0, "speed": 2.0}, {"cpu_capacity": 10.0, "speed": 0.5}
    found = expected({"runtime_s": HOUR}, fast, slow, {"zone": 1})
    assert found.runtime_s.tolist() == [[(30 * 0.5 + 10 * 2.0) / 40 * HOUR, HOUR]]


def test_alike_nodes_count_each() -> None:
    found = expected({"runtime_s": HOUR}, {"speed": 2.0}, {"speed": 2.0}, {"speed": 0.5})
    np.testing.assert_allclose(found.runtime_s[0, 0], (0.5 + 0.5 + 2.0) / 3 * HOUR)


def test_only_nodes_that_can_take_all_that_is_asked_for_count() -> None:
    many_cores = {"cpu_capacity": 64.0, "memory_capacity": GIB, "speed": 0.1}
    much_memory = {"cpu_capacity": 1.0, "memory_capacity": 512 * GIB, "speed": 0.1, "zone": 1}
    job = {"runtime_s": HOUR, "cpu_cores": 8.0, "memory_bytes": 32 * GIB, "deadline_s": 5 * HOUR}
    found = expected(job, {}, many_cores, much_memory)
    assert found.runtime_s.tolist() == [[HOUR, math.inf]]
    assert found.latest_start_s.tolist() == [4 * HOUR]


def test_the_last_start_leaves_time_for_the_slowest_node() -> None:
    job = {"runtime_s": HOUR, "estimate_s": 2 * HOUR, "deadline_s": 9 * HOUR}
    assert expected(job, {"speed": 3.0}, {"speed": 0.5}).latest_start_s.tolist() == [5 * HOUR]


def test_a_job_without_deadline_is_to_start_when_it_comes() -> None:
    assert expected({"arrival_s": 7.0}, {}).latest_start_s.tolist() == [7.0]


def test_the_last_start_leaves_time_to_wake_a_node() -> None:
    job = {"runtime_s": HOUR, "deadline_s": 9 * HOUR}
    found = expected(job, {"speed": 0.5}, {"wake_s": HOUR}, {"wake_s": 90 * 60.0})
    assert found.latest_start_s.tolist() == [6.5 * HOUR]


def test_of_a_gang_one_worker_may_run_slowest_and_another_wait_longest() -> None:
    gang = {"runtime_s": HOUR, "deadline_s": 9 * HOUR, "workers": 2.0}
    found = expected(gang, {"speed": 0.5}, {"wake_s": HOUR}, {"wake_s": 90 * 60.0})
    assert found.latest_start_s.tolist() == [5.5 * HOUR]


def test_the_last_start_leaves_time_to_bring_the_data_over_links_that_it_may_take() -> None:
    """From the zone where it lies, or, of a job that can be suspended, from wherever it ran."""
    links = np.zeros((4, 3, 3))
    links[LATENCY_S, 0, 1], links[LATENCY_S, 2, 1] = HOUR, 3 * HOUR
    nodes = [{"zone": zone} for zone in range(3)]
    for may_stop, latest_h in ((math.inf, 7.0), (0.0, 5.0)):
        job = {"runtime_s": HOUR, "deadline_s": 9 * HOUR, "data_bytes": 1.0,
               "save_every_s": may_stop}  # fmt: skip
        world = make_world([job], nodes, [[(0.0, 1.0, 1.0)]] * 3)
        found = estimates_of(world.jobs, world.precedence, world.nodes, 3, np.zeros(3), links)
        assert found.latest_start_s.tolist() == [latest_h * HOUR]
        assert found.lead_s.tolist() == [(8.0 - latest_h) * HOUR]
