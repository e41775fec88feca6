"""What of a saving is when work starts, where it runs, and who goes first."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_simulator.policy import Policy, policies_named, policy_named
from greensched_simulator.results.comparison import CARBON, Results, difference
from greensched_simulator.results.levers import (
    combinations_of,
    parts,
    with_all_combinations,
    with_combinations,
)
from greensched_simulator.results.tables import lever_rows
from greensched_simulator.runs.outcome import Outcome

NOW = policy_named("run-now+spread")
BOTH = policy_named("carbon-time+least-carbon")
ALL = policy_named("carbon-time+least-carbon+sjf")


def outcome(carbon_g: float) -> Outcome:
    zeros = dict.fromkeys((each.name for each in fields(Outcome)), 0.0)
    return Outcome(**zeros | {"carbon_active_g": carbon_g})  # type: ignore[arg-type]  # no counts


def results(carbon_g: dict[Policy, list[float]]) -> Results:
    seeds = tuple(range(len(next(iter(carbon_g.values())))))
    compared = {policy: tuple(map(outcome, values)) for policy, values in carbon_g.items()}
    return Results(tuple(carbon_g), NOW, seeds, compared)


def test_a_levers_part_is_the_mean_over_the_orders_in_which_levers_are_switched_on() -> None:
    """Alone they save 10 and 20 of 100 g, together 25: 7.5 and 17.5."""
    when, where = policies_named("carbon-time+spread, least-carbon")
    compared = results({NOW: [100.0], when: [90.0], where: [80.0], BOTH: [75.0]})
    found = parts(CARBON, compared, BOTH)
    means = {lever: each.mean for lever, each in found.items()}
    assert means == pytest.approx({"when": -7.5, "where": -17.5})


@given(st.lists(st.lists(st.floats(1.0, 1e6), min_size=8, max_size=8), min_size=1, max_size=4))
def test_the_parts_of_three_levers_add_up_to_the_whole_change(seeds: list[list[float]]) -> None:
    mixed = combinations_of(ALL, NOW).values()
    compared = results(dict(zip(mixed, np.array(seeds).T.tolist(), strict=True)))
    total = sum(each.mean for each in parts(CARBON, compared, ALL).values())
    assert total == pytest.approx(difference(CARBON, compared, ALL).percent.mean, abs=1e-6)


def test_a_lever_that_changes_nothing_has_no_part() -> None:
    mixed = combinations_of(ALL, NOW)
    compared = results({policy: [50.0 if "where" in on else 100.0] for on, policy in mixed.items()})
    found = parts(CARBON, compared, ALL)
    means = {lever: each.mean for lever, each in found.items()}
    assert means == pytest.approx({"when": 0.0, "where": -50.0, "queue": 0.0})


def test_parts_are_nan_if_the_baseline_is_zero() -> None:
    compared = results(dict.fromkeys(combinations_of(BOTH, NOW).values(), [0.0]))
    assert all(math.isnan(each.mean) for each in parts(CARBON, compared, BOTH).values())


def test_policies_are_split_into_levers_only_if_all_combinations_were_run() -> None:
    when, where = policies_named("carbon-time+spread, least-carbon")
    assert with_combinations([NOW, BOTH], NOW) == (NOW, BOTH, when, where)
    assert with_all_combinations(results(dict.fromkeys((NOW, when, where, BOTH), [1.0]))) == (BOTH,)
    lacking = results(dict.fromkeys((NOW, when, BOTH), [1.0]))
    assert with_all_combinations(lacking) == ()
    assert len(lever_rows(lacking)) == 1, "only the head"


def test_the_heads_of_a_bundle_are_levers_like_rules() -> None:
    learned = policy_named("onnx:b+sjf")
    mixed = combinations_of(learned, NOW)
    assert len(mixed) == 2**4
    assert mixed[frozenset()] == NOW
    assert mixed[frozenset(("where", "cap"))] == policy_named("onnx:b+run-now")
    assert mixed[frozenset(("queue",))] == policy_named("run-now+spread+sjf")
    assert with_combinations([learned], policy_named("onnx:c")) == (
        learned,
        policy_named("onnx:c"),
    )


def test_a_table_tells_each_levers_part_of_energy_cost_and_carbon() -> None:
    mixed = combinations_of(BOTH, NOW)
    compared = results({policy: [100.0 - 10 * len(on)] for on, policy in mixed.items()})
    head, *rows = lever_rows(compared)
    assert head == ("policy", "of", "when", "where", "together"), "what all share has no column"
    texts = [getattr(cell, "text", cell) for cell in rows[2]]
    assert texts == ["carbon-time+least-carbon", "carbon", "-10.0 %", "-10.0 %", "-20.0 %"]
