"""What the benchmark of starts counts: the worst scenario, and carbon of equal work only."""

from typing import Any

import pytest

from benchmarks.when import APART, LOADS, TRACES, cases, summary


def row(
    missed: float, change: float, *, load: float | None = 0.4, unequal: bool = False
) -> dict[str, Any]:
    return {
        "load": load,
        "policies": {
            "green-policy": {"missed_pct": missed},
            "run-now+spread": {"missed_pct": 0.25},
        },
        "carbon_against_pct": {"clean-threshold": {"mean": change}},
        "unequal_work": ["clean-threshold"] if unequal else [],
    }


def test_the_worst_scenario_counts_and_above_the_promised_load_the_excess() -> None:
    found = summary({
        "idle": row(0.1, -3.0),
        "worst": row(0.4, 1.0, load=0.8),
        "busy": row(1.0, -1.0, load=0.9),
    })  # fmt: skip
    assert (found["miss_pct"], found["miss_worst_scenario"]) == (0.4, "worst")
    assert found["miss_above_run_now_points"] == 0.75
    assert found["miss_above_worst_scenario"] == "busy"
    assert found["carbon_vs_threshold_worst_pct"] == 1.0
    assert found["carbon_vs_threshold_mean_pct"] == pytest.approx(-1.0)
    assert found["carbon_vs_threshold_mean_low"] < -1.0 < found["carbon_vs_threshold_mean_high"]


def test_failing_nodes_stand_apart_and_unequal_work_is_not_compared_but_its_misses_count() -> None:
    found = summary({
        APART: row(9.0, 9.0),
        "unequal": row(0.3, -50.0, unequal=True),
        "one": row(0.0, -1.0),
        "two": row(0.0, -2.0),
    })  # fmt: skip
    assert found["carbon_not_compared"] == [APART, "unequal"]
    assert found["carbon_vs_threshold_scenarios"] == 2
    assert found["carbon_vs_threshold_mean_pct"] == -1.5
    assert found["miss_pct"] == 0.3


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SystemExit, match=r"there is no scenario nowhere; known: .*one-solar-grid"):
        next(cases(["nowhere"]))
    assert len(LOADS) * len(TRACES) == 15
