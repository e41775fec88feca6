"""The compiled library chooses the slots that the plain function, uncompiled, chooses.

With several zones, the choice is compared with a run at once in the zone that is best for it.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs import pausing
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, CarbonLimit, Weights
from greensched_policies.library.functions import CHOICE_ZONE, NO_ZONE_YET
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.library_calls import choose_slots
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import Thresholds
from greensched_policies.planning.slot_planning import Interruptible, SlotPlan, plan_slots
from greensched_policies.rules.catalogue import WHEN_RULES

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


# The first zone is dear and dirty for two hours, then cheap and less dirty; the second one is clean
# at first.
FIRST = [(500.0, 100.0)] * 8 + [(300.0, 20.0)] * 32
SECOND = [(100.0, 50.0)] * 8 + [(400.0, 50.0)] * 32


def in_slots(weights: Weights, limit: CarbonLimit, cores_taken: float = 0.0) -> SlotPlan | None:
    """Return the plan of an hour of work that may wait; `cores_taken` of the second zone's ten."""
    carbon, price = np.array([FIRST, SECOND]).transpose((2, 0, 1))
    plan = CorePlan(np.array([10.0, 10.0]), 0.0, SLOT_S, 60)
    plan.keep(1, 0.0, 4 * 3600.0, cores_taken)
    work = Interruptible(
        np.array([3600.0, 3600.0]), 6 * 3600.0, 1.0, np.array([10.0, 10.0]), weights,
        WHEN_RULES["planned-window"], restart_s=60.0, most_restarts=5.0, limit=limit,
    )  # fmt: skip
    return plan_slots(outlook_of(0.0, SLOT_S, carbon, price), plan, work, 0.0,
                      thresholds=Thresholds())  # fmt: skip


def test_work_does_not_wait_for_more_carbon_than_a_run_at_once_in_another_zone() -> None:
    assert in_slots(Weights(1.0, 0.0, 0.0), CarbonLimit(np.inf)) is None  # planned in one piece


def test_a_wait_is_told_beside_a_run_at_once_in_the_zone_that_it_would_take() -> None:
    found = in_slots(Weights(1.0, 0.0, 0.0), CarbonLimit())
    assert found is not None
    run, now = found.chosen.run, found.chosen.run_now
    assert (run.zone, run.carbon_g_per_kwh, run.price_per_mwh) == (0, 300.0, 20.0)
    assert (now.zone, now.carbon_g_per_kwh, now.price_per_mwh) == (1, 100.0, 50.0)
    assert found.chosen.saving == pytest.approx(0.6)


def test_work_does_not_wait_for_less_than_it_saves_at_once_in_another_zone() -> None:
    found = in_slots(Weights(0.0, 1.0, 0.0), CarbonLimit(np.inf))
    assert found is not None
    assert (found.chosen.start_s, found.chosen.run.zone) == (0.0, 1)


def test_a_zone_without_room_now_is_none_for_a_run_at_once() -> None:
    found = in_slots(Weights(1.0, 0.0, 0.0), CarbonLimit(np.inf), cores_taken=9.5)
    assert found is not None
    assert (found.chosen.run_now.zone, found.chosen.run_now.carbon_g_per_kwh) == (0, 500.0)
    assert found.chosen.run.carbon_g_per_kwh == 300.0
