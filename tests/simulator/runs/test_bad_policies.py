"""Policies that are bad on purpose come out worst, whatever they save."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_simulator.policy import BASELINE, policies_named, policy_named
from greensched_simulator.results.comparison import compare
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.world.scenario_loading import parse_scenario

BAD = policies_named("reject-all, reject-long, node-0")
SCENARIO: dict[str, Any] = {
    "name": "two-sites",
    "start": "2023-06-01T00:00:00Z",
    "length": "12h",
    "cluster": {
        "nodes": [
            {"name": "old", "count": 2, "hardware": "xeon-e5-2670-2s", "cpu_cores": 32,
             "memory": "128Gi", "zone": "COAL"},
            {"name": "new", "count": 3, "hardware": "epyc-7763-1s", "cpu_cores": 64,
             "memory": "256Gi", "zone": "SUN"},
            {"name": "gpu", "count": 2, "hardware": "epyc-7763-2s", "cpu_cores": 128,
             "memory": "1Ti", "gpus": {"model": "a100-sxm", "count": 4}, "zone": "SUN"},
        ]
    },
    "grids": {
        "SUN": {"carbon": {"shape": "solar"}, "price": {"shape": "solar"}},
        "COAL": {"carbon": {"shape": "coal"}, "price": {"shape": "coal"}},
    },
    "workload": {"generator": {"jobs": 300, "gpu_share": 0.1}, "slack": "4h"},
}  # fmt: skip


@pytest.mark.parametrize("sleeps", [False, True])
def test_bad_policies_score_worst(sleeps: bool) -> None:
    scenario = parse_scenario(SCENARIO | {"assumptions": {"empty_nodes_sleep": sleeps}}, Path())
    policies = (*policies_named("all"), *BAD)
    for done in compare(scenario, policies, (1, 2, 3), lambda policy, seed: None):
        good, bad = done.outcomes[: -len(BAD)], done.outcomes[-len(BAD) :]
        assert {outcome.jobs_never_ran for outcome in good} == {0}
        for worst in bad:
            assert worst.jobs_done < min(outcome.jobs_done for outcome in good)
            assert worst.work_core_h < min(outcome.work_core_h for outcome in good)
            assert worst.deadlines_met < min(outcome.deadlines_met for outcome in good)
            for figure in ("energy_j", "cost", "carbon_g"):
                most = max(getattr(outcome, figure) for outcome in good)
                assert getattr(worst, figure) > most, figure


@pytest.mark.parametrize("bad", ["reject-all", "reject-long", "node-0"])
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_leaves_work_undone_stands_below_the_baseline_in_the_first_lines(
    bad: str, seed: int
) -> None:
    world = random_world(seed)
    ran = [simulate(world, policy_named(name)) for name in (BASELINE, bad)]
    until_s = billed_until_s(world, *ran)
    good, worst = (outcome_of(world, each, bill_of(world, each, until_s), until_s) for each in ran)
    assert good.jobs_done == good.jobs == worst.jobs_done + worst.jobs_never_ran
    if worst.jobs_never_ran:
        done = worst.work_core_h + worst.work_gpu_h
        assert done < good.work_core_h + good.work_gpu_h
        assert worst.energy_charged_j > 0.0
