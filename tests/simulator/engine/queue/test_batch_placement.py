"""Jobs placed together: the solver against scipy's, the placements by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.engine.queue.batch_placement import (
    MOST_AT_ONCE,
    cheapest_columns,
    price_waiting,
)
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import GIB, make_world

HOUR = 3600.0
Row = dict[str, float]

seeds = st.integers(0, 2**32)


def random_costs(seed: int) -> Floats:
    """Return costs of up to 12 rows, as many columns or more, whole ones in half of the cases."""
    dice = np.random.default_rng(seed)
    rows = int(dice.integers(1, 12))
    cost: Floats = dice.uniform(-5.0, 5.0, (rows, rows + int(dice.integers(0, 6))))
    return np.round(cost) if dice.random() < 0.5 else cost


def sum_of(cost: Floats, chosen: Integers) -> float:
    assert len(set(chosen.tolist())) == cost.shape[0], "a column for each"
    return float(cost[np.arange(cost.shape[0]), chosen].sum())


def test_an_assignment_by_hand() -> None:
    # The first two rows like the first column best; 1 + 2 + 2 is less than 1 + 4 + 2 and the like.
    cost = np.array([[1.0, 2.0, 9.0], [1.0, 4.0, 9.0], [9.0, 2.0, 2.0]])
    assert cheapest_columns(cost).tolist() == [1, 0, 2]


@given(seeds)
def test_an_assignment_costs_as_little_as_scipys(seed: int) -> None:
    cost = random_costs(seed)
    expected = cost[linear_sum_assignment(cost)].sum()
    assert sum_of(cost, cheapest_columns(cost)) == pytest.approx(expected, abs=1e-9)


@given(seeds, st.floats(0.0, 1.0))
def test_as_many_are_placed_as_can_be_and_for_the_least_cost(seed: int, forbidden: float) -> None:
    """Scipy cannot leave rows out, so that it is told the same price of waiting in another way."""
    cost = random_costs(seed)
    if np.random.default_rng(seed).random() < 0.5:
        cost = cost.T.copy()  # more jobs than nodes
    rows, nodes = cost.shape
    cost[np.random.default_rng(seed + 1).random(cost.shape) < forbidden] = np.inf
    if np.isinf(cost).all():
        return
    told = np.hstack([cost, np.full((rows, rows), np.inf)])
    price_waiting(told, nodes)
    chosen = cheapest_columns(told)
    dear = np.where(np.isinf(cost), 1e5, cost)  # scipy takes what is forbidden where it must
    expected = dear[linear_sum_assignment(dear)]
    is_placed = chosen < nodes
    assert is_placed.sum() == (expected < 1e4).sum()
    assert told[is_placed, chosen[is_placed]].sum() == pytest.approx(
        expected[expected < 1e4].sum(), abs=1e-6
    )


def ran(jobs: list[Row], nodes: list[Row], policy: str = "ecsched") -> Schedule:
    return simulate(make_world(jobs, nodes), policy_named(policy))


def test_a_job_leaves_its_best_node_to_one_that_needs_it_more() -> None:
    # Half of what is asked of 10 cores is used, memory of 64 and 16 GiB. Alignment:
    # first job, 1 core and 1 GiB: 0.05 + 1/64 on the first node, 0.05 + 1/16 on the second;
    # second job, 1 core and 8 GiB: 0.05 + 8/64 on the first, 0.05 + 8/16 on the second.
    # Alone each goes to the second. Together 0.0656 + 0.55 is more than 0.1125 + 0.175.
    jobs = [{"memory_bytes": GIB}, {"memory_bytes": 8 * GIB}]
    nodes = [{"memory_capacity": 64 * GIB}, {"memory_capacity": 16 * GIB}]
    assert ran(jobs, nodes).node.tolist() == [0, 1]
    assert ran(jobs[:1], nodes).node.tolist() == [1]
    assert ran(jobs, nodes, "tetris").node.tolist() == [1, 1], "one by one"


def test_as_many_as_find_room_start_in_a_round_whatever_it_costs() -> None:
    # The first job fits best on the first node (0.2 + 1/128, else 0.02 + 1/64), where there is room
    # for both; but only there is memory for the second one, and a round puts one job on a node.
    jobs = [{"cpu_cores": 4.0}, {"memory_bytes": 100 * GIB}]
    nodes = [{"memory_capacity": 128 * GIB}, {"cpu_capacity": 100.0}]
    assert ran(jobs, nodes).node.tolist() == [1, 0]
    assert ran(jobs[:1], nodes).node.tolist() == [0]


def test_rounds_go_on_until_nobody_finds_room() -> None:
    jobs: list[Row] = [{"cpu_cores": 4.0} for _ in range(5)]
    together = ran(jobs, [{}, {}])
    assert sorted(together.node[:4].tolist()) == [0, 0, 1, 1]
    assert (together.start_s / HOUR).tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_more_than_a_round_takes_start_at_one_instant_too() -> None:
    jobs: list[Row] = [{"cpu_cores": 1.0} for _ in range(MOST_AT_ONCE + 20)]
    assert (ran(jobs, [{"cpu_capacity": 50.0}, {"cpu_capacity": 50.0}]).start_s == 0.0).all()


def test_the_costs_are_those_of_the_where_rule() -> None:
    # The fast node is best for both, and one of them gets it.
    jobs: list[Row] = [{"cpu_cores": 8.0}, {"cpu_cores": 8.0}]
    nodes: list[Row] = [{}, {"speed": 2.0}]
    placed = ran(jobs, nodes, "fastest+concurrent")
    assert sorted(placed.node.tolist()) == [0, 1]
    assert placed.start_s.tolist() == [0.0, 0.0]
    assert ran(jobs[:1], nodes, "fastest+concurrent").node.tolist() == [1]
