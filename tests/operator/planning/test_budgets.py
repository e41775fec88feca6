from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.ledger_records import Amounts
from greensched_operator.objects.green_policy import Budget, BudgetPeriod
from greensched_operator.planning.budgets import Budgets

NOON = datetime.fromisoformat("2026-11-21T12:00:00+00:00").timestamp()
DAY_S = 86_400.0
MIDNIGHT = datetime.fromisoformat("2026-11-22T00:00:00+00:00").timestamp()
KWH = 3.6e6
OPEN = float("-inf")


@pytest.mark.parametrize(
    ("spent_kwh", "opens"),
    [
        pytest.param(9.999, OPEN, id="something-is-left"),
        pytest.param(10.0, MIDNIGHT, id="just-spent"),
    ],
)
def test_a_spent_budget_opens_with_the_next_period(spent_kwh: float, opens: float) -> None:
    budgets = Budgets()
    budgets.spend("team", NOON - 60.0, Amounts(energy_j=spent_kwh * KWH))
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=10.0), NOON) == opens


def test_carbon_has_a_budget_of_its_own() -> None:
    budgets = Budgets()
    budgets.spend("team", NOON, Amounts(energy_j=KWH, carbon_g=500.0))
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, carbon_kg=0.5), NOON) == MIDNIGHT
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=2.0), NOON) == OPEN


def test_what_others_or_yesterday_spent_does_not_count() -> None:
    budgets = Budgets()
    budgets.spend("others", NOON, Amounts(energy_j=100 * KWH))
    budgets.spend("team", NOON - 13 * 3600.0, Amounts(energy_j=100 * KWH))
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=10.0), NOON) == OPEN
    assert budgets.opens_s("team", None, NOON) == OPEN


@pytest.mark.parametrize(
    ("at_s", "opens"),
    [
        pytest.param(MIDNIGHT, MIDNIGHT + DAY_S, id="as-the-period-begins"),
        pytest.param(MIDNIGHT - 0.001, OPEN, id="a-moment-before"),
    ],
)
def test_a_period_begins_with_its_first_moment(at_s: float, opens: float) -> None:
    budgets = Budgets()
    budgets.spend("team", at_s, Amounts(energy_j=10 * KWH))
    day = Budget(BudgetPeriod.DAY, energy_kwh=10.0)
    assert budgets.opens_s("team", day, MIDNIGHT + 0.5 * DAY_S) == opens


@given(st.lists(st.floats(NOON - 31 * DAY_S, NOON), max_size=20), st.sampled_from(BudgetPeriod))
def test_what_the_starts_of_a_period_took_is_summed_up(
    starts_s: list[float], period: BudgetPeriod
) -> None:
    budgets = Budgets()
    for at_s in starts_s:
        budgets.spend("team", at_s, Amounts(carbon_g=1e3))
    span = period.span(NOON)
    taken_kg = float(sum(at_s >= span.begin for at_s in starts_s))
    assert budgets.opens_s("team", Budget(period, carbon_kg=taken_kg), NOON) == span.end
    assert budgets.opens_s("team", Budget(period, carbon_kg=taken_kg + 0.5), NOON) == OPEN


def test_the_next_leader_goes_on_with_what_was_written() -> None:
    first, day = Budgets(), Budget(BudgetPeriod.DAY, energy_kwh=10.0)
    first.spend("team", NOON, Amounts(energy_j=9 * KWH, carbon_g=3_000.0))
    first.spend("team", NOON - DAY_S, Amounts(energy_j=50 * KWH))
    first.opens_s("team", day, NOON)
    second = Budgets()
    second.spend("team", NOON, Amounts(energy_j=KWH))  # before it could read
    assert second.recall(first.everything(), NOON) == []
    assert second.opens_s("team", day, NOON) == MIDNIGHT
    assert second.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=10.1), NOON) == OPEN
    assert second.opens_s("team", Budget(BudgetPeriod.DAY, carbon_kg=3.0), NOON) == MIDNIGHT


def test_only_namespaces_with_a_budget_are_written_and_each_change_once() -> None:
    budgets, day = Budgets(), Budget(BudgetPeriod.DAY, energy_kwh=10.0)
    for namespace in ("team", "others"):
        budgets.spend(namespace, NOON, Amounts(energy_j=KWH, carbon_g=500.0))
    assert budgets.changes() == {}
    budgets.opens_s("team", day, NOON)
    changes = budgets.changes()
    assert changes == {"team": f"[[{int(NOON // DAY_S)},1.0,0.5]]"}
    budgets.spend("team", NOON, Amounts(energy_j=KWH))
    budgets.written(changes)
    assert budgets.changes().keys() == {"team"}, "it changed while it was written"
    budgets.written(budgets.changes())
    assert budgets.changes() == {}


@pytest.mark.parametrize("text", ["", "{}", "[[1, 2]]", '[["a", 1, 2]]', "[[1, null, 2]]"])
def test_a_use_that_cannot_be_read_is_named_and_the_others_count(text: str) -> None:
    budgets = Budgets()
    today = f"[[{int(NOON // DAY_S)}, 10, 0]]"
    assert budgets.recall({"odd": text, "team": today}, NOON) == ["odd"]
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=10.0), NOON) == MIDNIGHT
    assert budgets.opens_s("odd", Budget(BudgetPeriod.DAY, energy_kwh=10.0), NOON) == OPEN


def test_a_namespace_that_starts_nothing_for_a_month_is_forgotten_and_removed() -> None:
    budgets, day = Budgets(), Budget(BudgetPeriod.DAY, energy_kwh=10.0)
    for namespace in ("gone", "team"):
        budgets.opens_s(namespace, day, NOON)
        budgets.spend(namespace, NOON, Amounts(energy_j=KWH))
    budgets.written(budgets.changes())
    budgets.spend("team", NOON + 31 * DAY_S, Amounts(energy_j=KWH))
    assert "gone" in budgets.everything(), "its day may still be in the period"
    budgets.spend("team", NOON + 32 * DAY_S, Amounts(energy_j=KWH))
    assert budgets.everything().keys() == {"team"}
    changes = budgets.changes()
    assert changes["gone"] is None
    budgets.written(changes)
    assert budgets.changes() == {}


def test_what_is_forgotten_while_it_is_written_stays_forgotten() -> None:
    budgets, day = Budgets(), Budget(BudgetPeriod.DAY, energy_kwh=10.0)
    budgets.opens_s("gone", day, NOON)
    budgets.spend("gone", NOON, Amounts(energy_j=KWH))
    changes = budgets.changes()
    budgets.spend("team", NOON + 32 * DAY_S, Amounts(energy_j=KWH))
    budgets.written(changes)
    assert budgets.changes() == {"gone": None}


def test_a_use_too_old_to_count_is_removed_once() -> None:
    budgets, today = Budgets(), int(NOON // DAY_S)
    old, recent = f"[[{today - 32}, 5, 5]]", f"[[{today - 32}, 5, 5], [{today - 31}, 1, 1]]"
    assert budgets.recall({"gone": old, "team": recent}, NOON) == []
    assert budgets.changes() == {"gone": None}
    budgets.written({"gone": None})
    assert budgets.changes() == {}
