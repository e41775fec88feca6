"""When empty nodes fall asleep, and what waking one adds to the cost of a placement."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.cost import NodeColumns, PlacementCost, ZoneColumns
from greensched_policies.costs.sleeping import SleepColumns, with_waking
from greensched_policies.rules.catalogue import SLEEP_RULES


def stays_awake_s(rule: str, saved_w: float, wake_s: float, wake_j: float) -> float:
    """Return how long one empty node stays awake by a rule."""
    columns = SleepColumns._make(np.array([[each]]) for each in (saved_w, wake_s, wake_j))
    return float(SLEEP_RULES[rule](columns)[0, 0])


@pytest.mark.parametrize(("rule", "seconds"), [
    pytest.param("stay-awake", math.inf, id="never"),
    pytest.param("sleep-at-once", 0.0, id="at-once"),
    pytest.param("sleep-after-10m", 600.0, id="ten-minutes"),
    # 120 s at 500 W above those asleep are what 80 W save in 750 s.
    pytest.param("sleep-at-break-even", 750.0, id="break-even"),
])  # fmt: skip
def test_a_node_stays_awake_for_as_long_as_its_rule_says(rule: str, seconds: float) -> None:
    assert stays_awake_s(rule, saved_w=80.0, wake_s=120.0, wake_j=60_000.0) == seconds


@pytest.mark.parametrize("rule", SLEEP_RULES)
def test_a_node_that_saves_nothing_never_sleeps(rule: str) -> None:
    assert stays_awake_s(rule, saved_w=0.0, wake_s=0.0, wake_j=0.0) == math.inf


@given(
    pause_s=st.floats(0.0, 1e6),
    saved_w=st.floats(1.0, 500.0),
    wake_j=st.floats(0.0, 1e6),
)
def test_break_even_takes_at_most_twice_what_knowing_the_pause_would(
    pause_s: float, saved_w: float, wake_j: float
) -> None:
    awake_s = min(stays_awake_s("sleep-at-break-even", saved_w, 60.0, wake_j), pause_s)
    taken_j = saved_w * awake_s + (wake_j if pause_s > awake_s else 0.0)
    assert taken_j <= 2 * min(saved_w * pause_s, wake_j) * (1 + 1e-9)


def node(*, is_empty: float) -> NodeColumns:
    """Return one node with a PUE of 1.5."""
    values = (10.0, 0.0, 64.0, 64.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.5, is_empty)
    return NodeColumns._make(np.array([[each]]) for each in values)


COST = PlacementCost._make(
    np.array([[each]]) for each in (100.0, 3600.0, 360_000.0, 0.005, 20.0, 0.5)
)
GRID = ZoneColumns(np.array([[200.0]]), np.array([[50.0]]))
SLEEPER = SleepColumns._make(np.array([[each]]) for each in (80.0, 120.0, 60_000.0))


def test_waking_a_node_adds_its_idle_watts_and_what_waking_takes() -> None:
    """80 W more for an hour and 60 kJ, at a PUE of 1.5: 120 W and 522 kJ, which are 0.145 kWh."""
    cost = with_waking(COST, node(is_empty=1.0), SLEEPER, GRID)
    assert float(cost.power_w[0, 0]) == 220.0
    assert float(cost.runtime_s[0, 0]) == 3720.0
    assert float(cost.energy_j[0, 0]) == pytest.approx(882_000.0)
    assert float(cost.carbon_g[0, 0]) == pytest.approx(20.0 + 0.145 * 200.0)
    assert float(cost.cost[0, 0]) == pytest.approx(0.005 + 0.145 * 0.05)
    assert cost.cpu_after is COST.cpu_after


def test_a_node_that_is_awake_for_others_costs_no_more_for_being_awake() -> None:
    awake = SLEEPER._replace(wake_s=np.zeros((1, 1)), wake_j=np.zeros((1, 1)))
    cost = with_waking(COST, node(is_empty=0.0), awake, GRID)
    for ours, theirs in zip(cost, COST, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_where_a_signal_has_no_data_waking_has_no_cost_either() -> None:
    cost = with_waking(
        COST, node(is_empty=1.0), SLEEPER, GRID._replace(price_per_mwh=np.array([[np.nan]]))
    )
    assert np.isnan(cost.cost).all()
    assert np.isfinite(cost.carbon_g).all()
