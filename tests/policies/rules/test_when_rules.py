"""Thresholds on when to start, reckoned by hand."""

import numpy as np
import pytest

from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.rules.catalogue import WHEN_RULES

QUARTER_S = 900.0


def starts(*rows: list[float], column: str) -> SlotColumns:
    """Return candidate starts whose `column` has these values, a row for each workload."""
    values = np.array(rows)
    slots = SlotColumns._make(np.ones(values.shape) for _ in SlotColumns._fields)
    wait_s = np.arange(values.shape[1]) * QUARTER_S + np.zeros(values.shape)
    return slots._replace(**{"wait_s": wait_s, column: values})


@pytest.mark.parametrize(
    ("name", "column"),
    [("clean-threshold", "carbon_at_start"), ("price-threshold", "price_at_start")],
)
@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        # Eleven values: their 30th percentile is the fourth lowest, 4.
        pytest.param([9, 8, 7, 4, 1, 2, 3, 5, 6, 10, 11], 3, id="the-first-at-the-percentile"),
        pytest.param([9, 8, 7, 5, 1, 2, 3, 4, 6, 10, 11], 4, id="not-the-first-just-above-it"),
        pytest.param([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 0, id="now-if-it-is-low-now"),
        # Three values: the 30th percentile lies between the lowest and the next, 160 of 100 … 200.
        pytest.param([300, 200, 100], 2, id="the-lowest-of-few"),
        pytest.param([5, 5, 5, 5], 0, id="now-if-all-are-alike"),
        pytest.param([3, -1, -2, -3], 3, id="below-zero"),
        pytest.param([7], 0, id="one-start-alone"),
    ],
)
def test_a_job_starts_when_the_value_is_first_low(
    name: str, column: str, values: list[float], chosen: int
) -> None:
    cost = WHEN_RULES[name](starts(values, column=column))
    assert int(np.argmin(cost[0])) == chosen


def test_what_is_high_costs_more_than_the_longest_wait_and_least_at_last() -> None:
    slots = starts([300.0, 200.0, 100.0], column="carbon_at_start")
    assert WHEN_RULES["clean-threshold"](slots).tolist() == [[3601.0, 2701.0, 1800.0]]


def test_each_workload_has_a_threshold_of_its_own() -> None:
    slots = starts([3.0, 2.0, 1.0], [30.0, 10.0, 20.0], column="carbon_at_start")
    cost = WHEN_RULES["clean-threshold"](slots)
    assert np.argmin(cost, axis=1).tolist() == [2, 1]


@pytest.mark.parametrize("name", WHEN_RULES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 9)])
def test_a_rule_gives_each_start_a_finite_cost(name: str, shape: tuple[int, int]) -> None:
    dice = np.random.default_rng(7)
    cost = WHEN_RULES[name](SlotColumns._make(dice.uniform(0.5, 2.0, (9, *shape))))
    assert cost.shape == shape
    assert cost.dtype == np.float64
    assert np.isfinite(cost).all()


@pytest.mark.parametrize("name", WHEN_RULES)
def test_a_rule_leaves_the_starts_as_they_were(name: str) -> None:
    slots = starts([3.0, 2.0, 1.0], column="carbon_at_start")
    before = [column.tobytes() for column in slots]
    WHEN_RULES[name](slots)[0, 0] = -7.0
    assert [column.tobytes() for column in slots] == before


# The overload of planned-window is relative to all that it is told at once.
@pytest.mark.parametrize("name", sorted(WHEN_RULES.keys() - {"planned-window"}))
def test_a_batch_costs_what_its_rows_cost(name: str) -> None:
    dice = np.random.default_rng(7)
    slots = SlotColumns._make(dice.uniform(0.5, 2.0, (3, 9)) for _ in SlotColumns._fields)
    whole = WHEN_RULES[name](slots)
    for row in range(3):
        alone = SlotColumns._make(column[row : row + 1] for column in slots)
        np.testing.assert_allclose(whole[row], WHEN_RULES[name](alone)[0])
