"""Policies that are bad on purpose come out worst, whatever they save."""

from pathlib import Path
from typing import Any

import pytest

from greensched_simulator.comparison import compare
from greensched_simulator.policy import policies_named
from greensched_simulator.scenario import parse_scenario

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
