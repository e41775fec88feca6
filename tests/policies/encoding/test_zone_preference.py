"""Nodes of the zone in which a run was planned lead, and keep their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from greensched_policies.encoding.zone_preference import prefer_zone

COSTS = st.floats(-8.0, 8.0, width=32)


def test_nodes_of_the_zone_are_a_tenth_cheaper_and_all_keep_their_distance() -> None:
    cost = np.array([1.0, 1.05, 4.0, 3.0], np.float32)
    there = np.array([False, True, True, False])
    assert prefer_zone(cost, there) == pytest.approx([1.0, 0.945, 3.895, 3.0])


def test_a_zone_that_is_dearer_by_more_than_a_tenth_does_not_lead() -> None:
    cost = np.array([1.0, 1.12], np.float32)
    preferred = prefer_zone(cost, np.array([False, True]))
    assert preferred.argmin() == 0


def test_of_negative_costs_a_tenth_counts_too() -> None:
    cost = np.array([-10.0, -9.5], np.float32)
    assert prefer_zone(cost, np.array([False, True])) == pytest.approx([-10.0, -10.5])


@pytest.mark.parametrize("there", [True, False])
def test_without_a_choice_between_zones_nothing_changes(there: bool) -> None:
    cost = np.array([1.0, 2.0], np.float32)
    assert prefer_zone(cost, np.array([there, there])).tolist() == [1.0, 2.0]


@given(arrays(np.float32, 6, elements=COSTS), arrays(np.bool_, 6))
def test_within_the_zone_and_outside_of_it_the_best_node_stays_the_best(
    cost: np.ndarray, there: np.ndarray
) -> None:
    preferred, rounding = prefer_zone(cost, there), 1e-5 * (1.0 + float(np.abs(cost).max()))
    assert (preferred[~there] == cost[~there]).all()
    if there.any():
        assert cost[there][np.argmin(preferred[there])] <= cost[there].min() + rounding
