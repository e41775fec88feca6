"""Nodes of the zone in which a run was planned lead, and keep their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from greensched_policies.encoding.zone_preference import MARGIN, prefer_zone

COSTS = st.floats(-8.0, 8.0, width=32)


def test_the_zones_cheapest_node_leads_by_a_tenth_and_the_others_keep_their_distance() -> None:
    cost = np.array([1.0, 2.0, 4.0, 3.0], np.float32)
    there = np.array([False, True, True, False])
    assert prefer_zone(cost, there) == pytest.approx([1.0, 0.8, 2.8, 3.0])


def test_a_zone_that_is_cheapest_already_gets_only_the_lead() -> None:
    cost = np.array([1.0, 2.0], np.float32)
    assert prefer_zone(cost, np.array([True, False])) == pytest.approx([0.8, 2.0])


@pytest.mark.parametrize("there", [True, False])
def test_without_a_choice_between_zones_nothing_changes(there: bool) -> None:
    cost = np.array([1.0, 2.0], np.float32)
    assert prefer_zone(cost, np.array([there, there])).tolist() == [1.0, 2.0]


@given(arrays(np.float32, 6, elements=COSTS), arrays(np.bool_, 6))
def test_the_best_node_is_in_the_zone_and_the_order_within_it_stays(
    cost: np.ndarray, there: np.ndarray
) -> None:
    preferred = prefer_zone(cost, there)
    assert (preferred[~there] == cost[~there]).all()
    if there.any() and not there.all():
        others = float(np.abs(cost).max()) * MARGIN
        assert preferred[there].min() <= cost[~there].min() + 1e-5 * (1.0 + others)
        first = cost[there][np.argmin(preferred[there])]
        assert first <= cost[there].min() + 1e-5 * (1.0 + others)
