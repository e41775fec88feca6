"""A policy that leaves work undone is never marked better, whatever its bill says."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from greensched_simulator.policy import policies_named
from greensched_simulator.reports.views import front, points
from greensched_simulator.results.cells import Cell, ResultRow
from greensched_simulator.results.comparison import (
    CARBON,
    Results,
    compare,
    difference,
    does_less,
)
from greensched_simulator.results.completion_tables import how_completed
from greensched_simulator.results.levers import with_combinations
from greensched_simulator.results.tables import change_rows, lever_rows, losses
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.world.scenario_loading import parse_scenario

NOW, DROPPING = policies_named("run-now+spread, reject-long+spread")
NODES = 10
# The sun sets while the first ten jobs hold all memory; without them the others run at noon.
SCENARIO: dict[str, Any] = {
    "name": "held-memory",
    "start": "2023-06-01T11:00:00Z",
    "length": "12h",
    "cluster": {"nodes": [{"name": "node", "count": NODES, "cpu_cores": 8, "memory": "8Gi",
                           "curve_watts": [100 + 30 * step for step in range(11)], "zone": "SUN"}]},
    "grids": {"SUN": {"carbon": {"shape": "solar"}, "price": {"shape": "solar"}}},
    "workload": {"trace": {"file": "jobs.csv"}},
}  # fmt: skip
JOBS = [
    "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus",
    *(f"holder-{number},0,36000,0.001,8192,0" for number in range(NODES)),
    *(f"worker-{number},60,3600,8,1024,0" for number in range(NODES)),
]


@pytest.fixture
def dropped(tmp_path: Path) -> Results:
    """Run the scenario with three seeds: one policy drops the ten jobs that hold memory."""
    (tmp_path / "jobs.csv").write_text("\n".join(JOBS) + "\n")
    scenario, seeds = parse_scenario(SCENARIO, tmp_path), (1, 2, 3)
    done = list(compare(scenario, (NOW, DROPPING), seeds, lambda policy, seed: None))
    outcomes = {
        policy: tuple(each.outcomes[place] for each in done)
        for place, policy in enumerate((NOW, DROPPING))
    }
    return Results((NOW, DROPPING), NOW, seeds, outcomes)


def tones(row: ResultRow) -> list[str]:
    return [cell.tone if isinstance(cell, Cell) else "" for cell in row]


def test_ten_jobs_that_hold_memory_and_are_dropped_win_nothing(dropped: Results) -> None:
    assert difference(CARBON, dropped, DROPPING).percent.high < 0.0, "the bill alone would win"
    head, baseline, dropping = change_rows(dropped)
    assert head[:2] == ("policy", "jobs that\nnever ran")
    assert (baseline[1], dropping[1]) == (Cell("0"), Cell("10", "worse"))
    assert "better" not in tones(dropping)
    assert losses(dropped)[0] == (
        "more jobs that never ran than run-now+spread: reject-long+spread (+10.0 ±0.00)"
    )


def test_a_policy_that_drops_work_is_on_no_front(dropped: Results) -> None:
    shown = points(dropped)
    assert [point.policy for point in front(shown, "slowdown")] == [NOW]


def outcome(**figures: float) -> Outcome:
    zeros = dict.fromkeys((each.name for each in fields(Outcome)), 0.0)
    return Outcome(**(zeros | figures))  # type: ignore[arg-type]  # counts need be no whole numbers


def paired(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]]) -> Results:
    return Results(
        (NOW, DROPPING),
        NOW,
        tuple(range(len(ours))),
        {
            NOW: tuple(outcome(**each) for each in theirs),
            DROPPING: tuple(outcome(**each) for each in ours),
        },
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "less"),
    [
        pytest.param({"jobs_done": 9}, {"jobs_done": 10}, True, id="one-job-fewer"),
        pytest.param({"jobs_done": 10}, {"jobs_done": 10}, False, id="as-many-jobs"),
        pytest.param({"jobs_done": 11}, {"jobs_done": 10}, False, id="one-job-more"),
        pytest.param({"work_core_h": 7.0}, {"work_core_h": 8.0}, True, id="smaller-jobs"),
        pytest.param({"work_gpu_h": 7.0}, {"work_gpu_h": 8.0}, True, id="jobs-of-fewer-gpus"),
        pytest.param(
            {"work_memory_gib_h": 7.0}, {"work_memory_gib_h": 8.0}, True, id="jobs-of-less-memory"
        ),
        pytest.param(
            {"requests": 9.0, "requests_turned_away": 1.0},
            {"requests": 9.0},
            True,
            id="one-request-fewer",
        ),
        pytest.param(
            {"requests": 9.0, "requests_turned_away": 0.4},
            {"requests": 9.0},
            False,
            id="less-than-half-a-request",
        ),
    ],
)
def test_less_work_than_the_baselines_with_one_seed_is_less(
    ours: dict[str, float], theirs: dict[str, float], less: bool
) -> None:
    assert does_less(paired([theirs, ours], [theirs, theirs]), DROPPING) is less
    assert does_less(paired([theirs, ours], [theirs, theirs]), NOW) is False


def test_the_same_saving_is_better_only_with_all_work_done() -> None:
    theirs = [{"carbon_active_g": 100.0, "jobs_done": 2.0}] * 2
    ours = [{"carbon_active_g": 50.0, "jobs_done": 2.0}] * 2
    assert tones(change_rows(paired(ours, theirs))[2])[-1] == "better"
    undone = [ours[0], ours[1] | {"jobs_done": 1.0}]
    assert tones(change_rows(paired(undone, theirs))[2])[-1] == ""
    worse = [each | {"carbon_active_g": 150.0} for each in undone]
    assert tones(change_rows(paired(worse, theirs))[2])[-1] == "worse"


def test_no_lever_is_better_if_any_combination_leaves_work_undone() -> None:
    (both,) = policies_named("carbon-time+least-carbon")
    policies = with_combinations((NOW, both), NOW)
    grams = dict(zip(policies, (100.0, 50.0, 70.0, 80.0), strict=True))

    def marked(undone: Any) -> set[str]:
        results = Results(policies, NOW, (1, 2), {
            policy: (outcome(carbon_active_g=grams[policy], jobs_done=float(policy != undone)),) * 2
            for policy in policies
        })  # fmt: skip
        return {tone for row in lever_rows(results)[1:] for tone in tones(row)[:-1]}

    assert marked(None) == {"", "better"}
    assert marked(policies[2]) == {""}


def test_the_completion_times_say_what_counts_for_jobs_that_never_ran(dropped: Results) -> None:
    alone = dropped._replace(policies=(NOW,), outcomes={NOW: dropped.outcomes[NOW]})
    told = "Jobs that never ran count as started when the billed time ends."
    assert told in how_completed(dropped)
    assert told not in how_completed(alone)
