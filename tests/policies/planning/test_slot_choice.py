"""The compiled library chooses the slots that the plain function, uncompiled, chooses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs import pausing
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import NO_CARBON_LIMIT
from greensched_policies.library.functions import CHOICE_ZONE, NO_ZONE_YET
from greensched_policies.planning.library_calls import choose_slots

SLOT_S = 900.0
costs = st.one_of(
    st.lists(st.integers(-5, 20).map(float), min_size=1, max_size=24),
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=24),
)


def in_one_zone(cost: Floats, numbers: tuple[float, ...], running_in: int) -> list[bool] | None:
    """Return the library's slots in a single zone in which nothing but `cost` matters."""
    shape = (1, cost.size)
    slots = SlotColumns(*(np.zeros(shape) for _ in range(9)))
    seen = cost.reshape(shape).copy(), slots, np.ones((3, *shape)), np.array([cost.size])
    runtime_s, restart_s, most = numbers
    told = SLOT_S, restart_s, most, 0.0, np.nan, np.nan, 0.0, NO_CARBON_LIMIT, np.inf
    chosen, found = choose_slots(seen, np.array([[runtime_s], [1.0]]), told, running_in)
    return None if found[CHOICE_ZONE] == NO_ZONE_YET else chosen.tolist()


@pytest.mark.parametrize("running_in", [NO_ZONE_YET, 0])
@given(
    costs,
    st.floats(100.0, 20_000.0),
    st.sampled_from([0.0, 60.0, 700.0, 2000.0]),
    st.sampled_from([0.0, 1.0, 99.0]),
)
def test_the_choice_is_the_same(
    running_in: int, told: list[float], runtime_s: float, restart_s: float, most: float
) -> None:
    cost, is_running = np.array(told), running_in != NO_ZONE_YET
    found = in_one_zone(cost, (runtime_s, restart_s, most), running_in)
    if cost.size <= np.ceil(runtime_s / SLOT_S - 1e-9):
        assert found is None  # it may not wait
        return
    asked = (cost, runtime_s, SLOT_S, restart_s, restart_s / SLOT_S, most)
    assert found == pausing.planned_slots(*asked, is_running)[0].tolist()
