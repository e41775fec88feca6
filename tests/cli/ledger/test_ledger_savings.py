import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_cli.ledger.outcomes import WorkOutcome, is_late, is_overdue, outcomes_of
from greensched_cli.ledger.savings import (
    FEWEST,
    MOST_DRAWN,
    savings_courses,
    savings_figures,
    savings_interval,
    savings_of,
)
from greensched_cli.ledger.source import LedgerSpan, ReadLedger
from greensched_cli.ledger.tables import (
    decided_rows,
    losses_of,
    measured_rows,
    report_of,
    saved_rows,
    savings_change_text,
)
from greensched_core.ledger_records import (
    DELETED_WHILE_HELD,
    Amounts,
    LedgerRecord,
    Loss,
    LossReason,
    Subject,
    What,
)
from greensched_simulator.results.cells import Cell, ConfidenceInterval

PLANNED, RUN_NOW = Amounts(7.2e6, 100.0, 1.0), Amounts(7.2e6, 400.0, 2.0)
HOUR_S = 3_600.0


def told(what: What, at: float, uid: str | None = "u1", **others: Any) -> LedgerRecord:
    subject = Subject(kind="Job", namespace="ml", name=others.pop("name", "train"), uid=uid)
    known: dict[str, Any] = {"planned": PLANNED, "run_now": RUN_NOW, "currency": "EUR", **others}
    return LedgerRecord(what=what, at=at, subject=subject, **known)


def one(records: Sequence[LedgerRecord]) -> WorkOutcome:
    (outcome,) = outcomes_of(records)
    return outcome


def outcomes(pairs: Sequence[tuple[float, float]], namespace: str = "ml") -> list[WorkOutcome]:
    """Workloads that would have emitted the first and emitted the second of each pair, in kg."""
    base = one([told(What.RELEASED, 0.0)])
    return [
        replace(
            base, namespace=namespace, at=number * HOUR_S,
            run_now=Amounts(carbon_g=1e3 * before), took=Amounts(carbon_g=1e3 * after),
        )
        for number, (before, after) in enumerate(pairs)
    ]  # fmt: skip


def test_what_was_held_and_released_took_what_was_planned() -> None:
    outcome = one([told(What.HELD, 1.0), told(What.RELEASED, 5.0, reason="planned start")])
    assert (outcome.took, outcome.run_now) == (PLANNED, RUN_NOW)
    assert outcome.has_started and outcome.was_held and not outcome.is_measured
    assert outcome.release_reason == "planned start"


def test_energy_by_cpu_time_counts_and_is_not_called_measured() -> None:
    by_cpu_time = told(What.ENDED, 9.0, measured=Amounts(3.6e6, 60.0, 0.5), meter="kubelet")
    outcome = one([told(What.RELEASED, 5.0), by_cpu_time])
    assert outcome.took == Amounts(3.6e6, 60.0, 0.5)
    assert outcome.run_now.energy_j == 3.6e6, "the counterfactual at the same energy"
    assert (outcome.is_measured, outcome.is_by_cpu_time) == (False, True)
    assert measured_rows([outcome]) == []


def test_a_later_leader_does_not_change_what_running_at_once_would_have_taken() -> None:
    later = Amounts(7.2e6, 90.0, 0.9)  # by the clean hour in which it began to lead
    outcome = one([told(What.PLANNED, 1.0), told(What.PLANNED, 3.0, run_now=later),
                   told(What.RELEASED, 5.0, run_now=later)])  # fmt: skip
    assert (outcome.took, outcome.run_now) == (PLANNED, RUN_NOW)


def test_what_is_only_held_has_not_started() -> None:
    assert not one([told(What.HELD, 1.0), told(What.PLANNED, 2.0)]).has_started


def test_measured_energy_counts_on_both_sides() -> None:
    ended = told(What.ENDED, 9.0, measured=Amounts(energy_j=3.6e6))
    outcome = one([told(What.RELEASED, 5.0), ended])
    assert outcome.is_measured
    assert outcome.took == Amounts(3.6e6, 50.0, 0.5)
    assert outcome.run_now == Amounts(3.6e6, 200.0, 1.0)


def test_in_shadow_measured_energy_counts_but_not_the_carbon_of_the_run_that_went_on() -> None:
    measured = Amounts(energy_j=3.6e6, carbon_g=200.0, cost=1.0)
    watched = told(What.PLANNED, 1.0, is_shadow=True)
    outcome = one([watched, told(What.ENDED, 9.0, is_shadow=True, measured=measured)])
    assert (outcome.is_shadow, outcome.is_measured) == (True, True)
    assert outcome.took == Amounts(3.6e6, 50.0, 0.5), "the plan, not what ran at once"
    assert outcome.run_now == Amounts(3.6e6, 200.0, 1.0)


def test_estimated_and_measured_stand_beside_each_other_for_whom_both_are_known() -> None:
    records = [
        told(What.ENDED, 9.0, "u1", measured=Amounts(3.6e6, 80.0, None)),
        told(What.ENDED, 9.0, "u2", measured=Amounts(10.8e6, None, None)),
        told(What.ENDED, 9.0, "u3"),
    ]
    head, energy, carbon = measured_rows(outcomes_of(records))
    assert head[1:] == ("workloads", "estimated", "measured", "measured/estimated")
    assert energy == ("energy", "2", "4.00 kWh", "4.00 kWh", "1.00")
    assert carbon == ("carbon", "1", "0.10 kg", "0.080 kg", "0.80")


def test_without_a_meter_nothing_stands_beside_the_estimates() -> None:
    assert measured_rows(outcomes_of([told(What.ENDED, 9.0)])) == []


def test_measured_carbon_goes_before_its_estimate() -> None:
    outcome = one([told(What.ENDED, 9.0, measured=Amounts(3.6e6, 80.0, None))])
    assert outcome.took == Amounts(3.6e6, 80.0, 0.5)


def test_an_end_without_estimates_takes_those_of_the_plan() -> None:
    bare = told(What.ENDED, 9.0, planned=Amounts(), run_now=Amounts())
    assert one([told(What.RELEASED, 5.0), bare]).run_now == RUN_NOW


def test_admission_without_a_uid_goes_with_the_object_of_that_name() -> None:
    first = [told(What.HELD, 1.0, uid=None), told(What.RELEASED, 5.0)]
    again = [told(What.HELD, 11.0, uid=None), told(What.RELEASED, 15.0, uid="u2")]
    found = outcomes_of([*again, *first])
    assert [(each.at, each.was_held) for each in found] == [(5.0, True), (15.0, True)]


def test_shadow_and_deed_are_distinguished() -> None:
    found = outcomes_of([told(What.PLANNED, 1.0, is_shadow=True), told(What.RELEASED, 2.0)])
    assert [each.is_shadow for each in found] == [True, False]


def test_placements_alone_have_no_outcome() -> None:
    assert outcomes_of([told(What.PLACED, 1.0)]) == []


@pytest.mark.parametrize(("end", "deadline", "late"), [
    pytest.param(100.0, 100.0, False, id="on-time"),
    pytest.param(101.0, 100.0, False, id="within-the-second-that-times-are-told-in"),
    pytest.param(101.5, 100.0, True, id="beyond"),
    pytest.param(100.0, None, False, id="no-deadline"),
])  # fmt: skip
def test_late_is_more_than_a_second_past_the_deadline(
    end: float, deadline: float | None, late: bool
) -> None:
    assert is_late(one([told(What.ENDED, end, deadline=deadline)])) == late


def test_what_passed_its_deadline_without_an_end_is_reported_and_not_called_late() -> None:
    outcome = one([told(What.RELEASED, 1.0, deadline=50.0)])
    assert not is_late(outcome)
    assert is_overdue(outcome, now=60.0) and not is_overdue(outcome, now=50.5)


def test_figures_are_sums_with_the_change_in_percent() -> None:
    (carbon,) = savings_figures(outcomes([(10.0, 5.0), (30.0, 15.0)] * 10))
    assert (carbon.name, carbon.unit, carbon.workloads) == ("carbon", "kg", 20)
    assert (carbon.run_now, carbon.took, carbon.saved) == (400.0, 200.0, 200.0)
    assert carbon.percent == ConfidenceInterval(-50.0, -50.0, -50.0)


def test_what_is_less_than_a_kilo_in_all_is_reported_in_grams_and_watt_hours() -> None:
    small = replace(one([told(What.RELEASED, 0.0)]), run_now=Amounts(3.6e5, 250.0))
    assert [(each.run_now, each.unit) for each in savings_figures([small])] == [
        (100.0, "Wh"),
        (250.0, "g"),
    ]
    whole = savings_of([small, *outcomes([(10.0, 5.0)], namespace="other")])
    units = {each.unit for part in whole.by_namespace.values() for each in part}
    assert units == {"Wh", "kg"}, "a part has the units of the whole"


def test_costs_in_two_currencies_are_not_added() -> None:
    base = one([told(What.RELEASED, 0.0)])
    figures = savings_figures([base, replace(base, currency="GBP"), replace(base, currency=None)])
    told_in = [(each.unit, each.run_now) for each in figures if each.name == "cost"]
    assert told_in == [("EUR", 2.0), ("GBP", 2.0)]


def test_who_has_no_data_is_in_no_sum() -> None:
    gaps = [replace(each, took=Amounts()) for each in outcomes([(1.0, 1.0)])]
    (carbon,) = savings_figures([*outcomes([(10.0, 5.0)]), *gaps])
    assert (carbon.workloads, carbon.run_now) == (1, 10.0)
    assert savings_figures(gaps) == []


carbon_kg = st.floats(0.001, 1e6)


@given(st.lists(st.tuples(carbon_kg, carbon_kg), min_size=1, max_size=40))
def test_the_interval_lies_around_changes_that_single_workloads_have(
    pairs: list[tuple[float, float]],
) -> None:
    found = savings_interval(pairs)
    changes = [100.0 * (after - before) / before for before, after in pairs]
    edge = 1e-6 * max(1.0, *map(abs, changes))
    if len(pairs) < FEWEST:
        assert math.isnan(found.low) and math.isnan(found.high)
    else:
        assert min(changes) - edge <= found.low <= found.high <= max(changes) + edge
    assert min(changes) - edge <= found.mean <= max(changes) + edge


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random, hits = np.random.default_rng(3), 0
    for _ in range(100):
        run_now = random.lognormal(0.0, 0.5, 80)
        took = run_now * random.normal(0.8, 0.3, 80)
        found = savings_interval(list(zip(run_now.tolist(), took.tolist(), strict=True)))
        hits += found.low <= -20.0 <= found.high
    assert 86 <= hits <= 100


def test_of_too_few_workloads_nothing_is_beyond_doubt() -> None:
    mine = outcomes([(1.0, 2.0)] * (FEWEST - 1))
    assert losses_of(savings_of(mine)) == []
    assert saved_rows(savings_figures(mine))[1][-1] == Cell("+100.0 %")


def test_the_same_workloads_have_the_same_interval() -> None:
    random = Random(1)
    pairs = [(0.1 + random.random(), 0.1 + random.random()) for _ in range(50)]
    assert savings_interval(pairs) == savings_interval(pairs)


def test_many_workloads_are_drawn_in_groups_and_have_the_interval_of_single_ones() -> None:
    random = Random(7)
    before = [random.lognormvariate(0.0, 1.0) for _ in range(8 * MOST_DRAWN)]
    pairs = [(each, each * random.gauss(0.8, 0.5)) for each in before]
    found, ratio = savings_interval(pairs), sum(took for _, took in pairs) / sum(before)
    # What the bootstrap comes to for so many: the normal interval of a ratio of sums.
    spread = math.sqrt(math.fsum((took - ratio * run_now) ** 2 for run_now, took in pairs))
    half = 1.96 * 100.0 * spread / sum(before)
    assert found.mean == pytest.approx(100.0 * (ratio - 1.0))
    assert found.high - found.mean == pytest.approx(half, rel=0.15)
    assert found.mean - found.low == pytest.approx(half, rel=0.15)


def test_sums_that_prices_below_zero_make_have_no_percentage() -> None:
    found = savings_interval([(-1.0, -2.0), (1.0, 1.0)] * FEWEST)
    assert math.isnan(found.mean) and savings_change_text(found) == "–"


@pytest.mark.parametrize(("hours", "steps"), [
    pytest.param(3, 3, id="by-the-hour"), pytest.param(24 * 5, 5, id="by-the-day"),
])  # fmt: skip
def test_what_was_saved_over_time_adds_up_to_all_that_was_saved(hours: int, steps: int) -> None:
    mine = outcomes([(2.0, 1.0 + hour % 3) for hour in range(hours)])
    (course,), (carbon,) = savings_courses(mine), savings_figures(mine)
    assert len(course.starts) == len(course.saved) == steps
    assert sum(course.saved) == pytest.approx(carbon.saved)
    assert any(each < 0 for each in course.saved) == (hours == 3)


def test_namespaces_that_lost_are_reported() -> None:
    mine = [*outcomes([(1.0, 2.0)] * 20, "bad"), *outcomes([(9.0, 1.0)] * 20, "good")]
    assert list(savings_of(mine).by_namespace) == ["bad", "good"]
    assert losses_of(savings_of(mine)) == ["bad: carbon +100.0 % (+100.0 to +100.0)"]


def test_losses_are_shown_as_readily_as_savings() -> None:
    (_, dearer), (_, cheaper) = (
        saved_rows(savings_figures(outcomes([pair] * 20))) for pair in ((1.0, 2.0), (2.0, 1.0))
    )
    assert dearer[-1] == Cell("+100.0 % (+100.0 to +100.0)", "worse")
    assert cheaper[-1] == Cell("-50.0 % (-50.0 to -50.0)", "better")


def test_what_was_decided_is_counted() -> None:
    records = [
        told(What.HELD, 1.0), told(What.RELEASED, 2.0, reason="planned start", deadline=5.0),
        told(What.PAUSED, 3.0), told(What.PAUSED, 4.0), told(What.ENDED, 9.0, deadline=5.0),
        told(What.HELD, 1.0, uid="u2", name="waits"), told(What.PLACED, 2.0, uid="pod"),
        told(What.HELD, 1.0, uid="u4", name="gone", deadline=5.0),
        LedgerRecord(what=What.ENDED, at=9.0, subject=Subject(kind="Job", namespace="ml",
                     name="gone", uid="u4"), reason=DELETED_WHILE_HELD),
        told(What.HELD, 1.0, uid="u5", name="not-seen-to-go", latest_start=30.0),
        told(What.HELD, 1.0, uid="u6", name="just-due", latest_start=60.0),
        told(What.HELD, 1.0, uid="u3", name="watched", is_shadow=True),
    ]  # fmt: skip
    losses = [Loss("a", LossReason.LOCKED, 1.0, 2.0, 3), Loss("b", LossReason.LOCKED, 3.0, 4.0, 4)]
    report = report_of(ReadLedger(records, losses, "here"), LedgerSpan(0.0, 100.0))
    rows = {str(name).strip(): value for name, value in decided_rows(report)}
    assert rows == {
        "held": "5", "still waiting": "2", "deleted while it was held": "1",
        "past its latest start, start not recorded": "1", "started": "1",
        "released: planned start": "1",
        "ended late": Cell("1", "worse"), "past its deadline, end not recorded": Cell("0"),
        "paused": "1", "placed on a node": "1", "more carbon than run-now": "0 of 1",
        "energy measured": "0 of 1, else estimated",
        "energy estimated by CPU time": "0 of 1", "only watched, in shadow mode": "1",
        "decisions that are not in the ledger": Cell("7 (locked)", "worse"),
    }  # fmt: skip


def test_a_loss_of_an_unknown_number_is_reported_as_such() -> None:
    losses = [Loss("a", LossReason.CORRUPT, 1.0, 2.0, None), Loss("b", LossReason.CORRUPT, 3, 4, 4)]
    report = report_of(ReadLedger([], losses, "here"), LedgerSpan(0.0, 100.0))
    assert decided_rows(report)[-1][1] == Cell("unknown number (corrupt)", "worse")
