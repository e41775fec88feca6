"""Which nodes with room a policy looks at, and the literature's whole policies, by hand."""

import pytest

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import GIB, make_world

HOUR = 3600.0
Job = dict[str, float]


def job(arrival_s: float, cores: float, hours: float = 10.0) -> Job:
    return {"arrival_s": arrival_s, "cpu_cores": cores, "runtime_s": hours * HOUR}


def nodes_taken(policy: str, jobs: list[Job], nodes: int = 3) -> list[int]:
    """Return where each job ran, of nodes with ten cores each."""
    ran = simulate(make_world(jobs, [{}] * nodes), policy_named(policy))
    return [int(node) for node in ran.node]


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param("first-fit", [0, 0, 1, 1, 2, 2], id="one-node-is-filled-after-the-other"),
        pytest.param("round-robin", [0, 1, 2, 0, 1, 2], id="each-in-turn"),
    ],
)
def test_jobs_of_four_cores(policy: str, nodes: list[int]) -> None:
    assert nodes_taken(policy, [job(at, 4) for at in range(6)]) == nodes


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param("first-fit", [0, 1, 1, 1], id="first-fit"),
        pytest.param("round-robin", [0, 1, 2, 1], id="round-robin"),
    ],
)
def test_a_full_node_is_passed_over(policy: str, nodes: list[int]) -> None:
    assert nodes_taken(policy, [job(0, 10), job(1, 2), job(2, 2), job(3, 2)]) == nodes


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param("first-fit", [0, 1, 0], id="first-fit-begins-at-the-first"),
        pytest.param("round-robin", [0, 1, 2], id="round-robin-goes-on"),
    ],
)
def test_a_node_that_came_free_in_front(policy: str, nodes: list[int]) -> None:
    assert nodes_taken(policy, [job(0, 10, 1.0), job(HOUR / 2, 2), job(2 * HOUR, 2)]) == nodes


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param("first-fit", [0, 0, 0], id="first-fit"),
        pytest.param("round-robin", [0, 1, 2], id="round-robin"),
    ],
)
def test_large_clusters_are_searched_in_the_same_way(policy: str, nodes: list[int]) -> None:
    assert nodes_taken(policy, [job(at, 1) for at in range(3)], nodes=150) == nodes


@pytest.mark.parametrize(
    ("policy", "starts_h"),
    [
        # The hour and the two hours start at once, the three follow the hour on the fast node.
        pytest.param("min-min", [0.0, 0.0, 0.5], id="min-min"),
        # The three hours and the two start at once, the hour follows the three.
        pytest.param("max-min", [1.5, 0.0, 0.0], id="max-min"),
    ],
)
def test_min_min_and_max_min_on_a_slow_and_a_fast_node(policy: str, starts_h: list[float]) -> None:
    jobs = [job(0, 10, hours) for hours in (1.0, 2.0, 3.0)]
    ran = simulate(make_world(jobs, [{}, {"speed": 2.0}]), policy_named(policy))
    assert (ran.start_s / HOUR).tolist() == starts_h
    assert ran.node.tolist() == [1, 0, 1], "the second node is twice as fast"


def test_tetris_srtf_takes_little_work_first_and_puts_it_where_it_fills_most() -> None:
    # Alignment of one core and 1 GiB: 0.05 + 1/64 on the first node, 0.05 + 1/16 on the second.
    nodes = [{"memory_capacity": 64 * GIB}, {"memory_capacity": 16 * GIB}]
    ran = simulate(make_world([job(0, 1)], nodes), policy_named("tetris-srtf"))
    assert ran.node.tolist() == [1]
    full = [job(0, 10, 1.0), job(1, 10, 3.0), job(2, 10, 2.0)]
    started = simulate(make_world(full), policy_named("tetris-srtf")).start_s
    assert (started / HOUR).tolist() == [0.0, 3.0, 1.0]
