import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from greensched_policies.library.functions import NO_BEST
from greensched_policies.library.scores import spread_scores

costs = arrays.arrays(
    np.float32,
    st.integers(1, 40),
    elements=st.floats(-100.0, 100.0, width=32),
)


@pytest.mark.parametrize(
    ("cost", "scores"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param([1.0], [10], id="one"),
        pytest.param([1.0, 1.0099], [10, 10], id="spread-below-one-percent"),
        pytest.param([1.0, 1.0099, 2.0], [10, 10, 0], id="within-one-percent-of-the-cheapest"),
        pytest.param([1.0, 1.011, 2.0], [10, 9, 0], id="just-outside"),
        pytest.param([1.0, 1.2575, 2.0], [10, 5, 0], id="a-quarter-of-the-way"),
        pytest.param([0.0, 0.0, 1.0], [10, 10, 0], id="free"),
        pytest.param([0.0, 0.0, 0.0], [10, 10, 10], id="all-free"),
        pytest.param([-1.0, -0.995, 1.0], [10, 10, 0], id="negative-cheapest"),
        pytest.param([1.0, np.nan, 2.0, np.inf], [10, 0, 0, 0], id="not-finite-scores-zero"),
        pytest.param([np.nan, np.nan], [0, 0], id="nothing-finite"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_at_the_boundaries(cost: list[float], scores: list[int], dtype: type) -> None:
    found, _ = spread_scores(np.array(cost, dtype=dtype))
    assert found.tolist() == scores
    assert found.dtype == np.int8


@given(costs)
def test_a_cheaper_node_never_scores_lower(cost: np.ndarray) -> None:
    scores = spread_scores(cost).scores[np.argsort(cost, kind="stable")]
    assert (np.diff(scores.astype(int)) <= 0).all()


@given(costs)
def test_scores_stay_within_0_and_10_and_the_cheapest_gets_10(cost: np.ndarray) -> None:
    scores, best = spread_scores(cost)
    assert scores.min() >= 0
    assert scores[cost.argmin()] == scores.max() == 10
    assert best == (NO_BEST if scores.min() == 10 else cost.argmin())


@given(costs, st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(cost: np.ndarray, random: object) -> None:
    order = np.arange(cost.size)
    random.shuffle(order)  # type: ignore[attr-defined] # hypothesis types it as object
    scores = spread_scores(cost).scores
    assert spread_scores(cost[order]).scores.tolist() == scores[order].tolist()


@given(costs)
def test_each_score_is_that_of_the_formula(cost: np.ndarray) -> None:
    cheapest, highest = float(cost.min()), float(cost.max())
    edge = cheapest + 0.01 * abs(cheapest)
    expected = np.full(cost.size, 10)
    if highest > edge:
        position = (cost - np.float32(edge)) / (np.float32(highest) - np.float32(edge))
        beyond = position > 0.0
        expected[beyond] = 9 - (np.sqrt(position[beyond]) * np.float32(9)).astype(int)
    assert spread_scores(cost).scores.tolist() == expected.tolist()


def test_where_all_costs_are_equal_or_none_is_known_there_is_no_best() -> None:
    assert spread_scores(np.ones(3)).best == NO_BEST
    assert spread_scores(np.array([np.nan, np.inf])).best == NO_BEST
    assert spread_scores(np.array([np.nan, 1.0])).best == 1


def test_the_input_is_left_alone() -> None:
    cost = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    spread_scores(cost)
    assert cost.tolist() == [1.0, 2.0, 3.0]
