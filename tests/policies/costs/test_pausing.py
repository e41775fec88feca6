"""Which slots work runs in that may be suspended, and what the pause rules ask for it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.pausing import PauseColumns, cheapest_slots, planned_slots, restarts
from greensched_policies.rules.catalogue import PAUSE_RULES

WORK = PauseColumns(*(np.array([[each]]) for each in (90.0, 3600.0, 900.0)))


def slots(chosen: np.ndarray) -> str:
    """Return the slots as a row of marks, # where the work runs."""
    return "".join("#" if runs else "." for runs in chosen)


@pytest.mark.parametrize(("name", "asked"), [
    pytest.param("run-through", np.inf, id="run-through"),
    pytest.param("pause-freely", 0.0, id="pause-freely"),
    pytest.param("pause-if-worth", 0.1, id="pause-if-worth"),
])  # fmt: skip
def test_what_a_pause_rule_asks_for_a_restart(name: str, asked: float) -> None:
    assert PAUSE_RULES[name](WORK).tolist() == [[asked]]


@pytest.mark.parametrize(("restart", "is_running", "expected"), [
    pytest.param(0.0, False, "#.#..", id="the-cheapest-two"),
    pytest.param(1.0, False, "#.#..", id="a-restart-that-pays"),
    pytest.param(3.0, False, "##...", id="a-restart-that-does-not"),
    pytest.param(np.inf, False, "##...", id="no-restart"),
    pytest.param(np.inf, True, "##...", id="running-on"),
])  # fmt: skip
def test_the_cheapest_slots_of_five(restart: float, is_running: bool, expected: str) -> None:
    """Together the first two cost 6, the first and the third 3 and one restart at 2."""
    cost = np.array([1.0, 5.0, 2.0, 9.0, 9.0])
    assert slots(cheapest_slots(cost, 2, restart, is_running)[0]) == expected


def test_work_that_is_running_pays_for_a_later_start_too() -> None:
    cost = np.array([3.0, 2.0, 2.0])
    assert slots(cheapest_slots(cost, 2, 0.1, False)[0]) == ".##"
    assert slots(cheapest_slots(cost, 2, 0.1, True)[0]) == ".##"
    assert slots(cheapest_slots(cost, 2, 0.6, True)[0]) == "##."


def test_of_equal_slots_the_earliest_are_taken() -> None:
    assert slots(cheapest_slots(np.full(5, 7.0), 3, 0.0, False)[0]) == "###.."


costs = st.lists(st.integers(-5, 20).map(float), min_size=1, max_size=8)


@given(costs, st.integers(1, 8), st.sampled_from([0.0, 0.3, 2.0, np.inf]), st.booleans())
def test_no_other_choice_costs_less(
    told: list[float], needed: int, restart: float, is_running: bool
) -> None:
    cost, needed = np.array(told), min(needed, len(told))
    chosen, total = cheapest_slots(cost, needed, restart, is_running)
    assert chosen.sum() == needed

    def price(places: tuple[int, ...]) -> float:
        resumed = [
            place for place in places
            if place - 1 not in places
            and (place > 0 if is_running else place != places[0])
        ]  # fmt: skip
        if resumed and np.isinf(restart):
            return np.inf
        again = [restart * abs(float(cost[place])) for place in resumed]
        return float(cost[list(places)].sum()) + sum(again)

    every = itertools.combinations(range(cost.size), needed)
    assert total == pytest.approx(min(map(price, every)))
    assert price(tuple(np.flatnonzero(chosen).tolist())) == pytest.approx(total)


@pytest.mark.parametrize(("restart_s", "expected"), [
    pytest.param(0.0, "#.#.#.", id="restarts-take-no-time"),
    pytest.param(200.0, "#.#.#.", id="the-last-slot-has-room-for-them"),
    pytest.param(300.0, "#.#.#.", id="just"),
    pytest.param(301.0, "#.###.", id="one-more-slot-is-one-restart-less"),
    pytest.param(9000.0, "..###.", id="too-long-for-any"),
])  # fmt: skip
def test_slots_are_taken_for_the_restarts_too(restart_s: float, expected: str) -> None:
    """Two slots and a third of work; each restart takes so long beside it."""
    cost = np.array([1.0, 9.0, 1.0, 8.0, 1.0, 8.0])
    chosen, _ = planned_slots(cost, 2100.0, 900.0, restart_s, 0.0, 99.0, False)
    assert slots(chosen) == expected


def test_there_are_no_more_restarts_than_are_allowed() -> None:
    cost = np.array([1.0, 9.0, 1.0, 8.0, 1.0, 8.0])
    for most, expected in ((2.0, "#.#.#."), (1.9, "..###."), (0.0, "..###.")):
        assert slots(planned_slots(cost, 2700.0, 900.0, 0.0, 0.0, most, False)[0]) == expected


@pytest.mark.parametrize(("told", "again"), [
    ("###", 0), (".##", 0), ("#.#", 1), ("#.#.#", 2), ("....", 0)])  # fmt: skip
def test_the_first_run_segment_is_no_restart_but_for_work_that_runs(told: str, again: int) -> None:
    chosen = np.array([mark == "#" for mark in told])
    assert restarts(chosen, False) == again
    assert restarts(chosen, True) == again + (told[0] == "." and "#" in told)


def test_slots_that_differ_by_rounding_are_equal() -> None:
    cost = 600.0 + 1e-13 * np.array([3.0, 0.0, 2.0, 0.0, 1.0, 0.0])
    assert slots(cheapest_slots(cost, 3, 0.0, False)[0]) == "###..."
    assert slots(cheapest_slots(cost, 3, 0.0, True)[0]) == "###..."


@pytest.mark.parametrize("restart", [0.0, 2 / 3])
def test_pauses_that_cost_more_time_than_they_save_are_not_made(restart: float) -> None:
    """Each restart takes a slot and a third: slots 2 and 3 in one piece cost 100."""
    cost = np.array([50.0, 600.0, 40.0, 60.0, 600.0, 30.0, 500.0, 30.0])
    chosen, total = planned_slots(cost, 1800.0, 900.0, 1200.0, restart, 99.0, False)
    assert slots(chosen) == "..##...."
    assert total == pytest.approx(100.0)


def test_restarts_leave_as_much_of_the_last_slot_free_as_a_run_without_them() -> None:
    """Three slots and a bit of work; in the last slot only that bit is before the deadline."""
    cost = np.array([500.0, 500.0, 100.0, 100.0, 500.0, 100.0, 100.0])
    chosen, _ = planned_slots(cost, 2800.0, 900.0, 600.0, 0.0, 99.0, False)
    assert slots(chosen) != "..##.##"


worlds = st.tuples(costs, st.floats(100.0, 5000.0), st.sampled_from([0.0, 60.0, 700.0, 2000.0]))


@given(worlds, st.sampled_from([0.0, 0.3, np.inf]), st.booleans())
def test_there_is_time_for_all_restarts_and_pauses_never_cost_more_than_none(
    world: tuple[list[float], float, float], restart: float, is_running: bool
) -> None:
    told, runtime_s, restart_s = world
    cost = np.array(told)
    in_one = min(int(np.ceil(runtime_s / 900.0)), cost.size)
    chosen, total = planned_slots(cost, runtime_s, 900.0, restart_s, restart, 99.0, is_running)
    again = restarts(chosen, is_running)
    if again:
        last_s = in_one * 900.0 if chosen[-1] else runtime_s
        assert chosen.sum() * 900.0 >= last_s + again * restart_s - 1e-3
    through, least = planned_slots(cost, runtime_s, 900.0, restart_s, np.inf, 99.0, is_running)
    assert restarts(through, is_running) == 0
    assert total <= least + 1e-9 * abs(least)
