"""When held work is released, how releases are spread, and how much work is held at all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.quiet_spans import after_quiet
from greensched_policies.encoding.slots import SUM_ROUNDING
from greensched_policies.planning.held_start import (
    by_worth,
    jitter_s,
    mean_busy_share,
    node_share,
    release_s,
    within_share,
)

SLOT_S = 900.0
NO_PLAN = math.nan


@pytest.mark.parametrize(("needs", "share"), [
    pytest.param((16.0, 64.0), 0.25, id="a-quarter-of-both"),
    pytest.param((16.0, 256.0), 1.0, id="all-memory"),
    pytest.param((64.0, 0.0), 1.0, id="all-cores"),
    pytest.param((0.0, 0.0), 0.0, id="nothing"),
])  # fmt: skip
def test_a_pod_takes_the_larger_share_of_a_node(needs: tuple[float, float], share: float) -> None:
    assert node_share(*needs, (64.0, 256.0)) == share


def test_a_node_of_unknown_size_has_no_shares() -> None:
    assert node_share(8.0, 1.0, (0.0, 0.0)) == 0.0


def noted(*busy: float, every_s: float = 300.0) -> float:
    """Return the mean after so many shares, one for each step."""
    mean = 0.0
    for place, share in enumerate(busy):
        mean = mean_busy_share(mean, share, 0.0, place * every_s, (place + 1) * every_s)
    return mean


@given(st.lists(st.floats(0.0, 2.0), min_size=1, max_size=50))
def test_on_the_first_day_the_mean_is_that_of_all_that_was_seen(busy: list[float]) -> None:
    assert noted(*busy) == pytest.approx(sum(busy) / len(busy))


def test_later_the_last_day_weighs_most() -> None:
    assert noted(*[1.0] * 48, *[0.0] * 24, every_s=3600.0) == pytest.approx(0.36, abs=0.01)
    assert noted(*[1.0] * 48, *[0.0] * 96, every_s=3600.0) == pytest.approx(0.02, abs=0.01)


def test_a_clock_that_stands_still_or_is_set_back_changes_nothing() -> None:
    assert mean_busy_share(0.5, 1.0, 0.0, 900.0, 900.0) == 0.5
    assert mean_busy_share(0.5, 1.0, 0.0, 900.0, 600.0) == 0.5


@given(name=st.text(), most_s=st.floats(0.0, 1e6))
def test_releases_are_spread_over_less_than_half_a_slot(name: str, most_s: float) -> None:
    delay_s = jitter_s(name, most_s, SLOT_S)
    assert 0.0 <= delay_s <= most_s
    assert delay_s < SLOT_S / 2
    assert delay_s == jitter_s(name, most_s, SLOT_S)


@pytest.mark.parametrize(
    ("chosen_s", "kept_s", "expected_s"),
    [
        pytest.param(1800.0, NO_PLAN, 1830.0, id="a-new-plan-is-delayed"),
        pytest.param(900.0, NO_PLAN, 900.0, id="what-starts-now-is-not"),
        pytest.param(1800.0, 1850.0, 1850.0, id="the-same-slot-keeps-its-second"),
        pytest.param(1800.0, 2699.0, 2699.0, id="to-the-last-second-of-the-slot"),
        pytest.param(1800.0, 2700.0, 1830.0, id="the-next-slot-is-another-start"),
        pytest.param(1800.0, 1799.0, 1830.0, id="so-is-the-one-before"),
    ],
)
def test_a_plan_stands_to_the_second(chosen_s: float, kept_s: float, expected_s: float) -> None:
    assert release_s(chosen_s, kept_s, 30.0, 1000.0, SLOT_S) == expected_s


@given(st.lists(st.floats(0.0, 1e5), min_size=0, max_size=9, unique=True), st.floats(0.0, 1e5))
def test_nothing_starts_in_a_quiet_span_and_nothing_waits_longer(
    ends: list[float], at_s: float
) -> None:
    ends = sorted(ends)[: len(ends) // 2 * 2]
    begins_s, ends_s = ends[::2], ends[1::2]
    found_s = after_quiet(at_s, begins_s, ends_s)
    spans = list(zip(begins_s, ends_s, strict=True))
    assert not any(begin_s <= found_s < end_s for begin_s, end_s in spans)
    assert found_s == at_s or any(begin_s <= at_s < end_s == found_s for begin_s, end_s in spans)


def test_what_was_planned_keeps_its_place_then_what_saves_most_then_what_must_start_first() -> None:
    is_new, saving = np.array([1, 0, 1, 1]), np.array([0.5, 0.1, 0.9, 0.5])
    latest_s = np.array([30.0, 99.0, 40.0, 20.0])
    assert by_worth(is_new, saving, latest_s).tolist() == [1, 2, 3, 0]


@given(st.lists(st.tuples(st.floats(0.0, 9.0), st.booleans()), max_size=9), st.floats(0.0, 20.0))
def test_held_work_never_requests_more_than_its_share(
    works: list[tuple[float, bool]], most_cores: float
) -> None:
    cores = np.array([each for each, _ in works])
    starts_now = np.array([int(each) for _, each in works])
    order, limits = np.arange(cores.size), np.full(cores.size, most_cores)
    held = within_share(order, cores, limits, starts_now, 0.0)
    assert cores[(held == 1) & (starts_now == 0)].sum() <= most_cores * (1.0 + SUM_ROUNDING) + 1e-9
    assert held[starts_now == 1].all()
    assert not cores.size or within_share(order, cores, limits, starts_now, math.inf).tolist() == (
        starts_now.tolist()
    )


def test_work_that_fills_the_held_share_exactly_is_held() -> None:
    cores = np.full(3, 0.1)
    assert cores.sum() > 0.3, "but for rounding it is as much"
    held = within_share(np.arange(3), cores, np.full(3, 0.3), np.zeros(3, np.int64), 0.0)
    assert held.tolist() == [1, 1, 1]
