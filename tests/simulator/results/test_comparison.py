import math
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.bounds.bound import Least
from greensched_simulator.policy import policies_named, policy_named
from greensched_simulator.results.cells import Cell, change_cell, tone_of
from greensched_simulator.results.comparison import (
    CARBON,
    COST,
    ENERGY,
    MISSED,
    SLOWDOWN,
    WAIT,
    ComparedFigure,
    Results,
    Round,
    captured,
    compare,
    confidence_interval,
    difference,
    mean_outcome,
    ranked,
)
from greensched_simulator.results.tables import captured_rows, change_rows, how_captured
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import build_world

NOW, LATER = policies_named("run-now+spread, lowest-window+spread")
FIGURES = (ENERGY, COST, CARBON, WAIT, SLOWDOWN, MISSED)
SCENARIO: dict[str, Any] = {
    "name": "compared",
    "start": "2023-06-01T06:00:00Z",
    "length": "6h",
    "cluster": {"nodes": [{"name": "node", "count": 2, "hardware": "epyc-7763-1s",
                           "cpu_cores": 16, "memory": "64Gi", "zone": "SUN"}]},
    "grids": {"SUN": {"carbon": {"shape": "solar"}, "price": {"shape": "solar"}}},
    "workload": {"generator": {"jobs": 30}, "slack": "8h"},
}  # fmt: skip


def outcome(**figures: float) -> Outcome:
    zeros = dict.fromkeys((each.name for each in fields(Outcome)), 0.0)
    return Outcome(**(zeros | figures))  # type: ignore[arg-type]  # counts need be no whole numbers


def results(ours: list[Outcome], baseline: list[Outcome]) -> Results:
    seeds = tuple(range(1, len(ours) + 1))
    return Results((NOW, LATER), NOW, seeds, {NOW: tuple(baseline), LATER: tuple(ours)})


def test_policies_are_shown_by_carbon_behind_the_baseline_and_undone_work_last() -> None:
    clean, dirty, idle = policies_named("carbon-time, fastest, reject-all")
    grams = {dirty: 9.0, idle: 1.0, NOW: 5.0, clean: 2.0}
    told = {
        policy: (outcome(carbon_active_g=carbon_g, jobs=3, jobs_done=3 - (policy == idle)),)
        for policy, carbon_g in grams.items()
    }
    assert ranked(Results(tuple(grams), NOW, (1,), told)).policies == (NOW, clean, dirty, idle)


def test_a_policy_that_turns_requests_away_is_shown_behind_those_that_answer_all() -> None:
    told = {
        NOW: (outcome(carbon_active_g=5.0, requests=9),),
        LATER: (outcome(carbon_active_g=1.0, requests=9, requests_turned_away=1),),
        policy_named("fastest"): (outcome(carbon_active_g=9.0, requests=9),),
    }
    shown = ranked(Results(tuple(told), NOW, (1,), told)).policies
    assert shown == (NOW, policy_named("fastest"), LATER)


def rounds(policies: str, seeds: tuple[int, ...]) -> list[Round]:
    scenario = parse_scenario(SCENARIO, Path())
    return list(compare(scenario, policies_named(policies), seeds, lambda policy, seed: None))


def test_a_change_over_three_seeds_reckoned_by_hand() -> None:
    ours = [outcome(energy_active_j=active_j, energy_idle_j=10.0) for active_j in (80, 150, 200)]
    theirs = [outcome(energy_active_j=active_j, energy_idle_j=10.0) for active_j in (90, 190, 290)]
    found = difference(ENERGY, results(ours, theirs), LATER)
    # −10, −40 and −90 J of 100, 200 and 300 J; Student's t at 97.5 % with two degrees: 4.302653.
    assert found.change.mean == pytest.approx(-140 / 3)
    deviation = math.sqrt(((110 / 3) ** 2 + (20 / 3) ** 2 + (130 / 3) ** 2) / 2)
    half = 4.302653 * deviation / math.sqrt(3)
    assert found.change.low == pytest.approx(-140 / 3 - half)
    assert found.change.high == pytest.approx(-140 / 3 + half)
    half = 4.302653 * 10.0 / math.sqrt(3)
    assert found.percent == pytest.approx((-20.0, -20.0 - half, -20.0 + half))


def test_seeds_are_paired() -> None:
    # The seeds differ a hundredfold, the policies by 1 % in each: no doubt about that.
    theirs = [outcome(carbon_idle_g=grams) for grams in (1.0, 10.0, 100.0)]
    ours = [outcome(carbon_idle_g=grams) for grams in (0.99, 9.9, 99.0)]
    assert difference(CARBON, results(ours, theirs), LATER).percent == pytest.approx((-1, -1, -1))


def test_a_fall_of_what_is_below_zero_is_a_fall() -> None:
    found = difference(COST, results([outcome(cost_idle=-3.0)], [outcome(cost_idle=-2.0)]), LATER)
    assert (found.change.mean, found.percent.mean) == (-1.0, -50.0)


def test_nothing_has_no_percentage() -> None:
    found = difference(WAIT, results([outcome(wait_mean_s=60.0)], [outcome()]), LATER)
    assert found.change.mean == 60.0
    assert math.isnan(found.percent.mean)


def test_one_seed_has_no_interval() -> None:
    found = confidence_interval(np.array([3.0]))
    assert found.mean == 3.0
    assert math.isnan(found.low) and math.isnan(found.high)


def test_equal_seeds_leave_no_doubt() -> None:
    assert confidence_interval(np.full(4, 3.0)) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: str(figure.name))
def test_a_policy_differs_from_itself_by_exactly_nothing(figure: ComparedFigure) -> None:
    seeds = (1, 2, 3)
    outcomes = tuple(each.outcomes[0] for each in rounds("run-now+spread", seeds))
    found = difference(figure, Results((NOW,), NOW, seeds, {NOW: outcomes}), NOW)
    assert found.change == (0.0, 0.0, 0.0)
    assert found.percent.mean == 0.0 or not any(map(figure.of, outcomes))


def test_without_a_baseline_nothing_is_compared() -> None:
    with pytest.raises(BadInput, match="there is no baseline to compare with: name one"):
        difference(ENERGY, Results((NOW,), None, (1,), {NOW: (outcome(),)}), NOW)


def test_all_policies_of_a_seed_have_its_world_and_are_billed_for_the_same_time() -> None:
    found = rounds("run-now+spread, lowest-window+spread, least-carbon", (1, 2))
    assert [each.world.seed for each in found] == [1, 2]
    for each in found:
        last_s = max(float(schedule.end_s.max()) for schedule in each.schedules)
        assert {outcome.billed_s for outcome in each.outcomes} == {last_s}
        assert last_s > each.world.length_s
        assert {outcome.jobs_done for outcome in each.outcomes} == {30}
        works = [outcome.work_core_h for outcome in each.outcomes]
        assert works == [works[0]] * 3
    assert found[0].outcomes != found[1].outcomes


def test_a_comparison_runs_what_a_single_run_does() -> None:
    (found,) = rounds("run-now+spread, lowest-window+spread", (3,))
    world = build_world(parse_scenario(SCENARIO, Path()), 3)
    for policy, schedule in zip(found.policies, found.schedules, strict=True):
        alone = simulate(world, policy)
        assert [np.asarray(each).tobytes() for each in alone] == [
            np.asarray(each).tobytes() for each in schedule
        ]


def test_each_run_is_reported_when_it_ends() -> None:
    told = []
    scenario, policies = parse_scenario(SCENARIO, Path()), policies_named("spread, bin-pack")
    for _ in compare(scenario, policies, (5, 6), lambda *each: told.append(each)):
        pass
    spread, bin_pack = policy_named("spread"), policy_named("bin-pack")
    # Several run at a time, of one seed: whichever ends first is told first.
    assert {*told[:2]} == {(spread, 5), (bin_pack, 5)}
    assert {*told[2:]} == {(spread, 6), (bin_pack, 6)}


@pytest.fixture
def seldom_large() -> Scenario:
    """Among many small jobs, some seeds draw one that fits no node; the first does not."""
    generator = {"jobs": 20, "cpu_cores": [1] * 60 + [64]}
    return parse_scenario({**SCENARIO, "workload": {"generator": generator}}, Path())


def first_refused(scenario: Scenario) -> int:
    for seed in count(1):
        try:
            build_world(scenario, seed)
        except BadInput:
            return seed
    raise AssertionError("some seed draws a large job")


def test_a_seed_whose_jobs_fit_no_node_is_named_before_anything_runs(
    seldom_large: Scenario,
) -> None:
    seed, told = first_refused(seldom_large), list[int]()
    assert seed > 1
    runs = compare(
        seldom_large,
        policies_named("spread"),
        range(1, seed + 10),
        lambda policy, seed: told.append(seed),
    )
    with pytest.raises(BadInput, match=rf"^with seed {seed}: workload: \d of 20 jobs fit no node"):
        next(runs)
    assert told == []


def test_a_fault_of_the_only_seed_names_it_too(seldom_large: Scenario) -> None:
    seed = first_refused(seldom_large)
    runs = compare(seldom_large, policies_named("spread"), (seed,), lambda policy, seed: None)
    with pytest.raises(BadInput, match=f"^with seed {seed}: workload: "):
        next(runs)


def test_the_mean_outcome_is_the_mean_of_each_figure() -> None:
    mean = mean_outcome([outcome(jobs_done=3, cost_idle=1.0), outcome(jobs_done=4, cost_idle=2.0)])
    assert (mean.jobs_done, mean.cost_idle, mean.energy_j) == (3.5, 1.5, 0.0)


def test_a_change_is_coloured_by_the_interval_that_is_shown() -> None:
    """Each seed saves about as many grams, which are little of two baselines and all of a third."""
    ours = [outcome(carbon_active_g=each) for each in (990.0, 989.0, 0.0)]
    theirs = [outcome(carbon_active_g=each) for each in (1000.0, 1000.0, 10.0)]
    shown = change_rows(results(ours, theirs))[2][4]
    assert isinstance(shown, Cell)
    assert (shown.text, shown.tone) == ("-34.0 ±141.9 %", "")


def test_a_change_that_is_reported_as_nothing_has_no_colour() -> None:
    """A little less with every seed, and yet 0.0 %."""
    ours = [outcome(carbon_active_g=1000.0 - each) for each in (0.2, 0.21, 0.22)]
    theirs = [outcome(carbon_active_g=1000.0)] * 3
    percent = difference(CARBON, results(ours, theirs), LATER).percent
    assert tone_of(percent) == "better"
    assert change_rows(results(ours, theirs))[2][4] == change_cell(percent) == Cell("0.0 ±0.0 %")


@pytest.mark.parametrize(
    ("mine", "bound", "share"),
    [
        pytest.param(80.0, 60.0, 50.0, id="half-of-what-is-possible"),
        pytest.param(60.0, 60.0, 100.0, id="the-bound-itself"),
        pytest.param(110.0, 60.0, -25.0, id="worse-than-the-baseline"),
        pytest.param(100.0, 100.0, math.nan, id="nothing-can-be-saved"),
        pytest.param(110.0, 100.0 - 1e-12, math.nan, id="nothing-but-rounding"),
    ],
)
def test_what_is_captured_is_the_share_of_what_could_be_saved(
    mine: float, bound: float, share: float
) -> None:
    told = results([outcome(carbon_active_g=mine)], [outcome(carbon_active_g=100.0)])
    bounded = told._replace(least=(Least(0.0, 0.0, bound),))
    assert captured(CARBON, bounded, LATER).mean == pytest.approx(share, nan_ok=True)
    text = getattr(captured_rows(bounded)[1][3], "text", captured_rows(bounded)[1][3])
    assert text == ("–" if math.isnan(share) else f"{share:.1f} %")


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        pytest.param({"requests": 9.0}, "The bound includes replicas that run", id="services"),
        pytest.param({"failures": 2}, "no work is lost when nodes fail", id="failures"),
        pytest.param({"energy_charged_j": 1.0}, "may stay undone", id="rejected"),
    ],
)
def test_beside_the_shares_stands_what_their_bound_leaves_out(
    figures: dict[str, Any], said: str
) -> None:
    plain, told = outcome(), outcome(**figures)
    assert said in how_captured(results([told], [plain]))
    assert said not in how_captured(results([plain], [plain]))


def test_without_bounds_no_share_is_reported() -> None:
    assert captured_rows(results([outcome()], [outcome()]))[1:] == []
