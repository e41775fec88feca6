"""A comparison says which policy lengthens the time for which all are billed, and by how much."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_simulator.policy import Policy, policies_named
from greensched_simulator.results.billed_time import how_long_billed
from greensched_simulator.results.comparison import ENERGY, Results, compare, difference
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.world.scenario_loading import parse_scenario

NOW, SLEEPING, WAITING = policies_named(
    "run-now+spread, run-now+spread+sleep-at-once, lowest-window+spread"
)
HOUR = 3600.0
# Jobs that may wait a day, on nodes that draw a fifth asleep.
SCENARIO: dict[str, Any] = {
    "name": "lengthened",
    "start": "2023-06-01T11:00:00Z",
    "length": "2h",
    "cluster": {
        "nodes": [
            {
                "name": "node", "count": 4, "cpu_cores": 8, "memory": "64Gi", "zone": "COAL",
                "curve_watts": [100 + 30 * step for step in range(11)],
                "sleep": {"watts": 20, "wake": "1m"},
            }
        ]
    },
    "grids": {"COAL": {"carbon": {"shape": "coal"}, "price": {"shape": "coal"}}},
    "workload": {"generator": {"jobs": 20}, "slack": "1d"},
}  # fmt: skip


def compared(*policies: Policy) -> Results:
    (done,) = compare(parse_scenario(SCENARIO, Path()), policies, (1,), lambda policy, seed: None)
    outcomes = {policy: (each,) for policy, each in zip(policies, done.outcomes, strict=True)}
    return Results(policies, NOW, (1,), outcomes)


def test_the_policy_that_turns_a_saving_into_another_is_named_with_its_hours() -> None:
    alone, beside = compared(NOW, SLEEPING), compared(NOW, SLEEPING, WAITING)
    saved = [difference(ENERGY, each, SLEEPING).percent.mean for each in (alone, beside)]
    assert saved[1] < saved[0] - 3.0, "the same schedules, another percentage"
    assert "lengthen" not in how_long_billed(alone)
    by_h = (beside.outcomes[NOW][0].billed_s - alone.outcomes[NOW][0].billed_s) / HOUR
    assert f": lowest-window+spread (+{by_h:.1f} h) lengthens it." in how_long_billed(beside)


def told(*seeds: dict[str, float], **alone_h: float) -> str:
    """Return the sentences for policies that alone would be billed for so many hours; NaN: none."""
    seeds = seeds or (alone_h,)
    names = {"now": NOW, "sleeping": SLEEPING, "waiting": WAITING}
    zeros = dict.fromkeys((each.name for each in fields(Outcome)), 0.0)
    outcomes = {
        names[name]: tuple(
            Outcome(**zeros | {
                "billed_alone_s": each[name] * HOUR,
                "billed_s": np.nan if np.isnan(each[name])
                else np.nanmax(list(each.values())) * HOUR})
            for each in seeds
        )
        for name in seeds[0]
    }  # fmt: skip
    return how_long_billed(Results(tuple(outcomes), NOW, tuple(range(len(seeds))), outcomes))


@pytest.mark.parametrize(
    ("alone_h", "sentence"),
    [
        pytest.param(
            {"now": 30.0, "waiting": 72.0, "sleeping": 30.0},
            "For run-now+spread alone it would be 30.0 h: lowest-window+spread (+42.0 h) "
            "lengthens it. ",
            id="one",
        ),
        pytest.param(
            {"now": 30.0, "waiting": 72.0, "sleeping": 71.0},
            "For run-now+spread alone it would be 30.0 h: lowest-window+spread (+42.0 h) and "
            "spread+sleep-at-once (+41.0 h) lengthen it. ",
            id="two",
        ),
        pytest.param(
            {"now": 72.0, "waiting": 30.0, "sleeping": 20.0},
            "Without run-now+spread, the baseline, it would be 30.0 h: run-now+spread lengthens "
            "it by 42.0 h. ",
            id="the-baseline",
        ),
    ],
)
def test_who_lengthens_the_billed_time_is_said(alone_h: dict[str, float], sentence: str) -> None:
    assert sentence in told(**alone_h)


@pytest.mark.parametrize(
    "longest_h",
    [pytest.param(30.0, id="equal"), pytest.param(30.14, id="by-too-little-to-matter")],
)
def test_equal_times_are_not_lengthened(longest_h: float) -> None:
    assert "lengthen" not in told(now=30.0, waiting=longest_h)
    assert "lengthen" not in told(now=longest_h, waiting=30.0)
    assert "All are billed for 30." in told(now=30.0, waiting=longest_h)


def test_others_that_lengthen_it_in_turns_leave_little_to_the_baseline() -> None:
    """Of three seeds, one policy or the other lengthens two; the baseline only the third."""
    sentences = told(
        {"now": 30.0, "waiting": 60.0, "sleeping": 20.0},
        {"now": 30.0, "waiting": 20.0, "sleeping": 60.0},
        {"now": 90.0, "waiting": 60.0, "sleeping": 60.0},
    )
    assert "All are billed for 70.0 h" in sentences
    assert "Without run-now+spread, the baseline, it would be 60.0 h" in sentences
    assert "run-now+spread lengthens it by 10.0 h" in sentences


def test_a_policy_with_a_bill_in_some_seeds_only_is_named_for_what_it_lengthens_there() -> None:
    """It has no row of figures, but the others' are of its longer time."""
    sentences = told(
        {"now": 25.0, "waiting": 34.0, "sleeping": 25.0},
        {"now": 27.0, "waiting": float("nan"), "sleeping": 27.0},
        {"now": 26.0, "waiting": float("nan"), "sleeping": 26.0},
    )
    assert "All but lowest-window+spread are billed for 29.0 h" in sentences
    assert "has ended (lowest-window+spread in 1 of 3 seeds too). " in sentences
    assert (
        "For run-now+spread alone it would be 26.0 h: lowest-window+spread (+3.00 h) lengthens it."
        in sentences
    )
