"""How surely work ends in time: shares of drawn runs, and what past runs teach."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.late_runs import late_share, never_late_ratio, price_of_lateness
from greensched_policies.planning.lateness import (
    error_of,
    longest_ratio,
    median_runtime_s,
    spare_s,
)


@pytest.mark.parametrize("target", [0.5, 0.9, 0.995])
@pytest.mark.parametrize("error", [0.0, 0.2, 1.0])
def test_as_many_drawn_runs_as_asked_take_no_longer(target: float, error: float) -> None:
    ratios = np.exp(np.random.default_rng(1).normal(0.0, error, 200_000))
    share = float((ratios <= longest_ratio(target, error) + 1e-12).mean())
    assert share == pytest.approx(1.0 if error == 0.0 else target, abs=0.003)


@given(st.floats(0.5, 0.9999), st.floats(0.01, 2.0), st.floats(1.0, 1e6))
def test_who_leaves_the_longest_ratio_is_late_as_rarely_as_asked(
    target: float, error: float, runtime_s: float
) -> None:
    left_s = runtime_s * longest_ratio(target, error)
    assert late_share(left_s, runtime_s, error) == pytest.approx(1.0 - target, abs=1e-6)


@pytest.mark.parametrize(("left_s", "error", "share"), [
    pytest.param(0.0, 0.2, 1.0, id="no-time-is-left"),
    pytest.param(-5.0, 0.2, 1.0, id="the-deadline-has-passed"),
    pytest.param(99.0, 0.0, 1.0, id="a-known-runtime-does-not-fit"),
    pytest.param(100.0, 0.0, 0.0, id="a-known-runtime-just-fits"),
    pytest.param(100.0, 0.2, 0.5, id="half-of-all-runs-take-longer-than-their-median"),
])  # fmt: skip
def test_the_chance_to_be_late(left_s: float, error: float, share: float) -> None:
    assert late_share(left_s, 100.0, error) == pytest.approx(share)


@given(st.floats(0.01, 3.0))
def test_beyond_five_standard_deviations_no_run_is_late(error: float) -> None:
    assert late_share(never_late_ratio(error), 1.0, error) < 1e-6


@pytest.mark.parametrize(("target", "price"), [(0.99, 1.0), (0.995, 2.0), (0.999, 10.0)])
def test_who_wants_to_be_surer_pays_more_for_a_late_run(target: float, price: float) -> None:
    assert price_of_lateness(target) == pytest.approx(price)


def test_past_runs_are_known_by_their_median_and_their_spread() -> None:
    assert median_runtime_s([50.0, 200.0]) == pytest.approx(100.0)
    assert error_of([], 0.2) == 0.2
    many = np.exp(np.random.default_rng(2).normal(5.0, 0.5, 2_000)).tolist()
    assert error_of(many, 0.2) == pytest.approx(0.5, rel=0.05)


def test_few_equal_runs_promise_less_than_many() -> None:
    errors = [error_of([60.0] * count, 0.2) for count in (1, 2, 5, 32)]
    assert errors == sorted(errors, reverse=True)
    assert 0.05 < errors[-1] < 0.2 < errors[0]


@given(st.lists(st.floats(0.5, 1e6), min_size=1, max_size=32), st.floats(0.0, 3.0))
def test_what_is_learned_is_always_a_number(runtimes_s: list[float], assumed: float) -> None:
    assert 0.0 <= error_of(runtimes_s, assumed) < math.inf
    assert min(runtimes_s) * 0.999 <= median_runtime_s(runtimes_s) <= max(runtimes_s) * 1.001


@pytest.mark.parametrize(("wait_s", "left_s"), [(0.0, 0.0), (90.0, 30.0), (21600.0, 7200.0)])
def test_a_third_of_a_wait_is_kept_for_waiting_for_a_node(wait_s: float, left_s: float) -> None:
    assert spare_s(wait_s) == left_s


def test_at_most_two_hours_of_a_wait_are_kept() -> None:
    assert spare_s(7 * 86_400.0) == 7200.0
