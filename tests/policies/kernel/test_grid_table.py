"""Means over intervals by running sums, against the integral written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.kernel.grid_means import means_over, step_at
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable, grid_table, in_parts

HOUR_S = 3600.0


def table(times_s: list[float], carbon: list[float], price: list[float] | None = None) -> GridTable:
    """Return a table of one zone."""
    return grid_table(
        np.array([0, len(times_s)]),
        np.array(times_s),
        np.array(carbon),
        np.array(carbon if price is None else price),
    )


def by_the_second(times_s: list[float], values: list[float], begin_s: int, end_s: int) -> float:
    """Return the mean of the values that hold at each second."""
    held = [
        values[max(int(np.searchsorted(times_s, second, side="right")) - 1, 0)]
        for second in range(begin_s, end_s)
    ]
    return float(np.mean(held))


def test_a_mean_weighs_each_value_by_the_time_it_holds() -> None:
    found = means_over(table([0.0, 3600.0, 7200.0], [100.0, 200.0, 400.0]), 1800.0, 9000.0)
    assert found[CARBON, 0] == (1800 * 100 + 3600 * 200 + 1800 * 400) / 7200


def test_carbon_and_price_have_means_of_their_own() -> None:
    found = means_over(table([0.0, 3600.0], [100.0, 300.0], [-20.0, 60.0]), 0.0, 7200.0)
    assert found[:, 0].tolist() == [200.0, 20.0]


def test_an_empty_interval_has_the_value_that_holds_then() -> None:
    known = table([0.0, 3600.0], [100.0, 300.0])
    assert means_over(known, 3600.0, 3600.0)[CARBON, 0] == 300.0
    assert means_over(known, 3599.0, 3599.0)[CARBON, 0] == 100.0


def test_the_last_value_holds_for_ever_and_the_first_before() -> None:
    known = table([0.0, 3600.0], [100.0, 300.0])
    assert means_over(known, 1e6, 2e6)[CARBON, 0] == 300.0
    assert means_over(known, -50.0, -10.0)[CARBON, 0] == 100.0


def test_an_interval_that_touches_a_gap_has_no_mean_and_its_neighbours_do() -> None:
    gap = table([0.0, 3600.0, 7200.0], [100.0, math.nan, 400.0], [1.0, 2.0, 3.0])
    assert math.isnan(means_over(gap, 3000.0, 4000.0)[CARBON, 0])
    assert math.isnan(means_over(gap, 0.0, 9000.0)[CARBON, 0])
    assert means_over(gap, 0.0, 3600.0)[CARBON, 0] == 100.0
    assert means_over(gap, 7200.0, 9000.0)[CARBON, 0] == 400.0
    assert means_over(gap, 0.0, 7200.0)[PRICE, 0] == 1.5


def test_each_zone_has_its_own_steps_even_or_not() -> None:
    two = grid_table(
        np.array([0, 2, 5]),
        np.array([0.0, 3600.0, 0.0, 1000.0, 5000.0]),
        np.array([10.0, 30.0, 1.0, 2.0, 3.0]),
        np.zeros(5),
    )
    assert two.per_step.tolist() == [1 / 3600.0, 0.0]
    assert means_over(two, 0.0, 7200.0)[CARBON].tolist() == [
        20.0,
        pytest.approx((1000 * 1 + 4000 * 2 + 2200 * 3) / 7200),
    ]


@given(st.integers(0, 60), st.sampled_from([0.1, 900.0, 3600.0, 1 / 3]))
def test_a_step_begins_at_its_very_time(step: int, length_s: float) -> None:
    times_s = [number * length_s for number in range(61)]
    known = table(times_s, [0.0] * 61)
    assert step_at(known, 0, times_s[step]) == step
    before = np.nextafter(times_s[step], -1.0)
    assert step_at(known, 0, before) == max(step - 1, 0)


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=8),
    st.data(),
    st.integers(0, 900),
    st.integers(1, 900),
)
def test_means_agree_with_counting_the_seconds(
    widths: list[int], data: st.DataObject, begin_s: int, length_s: int
) -> None:
    times_s = [float(each) for each in np.cumsum([0, *widths])]
    numbers = st.floats(-500, 900)
    values = data.draw(st.lists(numbers, min_size=len(times_s), max_size=len(times_s)))
    found = means_over(table(times_s, values), float(begin_s), float(begin_s + length_s))
    expected = by_the_second(times_s, values, begin_s, begin_s + length_s)
    assert found[CARBON, 0] == pytest.approx(expected, abs=1e-6)


def test_even_steps_are_cut_into_parts_and_others_are_left() -> None:
    cut = in_parts(
        grid_table(
            np.array([0, 2, 4, 7]),
            np.array([0.0, 3600.0, 0.0, 1000.0, 0.0, 900.0, 2700.0]),
            np.arange(7.0),
            np.zeros(7),
        ),
        900.0,
    )
    assert np.diff(cut.starts).tolist() == [8, 2, 3]
    assert cut.per_step.tolist() == [1 / 900.0, 1 / 1000.0, 0.0]
    assert cut.times_s[:8].tolist() == [900.0 * part for part in range(8)]
    assert cut.since_s[:8].tolist() == [0.0] * 4 + [3600.0] * 4
    assert cut.values[CARBON, :8].tolist() == [0.0] * 4 + [1.0] * 4


@given(
    st.lists(st.floats(-500, 900) | st.just(math.nan), min_size=2, max_size=6),
    st.floats(0, 25_000),
    st.floats(0, 25_000),
)
def test_cut_steps_have_the_same_means_to_the_last_digit(
    values: list[float], begin_s: float, length_s: float
) -> None:
    whole = table([HOUR_S * step for step in range(len(values))], values)
    cut = in_parts(whole, 900.0)
    end_s = begin_s + length_s
    np.testing.assert_array_equal(
        means_over(cut, begin_s, end_s), means_over(whole, begin_s, end_s)
    )
