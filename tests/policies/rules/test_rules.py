import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.encoding import observation as obs
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.rules.catalogue import BLIND_TO_ROOM, WHERE_RULES

# First fit asks for nothing but the place.
LOOKS_AT_NODES = sorted(WHERE_RULES.keys() - {"first-fit"})


def seen(
    *candidates: dict[int, float], weights: tuple[float, float, float] = (1.0, 1.0, 0.1)
) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.ones((1, len(candidates), len(NODE_FEATURES)), dtype=np.float32)
    for row, features in enumerate(candidates):
        for feature, value in features.items():
            nodes[0, row, feature] = value
    context = np.zeros((1, len(CONTEXT_FEATURES)), dtype=np.float32)
    context[0, :3] = weights
    return nodes, context


@pytest.mark.parametrize(
    ("rule", "better", "worse"),
    [
        pytest.param("least-energy", {obs.ENERGY: 0.5}, {obs.ENERGY: 1.5}, id="least-energy"),
        pytest.param("least-cost", {obs.COST: -0.5}, {obs.COST: 1.5}, id="least-cost"),
        pytest.param("least-carbon", {obs.CARBON: 0.5}, {obs.CARBON: 1.5}, id="least-carbon"),
        pytest.param(
            "bin-pack",
            {obs.CPU_AFTER: 0.9, obs.MEMORY_AFTER: 0.5},
            {obs.CPU_AFTER: 0.3, obs.MEMORY_AFTER: 0.5},
            id="bin-pack",
        ),
        pytest.param(
            "spread",
            {obs.CPU_AFTER: 0.3, obs.MEMORY_AFTER: 0.5},
            {obs.CPU_AFTER: 0.9, obs.MEMORY_AFTER: 0.5},
            id="spread",
        ),
        pytest.param(
            "carbon-threshold",
            {obs.ZONE_CARBON: 0.9, obs.ENERGY: 5.0},
            {obs.ZONE_CARBON: 1.1, obs.ENERGY: 0.1},
            id="clean-before-frugal",
        ),
        pytest.param(
            "carbon-threshold",
            {obs.ZONE_CARBON: 0.9, obs.ENERGY: 0.1},
            {obs.ZONE_CARBON: 0.2, obs.ENERGY: 0.2},
            id="among-the-clean-the-frugal",
        ),
        pytest.param("topsis", {obs.CARBON: 0.5}, {obs.CARBON: 1.5}, id="topsis"),
        pytest.param(
            "weighted-cost",
            {obs.COST: 1.2, obs.CARBON: 0.5},
            {obs.COST: 0.8, obs.CARBON: 1.5},
            id="weighted-cost",
        ),
    ],
)
def test_each_rule_prefers_what_it_is_named_for(
    rule: str, better: dict[int, float], worse: dict[int, float]
) -> None:
    relative_cost = WHERE_RULES[rule](*seen(better, worse))
    assert relative_cost[0, 0] < relative_cost[0, 1]


@pytest.mark.parametrize("rule", WHERE_RULES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 9)])
def test_a_rule_gives_each_candidate_a_finite_cost(rule: str, shape: tuple[int, int]) -> None:
    dice = np.random.default_rng(7)
    nodes = dice.random((*shape, len(NODE_FEATURES)), dtype=np.float32)
    cost = WHERE_RULES[rule](
        nodes, dice.random((shape[0], len(CONTEXT_FEATURES)), dtype=np.float32)
    )
    assert cost.shape == shape
    assert cost.dtype == np.float32
    assert np.isfinite(cost).all()


@pytest.mark.parametrize("rule", LOOKS_AT_NODES)
def test_candidates_that_are_alike_cost_alike(rule: str) -> None:
    assert len(set(WHERE_RULES[rule](*seen({}, {}, {}))[0].tolist())) == 1


def test_the_prior_is_the_weighted_mean_of_its_terms() -> None:
    candidate = {obs.COST: 0.5, obs.CARBON: 2.0, obs.SLOWDOWN: 1.0}
    relative_cost = WHERE_RULES["weighted-cost"](*seen(candidate, weights=(3.0, 1.0, 1.0)))
    assert relative_cost[0, 0] == pytest.approx((3 * 0.5 + 2.0 + 1.0) / 5)


def test_a_weight_of_zero_silences_its_term() -> None:
    nodes, context = seen({obs.CARBON: 9.0}, {obs.CARBON: 0.1}, weights=(1.0, 0.0, 0.1))
    for rule in ("weighted-cost", "topsis"):
        assert len(set(WHERE_RULES[rule](nodes, context)[0].tolist())) == 1


def test_topsis_as_computed_by_hand() -> None:
    # One criterion: the best is the ideal (0.5), the worst the anti-ideal (1.5).
    relative_cost = WHERE_RULES["topsis"](
        *seen({obs.COST: 1.0}, {obs.COST: 2.0}, {obs.COST: 1.25}, weights=(1.0, 0.0, 0.0))
    )
    assert relative_cost[0].tolist() == pytest.approx([0.5, 1.5, 0.75])


def test_topsis_scales_each_criterion_as_computed_by_hand() -> None:
    # Lengths 5 and 13: what differs is 1/5 · 0.8 = 0.16 in cost, 7/13 · 0.2 = 0.1077 in carbon.
    relative_cost = WHERE_RULES["topsis"](
        *seen({obs.COST: 3.0, obs.CARBON: 12.0}, {obs.COST: 4.0, obs.CARBON: 5.0},
              weights=(0.8, 0.2, 0.0))
    )  # fmt: skip
    nearness = 0.16 / (0.16 + 0.2 * 7.0 / 13.0)
    assert relative_cost[0] == pytest.approx([1.5 - nearness, 0.5 + nearness], abs=1e-6)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 20))
@pytest.mark.parametrize("rule", LOOKS_AT_NODES)
def test_the_order_of_the_candidates_does_not_matter(rule: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = rng.random((1, count, len(NODE_FEATURES))).astype(np.float32) * 2
    context = rng.random((1, len(CONTEXT_FEATURES))).astype(np.float32)
    order = rng.permutation(count)
    whole = WHERE_RULES[rule](nodes, context)[0, order]
    np.testing.assert_allclose(WHERE_RULES[rule](nodes[:, order], context)[0], whole, atol=1e-5)


@pytest.mark.parametrize("rule", sorted(BLIND_TO_ROOM))
def test_a_rule_that_is_asked_to_be_blind_to_room_is(rule: str) -> None:
    dice = np.random.default_rng(7)
    nodes, (_, context) = dice.random((1, 9, len(NODE_FEATURES)), dtype=np.float32), seen({})
    without = nodes.copy()
    without[:, :, obs.ROOM_FEATURES] = np.nan
    np.testing.assert_array_equal(
        WHERE_RULES[rule](without, context), WHERE_RULES[rule](nodes, context)
    )
