"""How many workers elastic work has in which slots."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.carbon_scaler import carbon_scaler
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.scaling import scaled_plan, scaled_slots, useful_workers

# The second worker adds 0.8 of the first one's work, the third 0.4.
CURVE = np.array([1.0, 1.8, 2.2])


def of_slots(*each: float, sizes: int = 3) -> Floats:
    """Return the cost of each slot for one to three workers: the same for each worker."""
    return np.tile(np.array(each), (sizes, 1))


@pytest.mark.parametrize(("needed", "workers"), [
    pytest.param(0.0, [0, 0, 0], id="nothing-is-left"),
    pytest.param(0.5, [0, 1, 0], id="the-cheapest-slot-in-part"),
    pytest.param(1.8, [0, 2, 0], id="a-second-worker-there"),
    pytest.param(2.8, [0, 2, 1], id="then-one-in-the-next-cheapest"),
    pytest.param(4.0, [0, 3, 2], id="three-before-the-dearest"),  # 2.5 each against 2.6
    pytest.param(6.6, [3, 3, 3], id="all-that-there-is"),
    pytest.param(99.0, [3, 3, 3], id="more-than-can-be-done"),
])  # fmt: skip
def test_workers_go_where_they_add_most_for_what_they_cost(
    needed: float, workers: list[int]
) -> None:
    assert scaled_slots(of_slots(2.6, 1.0, 1.3), CURVE, needed).tolist() == workers


def test_a_worker_that_makes_the_others_dearer_counts_with_that() -> None:
    """Two workers in the cheap slot would cost 3 each: 6 instead of 1, for 0.8 of a slot's work."""
    cost = np.array([[1.0, 4.0], [3.0, 4.0]])
    assert scaled_slots(cost, CURVE[:2], 1.8).tolist() == [1, 1]


@pytest.mark.parametrize(("curve", "useful"), [
    pytest.param([1.0, 1.8, 2.2], 3, id="all"),
    pytest.param([1.0, 1.0, 2.0], 1, id="none-beyond-one-that-adds-nothing"),
    pytest.param([1.0, 1.5, 1.5, 1.5], 2, id="a-level-end"),
])  # fmt: skip
def test_workers_that_add_no_work_are_of_no_use(curve: list[float], useful: int) -> None:
    assert useful_workers(np.array(curve)) == useful
    assert scaled_slots(of_slots(1.0, sizes=len(curve)), np.array(curve), 99.0).tolist() == [useful]


carbon_rows = st.lists(st.integers(1, 900).map(float), min_size=1, max_size=8)


@given(carbon_rows, st.floats(0.0, 20.0))
def test_it_is_carbon_scalers_greedy(carbon: list[float], needed: float) -> None:
    watts = np.arange(1.0, 4.0)
    share = carbon_scaler(np.array([carbon]), CURVE, watts, np.array([needed]))[0]
    taken = (share > 1e-9).sum(axis=1)
    assert scaled_slots(of_slots(*carbon), CURVE, needed).tolist() == taken.tolist()


def plan(cost: Floats, slots: float, restart: float = 0.0, now: int = 0) -> tuple[list[int], float]:
    """Return the workers of slots of 100 s, for so many slots' work and time for each change."""
    workers, total = scaled_plan(cost, CURVE, 100.0 * slots, 100.0, 100.0 * restart, 99.0, now)
    return workers.tolist(), total


def test_a_plan_costs_what_its_workers_do_to_the_end() -> None:
    """Of the second slot's two workers 0.5 / 1.8 of the time is needed."""
    workers, total = plan(of_slots(1.0, 1.0, 9.0), 2.3)
    assert workers == [2, 1, 0]
    assert total == pytest.approx(2.0 + 0.5)


@pytest.mark.parametrize(("restart", "workers", "total"), [
    pytest.param(0.0, [2, 0, 2, 0], 2 * 2.0, id="nothing"),
    pytest.param(0.1, [3, 0, 2, 0], 3.0 + 2 * 0.87778, id="some-that-a-third-worker-makes-up-for"),
    pytest.param(2.0, [1, 1, 1, 1], 0.0, id="too-much"),
])  # fmt: skip
def test_what_changes_take_is_worked_for_too(
    restart: float, workers: list[int], total: float
) -> None:
    found, cost = plan(of_slots(1.0, 3.0, 1.0, 3.0), 3.6, restart)
    assert found == workers
    if total:
        assert cost == pytest.approx(total, rel=1e-4)


def test_work_that_runs_goes_on_with_its_workers_for_nothing() -> None:
    equal = of_slots(1.0, 1.0, 1.0)
    assert plan(equal, 3.0, 0.2, now=1)[0] == [1, 1, 1]
    assert plan(equal, 3.6, 0.2, now=2)[0] == [2, 2, 0]


def test_work_that_cannot_be_done_in_time_gets_all_workers() -> None:
    found, total = plan(of_slots(1.0, 9.0), 50.0)
    assert found == [3, 3]
    assert np.isinf(total)


costs = st.lists(st.floats(-5.0, 20.0), min_size=1, max_size=8)


@given(costs, st.floats(0.1, 12.0), st.sampled_from([0.0, 0.1, 0.7]), st.integers(0, 3))
def test_a_plan_does_all_work_that_can_be_done(
    told: list[float], needed: float, restart: float, now: int
) -> None:
    workers, total = plan(of_slots(*told), needed, restart, now)
    done = sum(CURVE[each - 1] for each in workers if each)
    if np.isfinite(total):
        sizes = [size for size, _ in itertools.groupby([now, *workers])]
        runs = [size for size in sizes if size]
        lost = restart * sum(CURVE[size - 1] for size in runs[1:])
        assert done >= needed - 1e-6
        assert done - lost >= needed - 1e-6 or len({*workers} - {0}) == 1
    else:
        fastest = len(told) * CURVE[-1]
        assert fastest < needed + restart * CURVE[-1] * len(told) + 1e-6
