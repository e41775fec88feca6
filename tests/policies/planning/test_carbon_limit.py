"""No wait for dirtier power unless a policy allows it, for this price per tonne or for any."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.encoding.carbon_limit import is_within
from greensched_policies.encoding.weights import (
    NO_CARBON_LIMIT,
    NOT_ABOVE_NOW,
    UNLIMITED,
    CarbonLimit,
    Weights,
)
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import (
    Chosen,
    StartReason,
    StartRequest,
    Thresholds,
)
from greensched_policies.planning.slot_planning import Interruptible, SlotPlan, plan_slots
from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start

SLOT_S = 900.0
MONEY = Weights(1.0, 0.0, 0.0)
CLEAN_NOW = [33.0, 33.0, 105.0, 60.0, 33.0]
DEAR_NOW = [100.0, 100.0, 36.0, 50.0, 80.0]
STRICT = CarbonLimit(NOT_ABOVE_NOW)

# A run of one slot at 4 kW takes 1 kWh: grams are g/kWh, and its cost is a thousandth of the price.
POWER_W = 4000.0


def chosen(
    carbon: list[float],
    price: list[float],
    limit: CarbonLimit,
    *,
    watts: tuple[float, ...] = (POWER_W,),
    busy: tuple[int, ...] = (),
    kept_start_s: float | None = None,
) -> Chosen:
    """Return the choice of work that may wait to the last slot; `busy` slots have no room."""
    zones = len(watts)
    values = np.array(carbon).reshape(zones, -1), np.array(price).reshape(zones, -1)
    outlook = outlook_of(0.0, SLOT_S, *values)
    plan = CorePlan(np.full(zones, 10.0), 0.0, SLOT_S, values[0].shape[1])
    for slot in busy:
        plan.keep(0, slot * SLOT_S, (slot + 1) * SLOT_S, 10.0)
    asked = StartRequest(
        np.full(zones, SLOT_S), 100 * SLOT_S, 1.0, np.array(watts), MONEY,
        WHEN_RULES["planned-window"], limit,
    )  # fmt: skip
    return choose_start(outlook, plan, asked._replace(kept_start_s=kept_start_s), 0.0)


@pytest.mark.parametrize(
    ("per_tonne", "slot", "why"),
    [
        pytest.param(NOT_ABOVE_NOW, 4, StartReason.PLANNED, id="no-sum-is-worth-it"),
        # 64 of 1,000 are saved for 72 g more: 889 per tonne.
        pytest.param(888.0, 2, StartReason.PLANNED, id="saves-more-than-the-price"),
        pytest.param(890.0, 3, StartReason.PLANNED, id="saves-less-so-the-next-that-is-worth-it"),
        # 50 for 27 g: 1,852 per tonne.
        pytest.param(1_853.0, 4, StartReason.PLANNED, id="only-the-equally-clean-one"),
        pytest.param(0.0, 2, StartReason.PLANNED, id="carbon-costs-nothing"),
        pytest.param(NO_CARBON_LIMIT, 2, StartReason.PLANNED, id="no-limit"),
    ],
)
def test_a_cheaper_hour_may_be_dirtier_only_as_far_as_the_limit_allows(
    per_tonne: float, slot: int, why: StartReason
) -> None:
    found = chosen(CLEAN_NOW, DEAR_NOW, CarbonLimit(per_tonne / 1e6))
    assert (found.start_s / SLOT_S, found.why) == (slot, why)


def test_where_all_later_hours_are_dirtier_it_starts_now_and_the_limit_is_the_reason() -> None:
    found = chosen([33.0, 105.0, 60.0], [100.0, 36.0, 50.0], STRICT)
    assert (found.start_s, found.why) == (0.0, StartReason.CARBON_LIMIT)


def test_a_zone_whose_nodes_take_more_power_is_dirtier_at_equal_carbon_intensity() -> None:
    """The best zone now is the frugal one, and the cheap hour is in the other."""
    carbon, price = [50.0, 50.0, 50.0, 50.0], [60.0, 60.0, 60.0, 20.0]
    watts = POWER_W, 2.0 * POWER_W
    assert chosen(carbon, price, STRICT, watts=watts).start_s == 0.0
    assert chosen(carbon, price, UNLIMITED, watts=watts).start_s == SLOT_S


def test_where_now_has_no_room_the_first_start_with_room_counts_as_now() -> None:
    """The clean zone is full for two slots: let go now, it would run in the third, at 60 g."""
    carbon, price = [10.0, 10.0, 60.0, 50.0, 55.0], [90.0, 90.0, 90.0, 80.0, 20.0]
    found = chosen(carbon, price, STRICT, busy=(0, 1))
    assert found.start_s == 4 * SLOT_S
    assert (found.run.carbon_g, found.run_now.carbon_g) == pytest.approx((55.0, 60.0))
    assert chosen(carbon, price, STRICT).start_s == 0.0


def test_a_plan_that_has_become_dirtier_than_now_does_not_stay() -> None:
    kept_s = 2 * SLOT_S
    assert chosen(CLEAN_NOW, DEAR_NOW, UNLIMITED, kept_start_s=kept_s).start_s == kept_s
    assert chosen(CLEAN_NOW, DEAR_NOW, STRICT, kept_start_s=kept_s).start_s == 4 * SLOT_S


@pytest.mark.parametrize(
    ("at_arrival_g", "busy", "slot"),
    [
        pytest.param(50.0, (), 2, id="cleaner-hours-are-left"),
        pytest.param(50.0, (2,), 3, id="of-which-one-has-room"),
        pytest.param(30.0, (), 0, id="none-is-left"),
        pytest.param(50.0, (2, 3), 0, id="none-with-room-is-left"),
        pytest.param(200.0, (), 0, id="now-is-cleaner-than-on-arrival"),
    ],
)
def test_what_waited_starts_no_dirtier_than_it_had_on_arrival_while_it_can(
    at_arrival_g: float, busy: tuple[int, ...], slot: int
) -> None:
    """Now is the cheapest hour, and dirty: on arrival it was excluded, so it still is."""
    limit = CarbonLimit(NOT_ABOVE_NOW, at_arrival_g)
    found = chosen([105.0, 90.0, 40.0, 45.0], [20.0, 60.0, 61.0, 62.0], limit, busy=busy)
    assert found.start_s / SLOT_S == slot


def test_without_carbon_data_money_alone_decides() -> None:
    unknown, watts = [np.nan] * 5, (POWER_W, 2.0 * POWER_W)
    assert chosen(unknown, DEAR_NOW, STRICT).start_s == 2 * SLOT_S
    cheap_elsewhere = [60.0, 60.0, 60.0, 20.0]
    found = chosen([np.nan] * 4, cheap_elsewhere, STRICT, watts=watts)
    assert (found.start_s, found.run.zone) == (SLOT_S, 1)


def paused(limit: CarbonLimit) -> SlotPlan | None:
    """Return the slots of running work of two slots whose cheap hours are dirty."""
    outlook = outlook_of(0.0, SLOT_S, np.array([CLEAN_NOW * 2]), np.array([DEAR_NOW * 2]))
    asked = Interruptible(
        np.array([2 * SLOT_S]), 6 * SLOT_S, 1.0, np.array([POWER_W]), MONEY,
        WHEN_RULES["cheapest-window"], restart_s=60.0, most_restarts=3.0, running_in=0, limit=limit,
    )  # fmt: skip
    plan = CorePlan(np.array([10.0]), 0.0, SLOT_S, 10)
    return plan_slots(outlook, plan, asked, 0.0, thresholds=Thresholds())


def test_running_work_is_not_suspended_for_dirtier_hours() -> None:
    allowed = paused(UNLIMITED)
    assert allowed is not None and allowed.chosen.start_s == 2 * SLOT_S
    assert paused(STRICT) is None


GRAMS = st.lists(st.floats(0.0, 900.0), min_size=1, max_size=20)


@given(GRAMS, st.data())
def test_whatever_is_forecast_no_start_is_dirtier_than_now_or_than_on_arrival(
    carbon: list[float], data: st.DataObject
) -> None:
    size = len(carbon)
    price = data.draw(st.lists(st.floats(-90.0, 300.0), min_size=size, max_size=size))
    busy = tuple(data.draw(st.sets(st.integers(0, size - 1))))
    at_arrival_g = data.draw(st.sampled_from([np.inf, 0.0, 50.0, max(carbon)]))
    found = chosen(carbon, price, CarbonLimit(NOT_ABOVE_NOW, at_arrival_g), busy=busy)
    if found.start_s:
        now_g = found.run_now.carbon_g or 0.0
        assert (found.run.carbon_g or 0.0) <= now_g * (1.0 + 1e-6)
        with_room = [gram for slot, gram in enumerate(carbon) if slot not in busy]
        if any(gram <= at_arrival_g for gram in with_room):
            assert (found.run.carbon_g or 0.0) <= at_arrival_g * (1.0 + 1e-6)


@given(st.floats(0.0, 900.0), st.floats(0.0, 900.0), st.floats(0.0, 1e-3), st.floats(-1.0, 1.0))
def test_a_dirtier_run_is_allowed_if_it_saves_the_price_of_its_grams(
    now_g: float, carbon_g: float, price_per_g: float, saved: float
) -> None:
    allowed = is_within(carbon_g, saved, now_g, CarbonLimit(price_per_g))
    extra_g = carbon_g - now_g
    assert allowed == (extra_g <= 1e-6 * now_g or price_per_g * extra_g <= saved)
