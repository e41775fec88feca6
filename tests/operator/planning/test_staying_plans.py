"""Without news, held work stays planned as it is: unless its room is gone, or it may not start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from greensched_operator.planning.outlooks import slot_begin
from greensched_operator.planning.situation import Planned, Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_policies.planning.planning import Running
from tests.operator.annotated_work import HOUR_S, NOW_S
from tests.operator.planning.test_start_planning import situation, waiting

CLEANER = [100.0] * 4 + [50.0] * 92  # than when it was planned
FULL_FOR_3_H = Running(0, slot_begin(NOW_S) + 3 * HOUR_S, 64.0)


def planned_in(here: Situation, *names: str, gang: str = "") -> list[Planned]:
    return plan_starts([waiting(name, gang=gang) for name in names], here)[0]


def again(here: Situation, *plans: Planned) -> list[Planned]:
    """Plan the same work again, whose plans may stay."""
    staying = {one.waiting.work.uid: one for one in plans}
    return plan_starts([one.waiting for one in plans], replace(here, staying=staying))[0]


def test_a_plan_stays_though_another_start_is_better_now() -> None:
    [first] = planned_in(situation(), "train")
    assert again(situation(CLEANER), first) == [first]
    [anew] = plan_starts([first.waiting], situation(CLEANER))[0]
    assert anew.start_s != first.start_s


def test_a_new_forecast_lets_nobody_take_the_room_of_others() -> None:
    def clean(first_g: float, second_g: float) -> Situation:
        """Return two clean half-hours, each with room for one workload."""
        return situation([500.0] * 4 + [first_g] * 2 + [second_g] * 2 + [500.0] * 88, cores=2.0)

    one, two = planned_in(clean(100.0, 104.0), "one", "two")
    assert one.start_s < two.start_s
    now = clean(112.0, 100.0)
    starts_s = {each.waiting.work.name: each.start_s for each in planned_in(now, "one", "two")}
    assert starts_s["one"] > starts_s["two"], "planned from nothing, they would swap"
    assert {each.start_s for each in again(replace(now, may_move=True), one, two)} == {
        one.start_s,
        two.start_s,
    }


def test_a_new_forecast_moves_what_gains_in_room_that_is_free() -> None:
    [first] = planned_in(situation(), "train")
    [moved] = again(replace(situation(CLEANER), may_move=True), first)
    assert moved.start_s < first.start_s


def test_a_gang_stays_together() -> None:
    first = planned_in(situation(), "one", "two", gang="both")
    assert again(situation(CLEANER), *first) == first


@pytest.mark.parametrize("change", [
    pytest.param({"running": (FULL_FOR_3_H,)}, id="others-have-its-room"),
    pytest.param({"opens_s": lambda _: NOW_S + 3.5 * HOUR_S}, id="its-budget-opens-later"),
    pytest.param({"zones_for": lambda _: frozenset({"B"})}, id="its-nodes-are-elsewhere-now"),
])  # fmt: skip
def test_a_plan_that_cannot_be_kept_is_made_anew(change: dict[str, Any]) -> None:
    [first] = planned_in(situation(), "train")
    [found] = again(replace(situation(), **change), first)
    assert found is not first


def test_a_plan_after_the_latest_start_is_made_anew() -> None:
    [first] = planned_in(situation(), "train")
    hurried = replace(first, waiting=waiting("train", deadline="1h"))
    [found] = again(situation(), hurried)
    assert found.start_s <= hurried.waiting.terms.latest_start_s


def test_a_start_whose_time_has_come_is_planned_anew() -> None:
    [first] = planned_in(situation(), "train")
    [found] = again(situation(), replace(first, start_s=NOW_S))
    assert found is not first
