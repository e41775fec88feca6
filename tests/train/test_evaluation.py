"""An evaluation says which rules are strongest among those that keep deadlines."""

from pathlib import Path

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.policy import BASELINE
from greensched_train.evaluation import (
    PolicyOutcome,
    WorldOutcome,
    all_combinations,
    evaluated_worlds,
    scenario_files,
)
from greensched_train.evaluation_figures import best_each, best_single, kept_by, paired_change

SUNS = Path(__file__).parent / "two_suns"


def world(scenario: str, seed: int, load: float, **told: tuple[float, float]) -> WorldOutcome:
    """Return a world in which policies have a J and a share of deadlines missed."""
    usual = {BASELINE: PolicyOutcome(1.0, 0.0, 100.0, 100.0)}
    found = {
        name.replace("_", "-"): PolicyOutcome(ratio, missed, 100.0 * ratio, 100.0 * ratio)
        for name, (ratio, missed) in told.items()
    }
    return WorldOutcome(scenario, seed, load, usual | found)


LATE, SAFE, SLOW = (0.80, 0.02), (0.95, 0.004), (0.97, 0.0)
WORLDS = [
    world("calm", 1, 0.6, late=LATE, safe=SAFE, slow=SLOW),
    world("calm", 2, 0.6, late=LATE, safe=(0.93, 0.004), slow=SLOW),
    world("full", 1, 1.0, late=(0.8, 0.002), safe=(0.99, 0.002), slow=(0.98, 0.0)),
    world("full", 2, 1.0, late=(0.8, 0.002), safe=(0.99, 0.002), slow=(0.98, 0.0)),
]


def test_rules_that_miss_too_many_deadlines_in_a_scenario_are_not_eligible() -> None:
    kept = kept_by("late", WORLDS)
    assert (kept.missed_pct, kept.excess_points) == pytest.approx((2.0, 0.2))
    assert not kept.is_eligible
    assert kept_by("safe", WORLDS).is_eligible


def test_the_strongest_rules_are_the_cheapest_of_the_eligible_ones() -> None:
    assert best_single(["late", "safe", "slow"], WORLDS) == "safe"
    assert best_each(["late", "safe", "slow"], WORLDS) == {"calm": "safe", "full": "late"}


def test_without_eligible_rules_there_is_nothing_to_compare_with() -> None:
    with pytest.raises(BadInput, match="keeps deadlines in these scenarios"):
        best_single(["late"], WORLDS)


def test_differences_are_paired_by_scenario_and_seed() -> None:
    found = paired_change("safe", "slow", WORLDS)
    pairs = [100 * (a / b - 1) for a, b in ((0.95, 0.97), (0.93, 0.97), (0.99, 0.98), (0.99, 0.98))]
    assert found.whole.mean == pytest.approx(np.mean(pairs))
    assert found.by_scenario["calm"].mean == pytest.approx(np.mean(pairs[:2]))
    assert found.by_scenario["full"].low == pytest.approx(found.by_scenario["full"].high)


def test_all_combinations_have_a_rule_for_each_lever() -> None:
    found = all_combinations()
    assert len(found) == len(set(found)) > 300
    assert {len(each.split("+")) for each in found} == {3}


@pytest.mark.engine
def test_an_evaluation_has_all_worlds_in_order_whatever_the_processes() -> None:
    policies, files = ["run-now+weighted-cost+cap-60"], scenario_files(SUNS)
    told = list[WorldOutcome]()
    one = evaluated_worlds(policies, files, 2, told.append, process_count=1)
    assert [(each.scenario, each.seed) for each in one] == [("two-suns", 1), ("two-suns", 2)]
    assert told == one == evaluated_worlds(policies, files, 2, told.append, process_count=2)
    assert all(each.policies[BASELINE].cost_ratio == pytest.approx(1.0) for each in one)
    assert all(each.policies[policies[0]].cost_ratio < 1.0 for each in one)


def test_a_folder_without_scenarios_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no scenario: give a folder"):
        scenario_files(tmp_path)
