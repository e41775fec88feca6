"""When all is planned again: earlier plans stay while they have room, whatever is better now."""

from typing import Any

import numpy as np
import pytest

from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.planning import Chosen, Kept, StartRequest, plan_again
from tests.policies.planning.test_planning import MIDNIGHT_S, SLOT_S, empty, grid, slot_of, work

GRID = grid([500.0, 300.0, 100.0, 200.0, 400.0, 450.0])


def at(slot: float) -> float:
    """Return the begin of a slot."""
    return MIDNIGHT_S + slot * SLOT_S


def kept_at(slot: int, *, zone: int = 0, seeks_room: bool = False) -> Kept:
    return Kept(zone, at(slot), at(slot + 1), seeks_room)


def planned_again(kept: Kept | None, plan: CorePlan, asked: StartRequest) -> Chosen | None:
    [found] = plan_again(GRID, plan, [asked], [kept], MIDNIGHT_S)
    return found


def test_an_earlier_plan_stays_though_another_start_is_better_now() -> None:
    plan = empty(10.0)
    assert planned_again(kept_at(3), plan, work(cores=2.0)) is None
    assert plan.cores[0, :5].tolist() == [0.0, 0.0, 0.0, 2.0, 0.0]


def test_work_without_an_earlier_plan_gets_one() -> None:
    found = planned_again(None, empty(10.0), work())
    assert found is not None and slot_of(found) == 2


@pytest.mark.parametrize("change", [
    pytest.param({"cores": 8.5}, id="others-have-its-room"),
    pytest.param({"runs_s": np.array([np.inf, SLOT_S])}, id="no-node-of-its-zone-takes-it"),
])  # fmt: skip
def test_an_earlier_plan_that_cannot_be_kept_is_made_anew(change: dict[str, Any]) -> None:
    plan = empty(10.0, 10.0)
    plan.keep(0, at(3), at(4), 1.0)
    asked = work(**({"runs_s": np.full(2, SLOT_S)} | change))
    outlook = grid([500.0] * 6, [500.0, 300.0, 100.0, 200.0, 400.0, 450.0])
    [found] = plan_again(outlook, plan, [asked], [kept_at(3)], MIDNIGHT_S)
    assert found is not None and (slot_of(found), found.run.zone) == (2, 1)


def test_a_start_that_is_past_is_planned_anew() -> None:
    assert planned_again(Kept(0, at(-1), at(0)), empty(10.0), work()) is not None


@pytest.mark.parametrize(("free_from", "stays"), [(1, False), (2, False), (3, True), (4, False)])
def test_work_that_waits_for_room_is_planned_anew_once_there_is_room_before(
    free_from: int, stays: bool
) -> None:
    plan = empty(10.0)
    plan.keep(0, at(0), at(free_from), 9.0)
    found = planned_again(kept_at(3, seeks_room=True), plan, work(cores=2.0))
    assert (found is None) == stays


def test_the_most_urgent_keeps_its_room_before_others_are_planned() -> None:
    plan = empty(10.0)
    asked = [work(cores=6.0, slack=8), work(cores=6.0, slack=4)]
    late, urgent = plan_again(GRID, plan, asked, [None, kept_at(2)], MIDNIGHT_S)
    assert urgent is None
    assert late is not None and slot_of(late) == 3


@pytest.mark.parametrize(("cores", "slot"), [(85.0, 1), (86.0, 0), (90.0, 0)])
def test_later_starts_leave_a_twentieth_of_the_room(cores: float, slot: int) -> None:
    """A start now may take nine tenths of a zone, a later one 95 % of that."""
    asked = work(cores=cores, slack=1)._replace(spare_s=0.0)
    [found] = plan_again(GRID, empty(100.0), [asked], [None], MIDNIGHT_S)
    assert found is not None and slot_of(found) == slot


def test_a_kept_start_may_take_what_later_starts_leave() -> None:
    """Else plans would change whenever a run takes longer than estimated."""
    asked = work(cores=88.0, slack=4)._replace(spare_s=0.0)
    assert planned_again(kept_at(2), empty(100.0), asked) is None
