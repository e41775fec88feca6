"""The less time a start leaves to wait for a node, the emptier its zone has to be."""

import numpy as np
import pytest

from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.planning import plan_all
from tests.policies.planning.test_planning import MIDNIGHT_S, SLOT_S, grid, slot_of, work

CLEANER_BY_THE_SLOT = grid([900.0 - 100.0 * slot for slot in range(9)])
HOUR_S = 4 * SLOT_S


def chosen_slot(
    in_use: float,
    spare_s: float | None,
    *,
    cores: float = 1.0,
    node_share: float = 0.0,
    busy_share: float = 0.0,
) -> float:
    """Return the start of work with eight slots to wait, in a zone of 100 cores."""
    plan = CorePlan(np.array([100.0]), MIDNIGHT_S, SLOT_S, 200, busy_share=busy_share)
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + 20 * SLOT_S, in_use)
    asked = work(slack=8, cores=cores)._replace(spare_s=spare_s, node_share=node_share)
    [chosen] = plan_all(CLEANER_BY_THE_SLOT, plan, [asked], MIDNIGHT_S)
    return slot_of(chosen)


@pytest.mark.parametrize(
    ("in_use", "slot"),
    [
        pytest.param(0.0, 8, id="the-last-start-in-an-idle-zone"),
        pytest.param(26.0, 8, id="and-up-to-three-tenths-of-its-room"),
        pytest.param(28.0, 7, id="above-that-a-slot-is-left"),
        pytest.param(55.0, 6, id="half-of-the-spare-hour-is-left"),
        pytest.param(58.0, 5, id="then-more"),
        pytest.param(84.0, 4, id="the-whole-hour-in-a-busy-zone"),
        pytest.param(85.0, 0, id="a-full-zone-has-no-room-later"),
    ],
)
def test_the_fuller_a_zone_the_more_time_a_start_leaves(in_use: float, slot: int) -> None:
    assert chosen_slot(in_use, HOUR_S) == slot


@pytest.mark.parametrize(("spare_s", "slot"), [(0.0, 8), (HOUR_S, 4), (2 * HOUR_S, 0)])
def test_no_time_is_left_without_spare_time(spare_s: float, slot: int) -> None:
    assert chosen_slot(84.0, spare_s) == slot


def test_all_starts_may_take_all_room_where_no_spare_time_is_given() -> None:
    assert [chosen_slot(88.0, spare_s) for spare_s in (None, 0.0)] == [8, 0]


@pytest.mark.parametrize("cores", [1.0, 40.0, 85.0])
def test_an_idle_zone_has_room_for_all_that_it_may_be_planned_to(cores: float) -> None:
    assert chosen_slot(0.0, HOUR_S, cores=cores) == 8


def test_memory_needs_spare_time_as_cores_do() -> None:
    plan = CorePlan(np.array([100.0]), MIDNIGHT_S, SLOT_S, 200, memory_bytes=np.array([100.0]))
    plan.keep(0, MIDNIGHT_S, MIDNIGHT_S + 20 * SLOT_S, 0.0, memory_bytes=55.0)
    asked = work(slack=8)._replace(spare_s=HOUR_S, memory_bytes=1.0)
    [chosen] = plan_all(CLEANER_BY_THE_SLOT, plan, [asked], MIDNIGHT_S)
    assert slot_of(chosen) == 6


@pytest.mark.parametrize(
    ("busy_share", "most"),
    [
        pytest.param(0.0, 84.0, id="idle"),
        pytest.param(0.7, 84.0, id="seven-tenths-busy"),
        pytest.param(0.775, 71.0, id="between-them-the-mean"),
        pytest.param(0.85, 57.0, id="busy"),
        pytest.param(1.5, 57.0, id="overcommitted"),
    ],
)
def test_a_cluster_that_was_busy_keeps_more_room_for_work_that_nobody_knows_yet(
    busy_share: float, most: float
) -> None:
    def later(in_use: float) -> bool:
        return chosen_slot(in_use, 0.0, busy_share=busy_share) > 0

    assert later(most) and not later(most + 1.5)


@pytest.mark.parametrize(
    ("node_share", "most"),
    [
        pytest.param(0.2, 57.0, id="small-enough"),
        pytest.param(0.3, 39.0, id="three-tenths-of-a-node"),
        pytest.param(0.4, 19.0, id="two-fifths"),
        pytest.param(0.5, 8.0, id="half-a-node"),
        pytest.param(1.0, 8.0, id="a-whole-node"),
    ],
)
def test_in_a_busy_cluster_the_largest_pods_need_an_emptier_zone(
    node_share: float, most: float
) -> None:
    def later(in_use: float, busy_share: float) -> bool:
        return chosen_slot(in_use, 0.0, node_share=node_share, busy_share=busy_share) > 0

    assert later(most, 0.9) and not later(most + 2.0, 0.9)
    assert later(84.0, 0.6)
