"""A policy that lasts longer than the data of the grids has no bill; the others have theirs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.policy import policies_named
from greensched_simulator.reports.report import write_run_report
from greensched_simulator.results.cells import Cell, ResultRow
from greensched_simulator.results.comparison import CARBON, Results, compare, difference
from greensched_simulator.results.run_folder import FinishedRun, RecordedRun, RunFolder, read_run
from greensched_simulator.results.tables import change_rows, done_rows, taken_rows
from greensched_simulator.runs.billing_together import outcomes_together
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import MissingData, bill_of
from greensched_simulator.testing.small_worlds import in_one_piece, make_world
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import World

HOUR = 3600.0
NOW, PACKED, LATE = policies_named("run-now+spread, run-now+bin-pack, lowest-slot+spread")
# The data of the grid end after 12 h; from there on the forecast repeats the cleanest value.
SCENARIO: dict[str, Any] = {
    "name": "short-data",
    "start": "2023-06-01T00:00:00Z",
    "length": "4h",
    "cluster": {"nodes": [{"name": "node", "count": 2, "cpu_cores": 8, "memory": "16Gi",
                           "curve_watts": [100 + 10 * step for step in range(11)], "zone": "Z"}]},
    "grids": {"Z": {"carbon": {"file": "carbon.csv", "time_column": "time", "column": "g"},
                    "price": {"constant": 100, "unit": "EUR/MWh"}}},
    "workload": {"trace": {"file": "jobs.csv"}, "slack": "11h"},
}  # fmt: skip
JOBS = """name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus
long,0,7200,4,1024,0
short,600,1800,8,1024,0
"""


def text(row: ResultRow) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    """Write a scenario whose cleanest hour, the last one known, ends before a long job does."""
    hours = [f"2023-06-01T{hour:02d}:00:00Z,{500 - 40 * hour}" for hour in range(12)]
    (tmp_path / "carbon.csv").write_text("\n".join(["time,g", *hours]) + "\n")
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "short-data.yaml").write_text(yaml.safe_dump(SCENARIO))
    return tmp_path / "short-data.yaml"


def run(scenario_file: Path, *policies: Any) -> FinishedRun:
    scenario, seeds = load_scenario(scenario_file), (1, 2)
    asked = RecordedRun(scenario, scenario_file, policies, NOW, seeds, (), "2026-01-01T00:00:00Z")
    with RunFolder(scenario_file.parent / f"run-{len(policies)}", asked) as folder:
        for done in compare(scenario, policies, seeds, lambda policy, seed: None, with_bound=True):
            folder.add(done)
        return folder.finish()


def test_the_others_are_billed_as_if_it_were_not_there_and_it_is_named(scenario_file: Path) -> None:
    with_it, without = run(scenario_file, NOW, PACKED, LATE), run(scenario_file, NOW, PACKED)
    for policy in (NOW, PACKED):
        assert with_it.results.outcomes[policy] == without.results.outcomes[policy]
    assert with_it.results.least == without.results.least
    late = with_it.results.outcomes[LATE][0]
    assert (late.jobs_done, late.is_billed) == (2, False)
    assert late.billed_alone_s > 12 * HOUR
    assert math.isnan(late.carbon_g) and math.isnan(late.energy_j) and math.isnan(late.cost)
    notes = [note for note in with_it.summary["notes"] if "not billed" in note]
    assert [note[:49] for note in notes] == [
        f"lowest-slot+spread is not billed with seed {seed}: its" for seed in (1, 2)
    ]
    assert "over 4.0 h. Give the scenario longer grid files, or a shorter `length`" in notes[0]


def test_its_work_and_waits_are_shown_and_its_bill_is_a_dash(scenario_file: Path) -> None:
    results = run(scenario_file, NOW, PACKED, LATE).results
    assert results.policies[-1] == LATE
    assert text(done_rows(results)[-1])[:2] == ["lowest-slot+spread", "2"]
    assert set(text(taken_rows(results, "EUR")[-1])[1:]) == {"–"}
    assert text(change_rows(results)[-1])[2:] == ["–"] * 3
    assert math.isnan(difference(CARBON, results, LATE).change.mean)


def test_a_folder_and_a_report_hold_no_nan(scenario_file: Path) -> None:
    done = run(scenario_file, NOW, PACKED, LATE)
    assert read_run(done.folder).results == done.results
    json.dumps(done.document(), allow_nan=False)
    page = write_run_report(done).read_text(encoding="utf-8")
    assert "NaN" not in page.split("</script>", 1)[1]
    assert "lowest-slot+spread is not billed with seed 2" in page


def test_with_the_baseline_without_a_bill_the_others_still_have_theirs(scenario_file: Path) -> None:
    (done, _) = compare(
        load_scenario(scenario_file), (LATE, NOW), (1, 2), lambda policy, seed: None
    )
    assert [outcome.is_billed for outcome in done.outcomes] == [False, True]
    outcomes = {policy: (own,) for policy, own in zip(done.policies, done.outcomes, strict=True)}
    head, without, _ = change_rows(Results((LATE, NOW), LATE, (1,), outcomes))
    assert set(text(without)[2:]) == {"no bill"}, text(head)


def test_if_none_can_be_billed_the_comparison_is_refused(scenario_file: Path) -> None:
    runs = compare(load_scenario(scenario_file), (LATE,), (1,), lambda policy, seed: None)
    with pytest.raises(
        BadInput, match="with seed 1: scenario short-data: Z lacks carbon for a par"
    ):
        next(runs)


def known_until(end_s: float) -> World:
    """Return a world of one job of an hour, whose grid is known for so long."""
    grid = [(0.0, 100.0, 50.0), (end_s, math.nan, 50.0)]
    return make_world([{}], grids=[grid], length_s=HOUR)


def started(start_s: float) -> Schedule:
    return in_one_piece(np.array([start_s]), np.array([start_s + HOUR]), np.array([0]))


@pytest.mark.parametrize(
    ("start_s", "is_billed"),
    [
        pytest.param(2 * HOUR, True, id="ends-as-the-data-end"),
        pytest.param(2 * HOUR + 1.0, False, id="a-second-later"),
    ],
)
def test_a_bill_needs_data_until_the_last_job_ends(start_s: float, is_billed: bool) -> None:
    world, soon = known_until(3 * HOUR), started(0.0)
    first, second = outcomes_together(world, [soon, started(start_s)])
    assert second.is_billed is is_billed
    until_s = 3 * HOUR if is_billed else HOUR
    assert first == outcome_of(world, soon, bill_of(world, soon, until_s), until_s)
    with pytest.raises(MissingData):
        outcomes_together(world, [started(2 * HOUR + 1.0)])


@settings(max_examples=50)
@given(
    starts_s=st.lists(st.integers(1, 20_000).map(float), max_size=5),
    end_s=st.integers(3600, 20_000).map(float),
)
def test_who_ends_within_the_data_is_billed_and_for_the_same_time(
    starts_s: list[float], end_s: float
) -> None:
    found = outcomes_together(known_until(end_s), [started(each) for each in (0.0, *starts_s)])
    within_s = [start_s + HOUR for start_s in (0.0, *starts_s) if start_s + HOUR <= end_s]
    assert [outcome.is_billed for outcome in found] == [
        start_s + HOUR <= end_s for start_s in (0.0, *starts_s)
    ]
    billed_s = {outcome.billed_s for outcome in found if outcome.is_billed}
    assert billed_s == {max(within_s)}


def test_a_grid_without_data_hinders_nobody_while_nothing_draws_from_it() -> None:
    """The nodes of the first zone sleep when its data end; the second job runs in the second."""
    grids = [[(0.0, 100.0, 50.0), (HOUR, math.nan, 50.0)], [(0.0, 100.0, 50.0)]]
    world = make_world([{}], [{"zone": 0}, {"zone": 1}], grids, empty_nodes_sleep=True)
    late = in_one_piece(np.array([2 * HOUR]), np.array([3 * HOUR]), np.array([1]))
    assert [each.billed_s for each in outcomes_together(world, [started(0.0), late])] == [
        3 * HOUR
    ] * 2


def test_who_runs_in_a_gap_of_the_data_is_not_billed_and_who_runs_later_is() -> None:
    grid = [(0.0, 100.0, 50.0), (HOUR, math.nan, 50.0), (2 * HOUR, 100.0, 50.0)]
    world = make_world([{}], grids=[grid], length_s=HOUR, empty_nodes_sleep=True)
    found = outcomes_together(world, [started(hour * HOUR) for hour in range(3)])
    assert [outcome.is_billed for outcome in found] == [True, False, True]
    assert (found[0].billed_s, found[2].billed_s) == (3 * HOUR, 3 * HOUR)


def test_without_a_bill_nothing_is_charged_for_what_never_ran() -> None:
    world = known_until(3 * HOUR)._replace(length_s=2 * HOUR)
    jobs = make_world([{}, {}]).jobs
    world = world._replace(jobs=jobs, precedence=make_world([{}, {}]).precedence)
    both = in_one_piece(np.array([0.0, 0.0]), np.array([HOUR, HOUR]), np.array([0, 0]))
    half = in_one_piece(np.array([9 * HOUR, math.nan]), np.array([10 * HOUR, math.nan]),
                        np.array([0, -1]))  # fmt: skip
    _, found = outcomes_together(world, [both, half])
    assert (found.jobs_done, found.jobs_never_ran, found.nodes_used) == (1, 1, 1)
    assert math.isnan(found.energy_charged_j) and math.isnan(found.energy_active_j)
    assert (found.imported_j, found.carbon_embodied_g, found.carbon_marginal_g) == (0.0, 0.0, 0.0)
