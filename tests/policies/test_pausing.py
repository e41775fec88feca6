"""Which slots work runs in that may be suspended, and what the pause rules ask for it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.catalogue import PAUSE_RULES
from greensched_policies.pausing import PauseColumns, cheapest_slots, planned_slots, restarts

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
def test_the_first_stretch_is_no_restart_but_for_work_that_runs(told: str, again: int) -> None:
    chosen = np.array([mark == "#" for mark in told])
    assert restarts(chosen, False) == again
    assert restarts(chosen, True) == again + (told[0] == "." and "#" in told)
