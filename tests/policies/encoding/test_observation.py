from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    curve_table,
    placement_cost,
)
from greensched_policies.encoding import observation as obs
from greensched_policies.encoding.observation import Observation, encode_where
from greensched_policies.encoding.weights import Weights
from greensched_policies.rules.catalogue import WHERE_RULES

MODEL = CostModel(
    curve_table([[100.0 + 20.0 * k for k in range(11)], [60.0 + 30.0 * k for k in range(11)]]),
    0.5,
    0.8,
    False,
)


def observed(
    carbon: list[float],
    price: list[float] | None = None,
    *,
    cores: float = 2.0,
    **changes: list[float],
) -> Observation:
    """Encode one decision over nodes that are alike but for the grid and `changes`."""
    columns: dict[str, Any] = {
        "cpu_capacity": 16.0,
        "cpu_before": 0.25,
        "memory_capacity": 64.0,
        "memory_free": 32.0,
        "gpu_capacity": 4.0,
        "gpu_free": 2.0,
        "gpu_idle_w": 50.0,
        "gpu_peak_w": 400.0,
        "curve_class": 0.0,
        "speed": 1.0,
        "pue": 1.2,
        "is_empty": 0.0,
    }
    count = len(carbon)
    nodes = NodeColumns(
        **{
            name: np.broadcast_to(np.asarray(changes.get(name, value), float), (1, count)).copy()
            for name, value in columns.items()
        }
    )
    workload = WorkloadColumns(*(np.array([[value]]) for value in (cores, 16.0, 1.0, 3600.0)))
    zones = ZoneColumns(np.array([carbon]), np.array([price or [50.0] * count]))
    cost = placement_cost(nodes, workload, zones, MODEL)
    return encode_where(nodes, workload, zones, cost, MODEL, Weights(1.0, 1.0, 0.1))


def test_names_and_indexes_belong_together() -> None:
    assert len(obs.NODE_FEATURES) == 16
    assert len(obs.CONTEXT_FEATURES) == 8
    for names in (obs.NODE_FEATURES, obs.CONTEXT_FEATURES):
        assert [getattr(obs, name.upper()) for name in names] == list(range(len(names)))


def test_shapes_and_types_are_those_of_the_graph() -> None:
    nodes, context = observed([100.0, 300.0, 200.0])
    assert nodes.shape == (1, 3, 16)
    assert nodes.transpose((0, 2, 1)).flags.c_contiguous
    assert context.shape == (1, 8)
    assert nodes.dtype == context.dtype == np.dtype("float32")


def test_features_computed_by_hand() -> None:
    nodes, context = observed([100.0, 300.0], [20.0, 60.0], speed=[1.0, 2.0])
    column = nodes[0].T.astype(float)
    assert column[obs.SLOWDOWN] == pytest.approx([4 / 3, 2 / 3])
    assert column[obs.ENERGY] == pytest.approx([4 / 3, 2 / 3])
    assert column[obs.CARBON] == pytest.approx([0.8, 1.2])  # 1·100 against ½·300
    assert column[obs.COST] == pytest.approx([0.8, 1.2])
    assert column[obs.ZONE_CARBON] == pytest.approx([0.5, 1.5])
    assert column[obs.ZONE_PRICE] == pytest.approx([0.5, 1.5])
    assert column[obs.CPU_BEFORE] == pytest.approx([0.25, 0.25])
    assert column[obs.CPU_AFTER] == pytest.approx([0.3125, 0.3125])
    assert column[obs.MEMORY_AFTER] == pytest.approx([0.75, 0.75])
    assert column[obs.GPU_FREE_AFTER] == pytest.approx([0.25, 0.25])
    assert column[obs.GPU_STRANDED] == pytest.approx([0.1875, 0.1875])
    assert column[obs.GPU_SIZE] == pytest.approx([0.5, 0.5])
    assert column[obs.IDLE_SHARE] == pytest.approx([1 / 3, 1 / 3])
    assert context[0].tolist() == pytest.approx(
        [1.0, 1.0, 0.1, np.log(2.0), np.log(3.0), 0.125, 0.25, np.log(2.0) / 10.0]
    )


@pytest.mark.parametrize(
    ("price", "relative"),
    [
        pytest.param([40.0, 80.0], [2 / 3, 4 / 3], id="positive"),
        pytest.param([-40.0, 80.0], [-2 / 3, 4 / 3], id="one-negative"),
        pytest.param([-40.0, 40.0], [-1.0, 1.0], id="mean-of-zero"),
        pytest.param([-80.0, -40.0], [-4 / 3, -2 / 3], id="all-negative-keeps-the-order"),
        pytest.param([0.0, 0.0], [1.0, 1.0], id="all-zero"),
        pytest.param([0.0, 80.0], [0.0, 2.0], id="one-zero"),
    ],
)
def test_prices_of_any_sign_are_normalised(price: list[float], relative: list[float]) -> None:
    nodes, _ = observed([100.0, 100.0], price)
    assert nodes[0, :, obs.COST].tolist() == pytest.approx(relative)
    assert nodes[0, :, obs.ZONE_PRICE].tolist() == pytest.approx(relative)


def test_a_missing_carbon_intensity_leaves_carbon_out_for_all() -> None:
    nodes, context = observed([100.0, np.nan, 500.0])
    assert nodes[0, :, obs.CARBON].tolist() == [1.0, 1.0, 1.0]
    assert nodes[0, :, obs.ZONE_CARBON].tolist() == [1.0, 1.0, 1.0]
    assert context[0, obs.WEIGHT_CARBON] == 0.0
    assert np.isfinite(nodes).all()


def test_a_missing_price_leaves_the_price_out_for_all_and_weighs_energy() -> None:
    nodes, context = observed([1.0, 1.0, 1.0], [10.0, np.nan, 90.0], curve_class=[0.0, 1.0, 0.0])
    assert nodes[0, :, obs.COST].tolist() == nodes[0, :, obs.ENERGY].tolist()
    assert nodes[0, :, obs.ZONE_PRICE].tolist() == [1.0, 1.0, 1.0]
    assert context[0, obs.WEIGHT_COST] == 1.0


def test_work_that_asks_for_nothing_prefers_nobody() -> None:
    nodes, _ = observed([100.0, 300.0], cores=0.0, gpu_peak_w=[50.0, 50.0])
    for feature in (obs.ENERGY, obs.COST, obs.CARBON):
        assert nodes[0, :, feature].tolist() == [1.0, 1.0]


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 1000.0) | st.just(float("nan")),
            st.floats(-500.0, 1000.0) | st.just(float("nan")),
            st.floats(0.0, 1.0),
            st.sampled_from([0.0, 1.0]),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_every_encoded_value_is_finite_and_every_rule_answers(
    candidates: list[tuple[float, float, float, float]],
) -> None:
    carbon, price, before, curve = (list(column) for column in zip(*candidates, strict=True))
    seen = observed(carbon, price, cpu_before=before, curve_class=curve)
    assert np.isfinite(seen.nodes).all()
    assert np.isfinite(seen.context).all()
    for rule in WHERE_RULES.values():
        relative_cost = rule(*seen)
        assert relative_cost.shape == (1, len(candidates))
        assert relative_cost.dtype == np.float32
        assert np.isfinite(relative_cost).all()


def test_a_batch_is_encoded_like_its_decisions_one_by_one() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((12, 3, 5)) + 0.5
    table[8] = rng.integers(0, 2, (3, 5))
    work, grid = rng.random((4, 3, 1)) + 0.1, rng.random((2, 3, 5))
    grid[0, 1, 2] = grid[1, 2, 0] = np.nan

    def encode(rows: slice) -> Observation:
        nodes = NodeColumns(*(column[rows] for column in table))
        workload = WorkloadColumns(*(column[rows] for column in work))
        zones = ZoneColumns(*(column[rows] for column in grid))
        cost = placement_cost(nodes, workload, zones, MODEL)
        return encode_where(nodes, workload, zones, cost, MODEL, Weights(1.0, 2.0, 0.1))

    whole = encode(slice(None))
    for row in range(3):
        alone = encode(slice(row, row + 1))
        np.testing.assert_array_equal(whole.nodes[row], alone.nodes[0])
        np.testing.assert_array_equal(whole.context[row], alone.context[0])
