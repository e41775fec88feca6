"""CarbonScaler's greedy, reckoned by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.carbon_scaler import carbon_scaler
from greensched_policies.costs.cost import Floats

# One node does 10 in a slot at 100 W, a second one adds 8 for 100 W, a third 4 for 100 W: in a slot
# of 100 g/kWh a unit of work costs 1000, 1250 and 2500, in one of 200 g/kWh twice that.
WORK = np.array([10.0, 18.0, 22.0])
POWER_W = np.array([100.0, 200.0, 300.0])


def scaled(carbon: list[float], work: float, sizes: int = 3) -> list[list[float]]:
    """Return the share of each step in each slot of one job."""
    found = carbon_scaler(np.array([carbon]), WORK[:sizes], POWER_W[:sizes], np.array([work]))
    shares: list[list[float]] = found[0].tolist()
    return shares


@pytest.mark.parametrize(
    ("work", "shares"),
    [
        pytest.param(0.0, [[0, 0, 0], [0, 0, 0], [0, 0, 0]], id="nothing-is-left"),
        pytest.param(5.0, [[0, 0, 0], [0.5, 0, 0], [0, 0, 0]], id="half-of-the-cleanest-slot"),
        pytest.param(10.0, [[0, 0, 0], [1, 0, 0], [0, 0, 0]], id="one-node-there"),
        pytest.param(18.0, [[0, 0, 0], [1, 1, 0], [0, 0, 0]], id="a-second-one-there"),
        pytest.param(28.0, [[0, 0, 0], [1, 1, 0], [1, 0, 0]], id="then-one-in-the-next-cleanest"),
        pytest.param(36.0, [[0, 0, 0], [1, 1, 0], [1, 1, 0]], id="and-a-second-one"),
        # A third node at 100 g/kWh costs 2500, one node at 260 g/kWh 2600.
        pytest.param(40.0, [[0, 0, 0], [1, 1, 1], [1, 1, 0]], id="three-before-the-dirtiest"),
        pytest.param(45.0, [[0.5, 0, 0], [1, 1, 1], [1, 1, 0]], id="the-dirtiest-in-part"),
        pytest.param(66.0, [[1, 1, 1], [1, 1, 1], [1, 1, 1]], id="all-that-there-is"),
        pytest.param(99.0, [[1, 1, 1], [1, 1, 1], [1, 1, 1]], id="more-than-can-be-done"),
    ],
)
def test_steps_are_taken_by_their_carbon_for_the_work(
    work: float, shares: list[list[float]]
) -> None:
    assert scaled([260.0, 100.0, 130.0], work) == shares


def test_of_equal_steps_the_earliest_slot_comes_first() -> None:
    assert scaled([100.0, 100.0, 100.0], 15.0) == [[1, 0, 0], [0.5, 0, 0], [0, 0, 0]]


def test_with_one_size_a_job_pauses_and_resumes_in_the_cleanest_slots() -> None:
    assert scaled([300.0, 100.0, 400.0, 200.0], 25.0, sizes=1) == [[0.5], [1], [0], [1]]


def test_a_clean_slot_without_any_carbon_is_used_to_the_full() -> None:
    assert scaled([1.0, 0.0], 22.0) == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    ("work_per_slot", "shares"),
    [
        # The second node is the better one, but nobody has a second node without a first.
        pytest.param([10.0, 40.0], [[0, 0], [1, 0.5]], id="steps-stay-in-order"),
        pytest.param([20.0, 20.0], [[0.25, 0], [1, 0]], id="a-step-without-gain-is-not-taken"),
        pytest.param([25.0, 20.0], [[0, 0], [1, 0]], id="nor-one-with-a-loss"),
        pytest.param([0.0, 25.0], [[0, 0], [0, 0]], id="nor-any-beyond-such-a-step"),
    ],
)
def test_odd_profiles(work_per_slot: list[float], shares: list[list[float]]) -> None:
    found = carbon_scaler(
        np.array([[200.0, 100.0]]), np.array(work_per_slot), POWER_W[:2], np.array([25.0])
    )
    assert found[0].tolist() == shares


def test_what_is_passed_stays_as_it_was() -> None:
    work = np.array([30.0, 12.0])
    carbon_scaler(np.ones((2, 4)), WORK, POWER_W, work)
    assert work.tolist() == [30.0, 12.0]


carbon_rows = st.lists(
    st.lists(st.integers(0, 900).map(float), min_size=6, max_size=6), min_size=1, max_size=5
)


@given(carbon_rows, st.floats(0.0, 150.0))
def test_the_work_is_done_for_the_least_carbon(rows: list[list[float]], work: float) -> None:
    carbon = np.array(rows)
    share = carbon_scaler(carbon, WORK, POWER_W, np.full(len(rows), work))
    gain, watts = np.diff(WORK, prepend=0.0), np.diff(POWER_W, prepend=0.0)
    assert ((share >= 0.0) & (share <= 1.0)).all()
    np.testing.assert_allclose(share.sum(axis=1) @ gain, min(work, 6 * 22.0), atol=1e-9)
    emitted = ((share @ watts) * carbon).sum(axis=1)
    for row, total in zip(carbon, emitted, strict=True):
        assert total == pytest.approx(least(row, gain, watts, work), abs=1e-6)


def least(carbon: Floats, gain: Floats, watts: Floats, work: float) -> float:
    """Return the least carbon of all steps sorted by cost, which with WORK are in order."""
    amounts = np.tile(gain, carbon.size)
    costs = np.outer(carbon, watts / gain).ravel()
    total = 0.0
    for place in np.argsort(costs):
        part = min(work, amounts[place])
        total += part * costs[place]
        work -= part
    return float(total)


@given(carbon_rows, st.floats(1.0, 132.0))
def test_a_batch_is_scaled_as_its_jobs_are(rows: list[list[float]], work: float) -> None:
    amounts = np.linspace(0.0, work, len(rows))
    whole = carbon_scaler(np.array(rows), WORK, POWER_W, amounts)
    for place, row in enumerate(rows):
        alone = carbon_scaler(np.array([row]), WORK, POWER_W, amounts[place : place + 1])
        np.testing.assert_array_equal(whole[place], alone[0])
