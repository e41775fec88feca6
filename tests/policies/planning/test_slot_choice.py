"""The compiled library chooses the slots that the same function, uncompiled, chooses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs import pausing
from greensched_policies.planning.library_calls import planned_slots

costs = st.one_of(
    st.lists(st.integers(-5, 20).map(float), min_size=1, max_size=24),
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=24),
)
restarts = st.sampled_from([0.0, 0.3, 2.0, np.inf])


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
    chosen, found = planned_slots(asked[0], asked[1:], is_running=is_running)
    assert chosen.tolist() == wanted.tolist()
    assert found == pytest.approx(total)
