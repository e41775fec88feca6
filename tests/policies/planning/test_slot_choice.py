"""The slots that are chosen in numpy are those of the recursion that the simulator compiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs import pausing
from greensched_policies.planning.slot_choice import cheapest_slots, choose_slots

costs = st.one_of(
    st.lists(st.integers(-5, 20).map(float), min_size=1, max_size=24),
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=24),
)
restarts = st.sampled_from([0.0, 0.3, 2.0, np.inf])


@given(costs, st.integers(1, 24), restarts, st.booleans())
def test_the_recursion_is_the_same_for_all_that_may_be_left_at_once(
    told: list[float], needed: int, restart: float, is_running: bool
) -> None:
    cost, needed = np.array(told), min(needed, len(told))
    wanted, _ = pausing.cheapest_slots(cost, needed, restart, is_running)
    assert cheapest_slots(cost, needed, restart, is_running=is_running).tolist() == wanted.tolist()


@given(
    costs,
    st.floats(100.0, 20_000.0),
    st.sampled_from([0.0, 60.0, 700.0, 2000.0]),
    restarts,
    st.sampled_from([0.0, 1.0, 99.0]),
    st.booleans(),
)
def test_the_choice_and_its_cost_are_the_same(
    told: list[float],
    runtime_s: float,
    restart_s: float,
    restart: float,
    most: float,
    is_running: bool,
) -> None:
    asked = (np.array(told), runtime_s, 900.0, restart_s, restart, most)
    wanted, total = pausing.planned_slots(*asked, is_running)
    chosen, found = choose_slots(*asked, is_running=is_running)
    assert chosen.tolist() == wanted.tolist()
    assert found == pytest.approx(total)
