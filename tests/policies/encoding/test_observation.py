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
)
from greensched_policies.encoding import observation as obs
from greensched_policies.encoding.observation import Observation
from greensched_policies.rules.catalogue import WHERE_RULES
from tests.policies.nodes_seen import decision, seen_by_library

NAN = float("nan")
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
    return seen_by_library(nodes, workload, zones, MODEL, decision(1.0, 1.0, 0.1)).observation


def test_names_and_indexes_belong_together() -> None:
    assert len(obs.NODE_FEATURES) == 22
    assert len(obs.CONTEXT_FEATURES) == 15
    for names in (obs.NODE_FEATURES, obs.CONTEXT_FEATURES):
        assert [getattr(obs, name.upper()) for name in names] == list(range(len(names)))


def test_shapes_and_types_are_those_of_the_graph() -> None:
    nodes, context = observed([100.0, 300.0, 200.0])
    assert nodes.shape == (1, 3, 22)
    assert nodes.transpose((0, 2, 1)).flags.c_contiguous
    assert context.shape == (1, 15)
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
    assert context[0, : len(obs.WORK_FEATURES)].tolist() == pytest.approx(
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


@pytest.mark.parametrize(
    ("values", "filled"),
    [
        pytest.param([10.0, 30.0], [10.0, 30.0], id="all-known"),
        pytest.param([10.0, NAN, 30.0], [10.0, 20.0, 30.0], id="one-without"),
        pytest.param([10.0, 10.0, NAN, 40.0], [10.0, 10.0, 20.0, 40.0], id="by-candidates"),
        pytest.param([-40.0, NAN], [-40.0, -40.0], id="negative"),
    ],
)
def test_a_candidate_without_data_gets_the_mean_of_the_others(
    values: list[float], filled: list[float]
) -> None:
    others = [50.0] * len(values)
    for nodes, wanted, feature in (
        (observed(others, values), observed(others, filled), obs.ZONE_PRICE),
        (observed(others, values), observed(others, filled), obs.COST),
        (observed(values, others), observed(filled, others), obs.ZONE_CARBON),
        (observed(values, others), observed(filled, others), obs.CARBON),
    ):
        assert nodes[0][0, :, feature].tolist() == pytest.approx(wanted[0][0, :, feature].tolist())


def test_it_is_told_whether_candidates_lack_data() -> None:
    nodes = NodeColumns(*np.ones((12, 1, 2)))._replace(curve_class=np.zeros((1, 2)))
    workload = WorkloadColumns(*(np.array([[1.0]]) for _ in range(4)))
    for carbon, price in (
        ([1.0, 1.0], [1.0, NAN]),
        ([NAN, 1.0], [1.0, 1.0]),
        ([NAN] * 2, [1.0] * 2),
    ):
        zones = ZoneColumns(np.array([carbon]), np.array([price]))
        seen = seen_by_library(nodes, workload, zones, MODEL, decision(1.0, 1.0, 0.1))
        assert (seen.lack_carbon, seen.lack_price) == (NAN in carbon, NAN in price)


def test_without_any_carbon_intensity_carbon_is_left_out() -> None:
    nodes, context = observed([NAN, NAN, NAN])
    assert nodes[0, :, obs.CARBON].tolist() == [1.0, 1.0, 1.0]
    assert nodes[0, :, obs.ZONE_CARBON].tolist() == [1.0, 1.0, 1.0]
    assert context[0, obs.WEIGHT_CARBON] == 0.0
    assert np.isfinite(nodes).all()


def test_without_any_price_the_price_is_left_out_and_energy_weighs() -> None:
    nodes, context = observed([1.0, 1.0, 1.0], [NAN, NAN, NAN], curve_class=[0.0, 1.0, 0.0])
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
