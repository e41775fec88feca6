from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.ledger_records import Amounts, LedgerRecord, Subject, What
from greensched_operator.objects.green_policy import Budget, BudgetPeriod
from greensched_operator.planning.budgets import Budgets

NOON = datetime.fromisoformat("2026-11-21T12:00:00+00:00").timestamp()
DAY_S = 86_400.0
MIDNIGHT = datetime.fromisoformat("2026-11-22T00:00:00+00:00").timestamp()
KWH = 3.6e6
OPEN = float("-inf")


def record(what: What, at: float, *, is_shadow: bool = False) -> LedgerRecord:
    return LedgerRecord(
        what=what,
        at=at,
        subject=Subject(kind="Job", namespace="team", name="train", uid=str(at)),
        is_shadow=is_shadow,
        planned=Amounts(energy_j=10 * KWH, carbon_g=3_000.0),
    )


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


def test_after_a_restart_the_ledger_tells_what_was_started() -> None:
    budgets = Budgets()
    budgets.recall(
        [
            record(What.RELEASED, NOON - 7200.0),
            record(What.RELEASED, NOON - 3600.0, is_shadow=True),
        ]
    )
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=10.0), NOON) == MIDNIGHT
    assert budgets.opens_s("team", Budget(BudgetPeriod.DAY, energy_kwh=10.1), NOON) == OPEN
