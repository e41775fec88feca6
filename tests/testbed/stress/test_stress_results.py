"""Figures of strategies: spread over rounds, differences only where the same work was done."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from greensched_core.ledger_records import Amounts
from greensched_testbed.stress.amounts import meter_of_all
from greensched_testbed.stress.files import benchmark_summary, write_benchmark_results
from greensched_testbed.stress.ground import GridNow
from greensched_testbed.stress.job_log import End, JobRun
from greensched_testbed.stress.play import PlayedSuite
from greensched_testbed.stress.plots import known_of
from greensched_testbed.stress.results import StressResult, figures_of
from greensched_testbed.stress.run import (
    BenchmarkedCluster,
    BenchmarkOptions,
    BenchmarkOutcome,
    troubles,
)
from greensched_testbed.stress.strategies import DEFAULT, HELD, Strategy
from greensched_testbed.stress.suite import StressJob, StressKind, Suite
from greensched_testbed.stress.tables import fact_rows, meter_rows, strategy_rows

BEGAN_S = 1_795_000_000.0
JOBS = tuple(
    StressJob(f"cpu-{place}", StressKind.CPU, 0.0, 1.0, 2**26, 0, 900, 6.0, deadline_s=due_s)
    for place, due_s in enumerate((None, 100.0))
)


def ran(job: StressJob, taken_s: float | None, end: End = "completed") -> JobRun:
    if taken_s is None:
        return JobRun(job, BEGAN_S, why="0/2 nodes are available")
    return JobRun(job, BEGAN_S, BEGAN_S, BEGAN_S + 1.0, BEGAN_S + taken_s, end, "n1", "p", "uid")


def result(
    strategy: Strategy,
    number: int,
    taken_s: tuple[float | None, float | None] = (10.0, 20.0),
    amounts: Mapping[str, Amounts] | None = None,
) -> StressResult:
    runs = tuple(ran(job, each) for job, each in zip(JOBS, taken_s, strict=True))
    grid = {"DE": GridNow(380.0, None, "by-hand")}
    played = PlayedSuite(strategy, number, BEGAN_S, BEGAN_S + 60.0, False, runs, grid)
    return StressResult(played, {} if amounts is None else amounts)


def energy(joules: float, cost: float | None = 0.5) -> dict[str, Amounts]:
    return {"curve": Amounts(joules, joules / 10.0, cost)}


def outcome(*results: StressResult) -> BenchmarkOutcome:
    meter = meter_of_all([each.amounts for each in results])
    return BenchmarkOutcome(
        Suite(JOBS), BenchmarkOptions((DEFAULT, HELD), rounds=2),
        BenchmarkedCluster("https://here", "v1.36.3", 2, 8.0, ("DE",), {"epyc-4": 2}, False),
            "EUR", results,
        meter, figures_of(results, meter), ("a note",),
    )  # fmt: skip


def test_a_figure_has_its_spread_and_its_difference_to_the_first_strategy() -> None:
    told = outcome(
        result(DEFAULT, 0, amounts=energy(100.0)), result(HELD, 0, amounts=energy(70.0)),
        result(HELD, 1, amounts=energy(80.0)), result(DEFAULT, 1, amounts=energy(200.0)),
    )  # fmt: skip
    assert list(told.figures) == ["default", "greensched"]
    ours = told.figures["greensched"]["energy_j"]
    assert (ours.mean, ours.least, ours.most) == (75.0, 70.0, 80.0)
    assert ours.change_pct == pytest.approx(-50.0)
    assert told.figures["default"]["energy_j"].change_pct is None, "it is what is compared with"
    assert told.figures["greensched"]["completed"].change_pct is None


def test_who_did_less_work_seems_to_save_nothing() -> None:
    told = outcome(
        result(DEFAULT, 0, amounts=energy(100.0)),
        result(HELD, 0, (10.0, None), energy(50.0)),
    )
    ours = told.figures["greensched"]
    assert (ours["completed"].mean, ours["unfinished"].mean) == (1.0, 1.0)
    assert ours["missed_deadlines"].mean == 1.0, "what never ended is late"
    assert ours["energy_j"].change_pct is None


def test_a_job_that_never_ran_is_counted_among_the_failed() -> None:
    one = result(DEFAULT, 0, (10.0, None), energy(50.0))
    done, waits = one.played.runs
    failed = replace(waits, end="failed", ended_unbound=True)
    figures = outcome(replace(one, played=replace(one.played, runs=(done, failed)))).figures
    default = figures["default"]
    assert (default["failed"].mean, default["never_ran"].mean) == (1.0, 1.0)
    assert default["energy_j"].mean == 50.0


@pytest.mark.parametrize(
    ("taken_s", "missed"),
    [pytest.param(100.0, 0.0, id="in-time"), pytest.param(100.5, 1.0, id="late")],
)
def test_a_deadline_counts_from_a_jobs_creation(taken_s: float, missed: float) -> None:
    told = outcome(result(DEFAULT, 0, (1_000.0, taken_s)))
    assert told.figures["default"]["missed_deadlines"].mean == missed


def test_what_one_round_does_not_know_is_not_known() -> None:
    told = outcome(
        result(DEFAULT, 0, amounts=energy(1.0)), result(DEFAULT, 1, amounts=energy(1.0, None))
    )
    assert told.figures["default"]["cost"].mean is None
    assert told.figures["default"]["energy_j"].mean == 1.0
    nobody = outcome(result(DEFAULT, 0, (None, None)))
    assert nobody.meter is None
    assert nobody.figures["default"]["completion_median_s"].mean is None
    assert nobody.figures["default"]["energy_j"].mean is None


def test_like_is_compared_with_like() -> None:
    both = {"kepler": Amounts(1.0), "curve": Amounts(2.0)}
    assert meter_of_all([both, both]) == "kepler"
    assert meter_of_all([both, {"curve": Amounts(2.0)}]) == "curve"
    assert meter_of_all([both, {}]) is None
    assert meter_of_all([]) is None


def test_the_folder_tells_all_and_has_no_number_for_what_is_not_known(tmp_path: Path) -> None:
    told = outcome(result(DEFAULT, 0, amounts=energy(100.0, None)), result(HELD, 0, (10.0, None)))
    page = write_benchmark_results(tmp_path, told)
    figures = json.loads((tmp_path / "summary.json").read_text())
    assert figures == json.loads(json.dumps(benchmark_summary(told)))
    assert (figures["meter"], figures["is_estimated"]) == (None, None)
    assert figures["strategies"]["greensched"]["energy_j"]["mean"] is None
    assert figures["runs"][0]["meters"]["curve"]["cost"] is None
    assert figures["runs"][0]["grid"]["DE"]["price_per_mwh"] is None
    assert len((tmp_path / "jobs.csv").read_text().splitlines()) == 1 + 4
    assert "The same work" in page.read_text() and (tmp_path / "completion.png").stat().st_size
    assert "are beside this page, as pictures" in page.read_text()
    assert not (tmp_path / "took.png").exists(), "nothing is drawn of what is not known"


def test_nothing_is_drawn_of_what_no_strategy_knows() -> None:
    unpriced = outcome(result(DEFAULT, 0, amounts=energy(100.0, None)))
    assert known_of(unpriced) == ["energy_j", "carbon_g"]
    priced = outcome(result(DEFAULT, 0, amounts=energy(100.0)), result(HELD, 0, (10.0, None)))
    assert known_of(priced) == []
    assert known_of(outcome(result(DEFAULT, 0, amounts=energy(1.0)))) == [
        "energy_j", "cost", "carbon_g"
    ]  # fmt: skip


def test_tables_have_dashes_for_what_is_not_known_and_name_the_source() -> None:
    told = outcome(result(DEFAULT, 0, amounts=energy(100.0)), result(HELD, 0, amounts=energy(50.0)))
    rows = {row[0]: row[1:] for row in strategy_rows(told)}
    assert rows["energy above idle, J"] == ("100", "50.0  -50.0 %")
    assert rows["cost above idle, EUR for 1,000 times"] == ("500", "500  0.0 %")
    assert rows["completed"] == ("2", "2")
    assert meter_rows(told)[1] == ("curve (estimated)", "100", "50.0")
    facts = {row[0]: row[1] for row in fact_rows(told)}
    assert facts["energy"].endswith("estimated")
    assert facts["grid DE"].startswith("380 g/kWh, – EUR/MWh") and "by-hand" in facts["grid DE"]
    unknown = {row[0]: row[1:] for row in strategy_rows(outcome(result(DEFAULT, 0)))}
    assert unknown["energy above idle, J"] == ("–",)


def test_what_did_not_complete_is_reported_with_why() -> None:
    assert troubles(result(HELD, 1, (10.0, None)).played) == [
        "round 2, greensched: cpu-1 did not end in time: 0/2 nodes are available"
    ]
