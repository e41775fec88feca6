"""Starts are weighed by time until the end, and zones by the energy that a run takes there."""

import numpy as np
import pytest

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import Outlook, outlook_of
from greensched_policies.planning.planning import StartReason, StartRequest
from greensched_policies.planning.slot_planning import Interruptible, plan_slots
from greensched_policies.rules.catalogue import WHEN_RULES
from tests.policies.planning.one_start import choose_start

SLOT_S = 900.0


def outlook(*zones: list[float]) -> Outlook:
    carbon = np.array(zones, float)
    return outlook_of(0.0, SLOT_S, carbon, np.full(carbon.shape, 50.0))


def request(
    runtime_s: list[float], power_w: list[float], performance: float = 0.0, slack: int = 3
) -> StartRequest:
    """Return work of which carbon counts, and time by `performance`."""
    weights = Weights(0.0, 1.0, performance)
    rule = WHEN_RULES["planned-window"]
    return StartRequest(runtime_s, slack * SLOT_S, 1.0, power_w, weights, rule)


def plan(zones: int) -> CorePlan:
    return CorePlan(np.full(zones, 100.0), 0.0, SLOT_S, 100)


@pytest.mark.parametrize(
    ("performance", "slot"),
    [
        # The mean carbon is 92.5, so 10 g are 0.108. The mean time until the end is 2.5 slots, so
        # waiting three slots costs 1.2 times the weight.
        pytest.param(0.0, 3, id="time-is-free"),
        pytest.param(0.08, 3, id="just-worth-the-wait"),
        pytest.param(0.10, 0, id="no-longer-worth-it"),
    ],
)
def test_work_waits_as_long_as_carbon_saves_more_than_time_costs(
    performance: float, slot: int
) -> None:
    grid = outlook([100.0, 100.0, 80.0 + 20.0, 90.0] + [100.0] * 20)
    found = choose_start(grid, plan(1), request([SLOT_S], [100.0], performance), 0.0)
    assert found.start_s == slot * SLOT_S


@pytest.mark.parametrize(
    ("watts", "zone"),
    [
        pytest.param([100.0, 100.0], 1, id="the-cleaner-grid"),
        pytest.param([100.0, 149.0], 1, id="its-nodes-draw-less-than-half-more"),
        pytest.param([100.0, 151.0], 0, id="they-draw-more-than-half-more"),
    ],
)
def test_a_zone_is_chosen_by_the_grams_of_the_run_not_by_those_of_a_kwh(
    watts: list[float], zone: int
) -> None:
    grid = outlook([300.0] * 24, [200.0] * 24)
    found = choose_start(grid, plan(2), request([SLOT_S, SLOT_S], watts), 0.0)
    assert found.run.zone == zone


@pytest.mark.parametrize(
    ("runtime_s", "performance", "zone"),
    [
        pytest.param([900.0, 1300.0], 0.0, 1, id="slower-but-fewer-grams"),
        pytest.param([900.0, 1400.0], 0.0, 0, id="so-slow-that-it-takes-more"),
        pytest.param([900.0, 1300.0], 1.0, 0, id="time-counts-too"),
    ],
)
def test_slow_nodes_cost_energy_and_time(
    runtime_s: list[float], performance: float, zone: int
) -> None:
    grid = outlook([300.0] * 24, [200.0] * 24)
    found = choose_start(grid, plan(2), request(runtime_s, [100.0, 100.0], performance), 0.0)
    assert found.run.zone == zone


def test_a_zone_that_cannot_take_the_work_changes_nothing() -> None:
    grid = outlook([300.0, 200.0] * 12, [1.0] * 24)
    alone = choose_start(
        outlook([300.0, 200.0] * 12), plan(1), request([900.0], [100.0], 0.01), 0.0
    )
    beside = choose_start(grid, plan(2), request([900.0, np.inf], [100.0, 1.0], 0.01), 0.0)
    assert (alone.start_s, beside.start_s) == (SLOT_S, SLOT_S)
    assert beside.run.zone == 0


def test_on_a_flat_grid_time_alone_holds_nothing_and_is_no_saving() -> None:
    found = choose_start(outlook([200.0] * 24), plan(1), request([900.0], [100.0], 1.0), 0.0)
    assert (found.start_s, found.saving, found.why) == (0.0, 0.0, StartReason.NOW_IS_BEST)


def test_a_zone_that_cannot_take_work_that_may_pause_is_not_shown_to_its_policy() -> None:
    """A model would answer what is infinite with no number, and a rule would serve for all."""
    seen: list[SlotColumns] = []

    def model(slots: SlotColumns) -> Floats:
        seen.append(slots)
        return slots.weighted_over_run

    work = Interruptible(
        runtime_s=np.array([np.inf, 4 * SLOT_S]), latest_s=8 * SLOT_S, cpu_cores=1.0,
        power_w=np.array([100.0, 100.0]), weights=Weights(0.0, 1.0, 0.0), when=model,
        restart_s=0.0, most_restarts=9.0,
    )  # fmt: skip
    grid = outlook([1.0] * 40, [300.0, 100.0] * 20)
    found = plan_slots(grid, plan(2), work, 0.0, thresholds=None)
    assert found is not None and found.chosen.run.zone == 1
    assert [np.isfinite(each).all() for each in seen[0]] == [True] * len(SlotColumns._fields)
    assert seen[0].wait_s.shape[0] == 1
