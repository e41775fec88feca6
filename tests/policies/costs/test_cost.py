import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    PlacementCost,
    WorkloadColumns,
    ZoneColumns,
    curve_table,
    placement_cost,
    watts_at,
)

# Two classes: 100 W idle to 300 W in a straight line; a step of 50 W at 10 %, then flat.
STRAIGHT = [100.0 + 20.0 * k for k in range(11)]
STEP = [100.0] + [150.0] * 10
WATTS = curve_table([STRAIGHT, STEP])


def model(*, empty_nodes_sleep: bool = False) -> CostModel:
    return CostModel(WATTS, 0.5, 0.8, empty_nodes_sleep)


def cost_of(
    *,
    cores: float = 4.0,
    gpus: float = 0.0,
    runtime_s: float = 3600.0,
    before: float = 0.2,
    capacity: float = 10.0,
    curve: int = 0,
    speed: float = 1.0,
    pue: float = 1.0,
    is_empty: bool = False,
    carbon: float = 400.0,
    price: float = 80.0,
    empty_nodes_sleep: bool = False,
) -> PlacementCost:
    values = (capacity, before, 64e9, 32e9, 2.0, 2.0, 50.0, 400.0, curve, speed, pue, is_empty)
    nodes = NodeColumns(*(np.array([[float(value)]]) for value in values))
    workload = WorkloadColumns(*(np.array([[v]]) for v in (cores, 1e9, gpus, runtime_s)))
    zones = ZoneColumns(np.array([[carbon]]), np.array([[price]]))
    return placement_cost(nodes, workload, zones, model(empty_nodes_sleep=empty_nodes_sleep))


@pytest.mark.parametrize(
    ("utilisation", "watts"),
    [
        pytest.param(0.0, 100.0, id="idle"),
        pytest.param(0.05, 125.0, id="between-two-points"),
        pytest.param(0.1, 150.0, id="on-a-point"),
        pytest.param(1.0, 150.0, id="full"),
    ],
)
def test_watts_are_linear_between_the_points_of_the_curve(utilisation: float, watts: float) -> None:
    starts = np.array([[11]], dtype=np.int64)
    assert watts_at(WATTS, starts, np.array([[utilisation]])) == pytest.approx(watts)


# 4 cores requested, half of it used, on 10 cores: 0.2 → 0.4, 40 W on the straight curve.
@pytest.mark.parametrize(
    ("candidate", "watts"),
    [
        pytest.param(cost_of(), 40.0, id="cpu-only"),
        pytest.param(cost_of(curve=1), 0.0, id="flat-part-of-a-curve-adds-nothing"),
        pytest.param(cost_of(curve=1, before=0.0), 50.0, id="step-off-idle"),
        pytest.param(cost_of(before=0.9), 20.0, id="clipped-at-full"),
        pytest.param(cost_of(gpus=2.0), 40.0 + 2 * 350 * 0.8, id="gpus"),
        pytest.param(cost_of(pue=1.5), 60.0, id="pue"),
        pytest.param(cost_of(is_empty=True), 40.0, id="empty-but-on-anyway"),
        pytest.param(
            cost_of(is_empty=True, empty_nodes_sleep=True), 40.0 + 100.0 + 2 * 50, id="wakes"
        ),
        pytest.param(cost_of(empty_nodes_sleep=True), 40.0, id="awake-already"),
        pytest.param(cost_of(capacity=0.0), 160.0, id="no-capacity-counts-as-full"),
    ],
)
def test_marginal_watts_as_computed_by_hand(candidate: PlacementCost, watts: float) -> None:
    assert candidate.power_w[0, 0] == pytest.approx(watts)


def test_energy_money_and_carbon_follow_from_watts_and_runtime() -> None:
    candidate = cost_of(runtime_s=7200.0, speed=2.0)  # 40 W for one hour
    assert candidate.runtime_s[0, 0] == 3600.0
    assert candidate.cpu_after[0, 0] == pytest.approx(0.4)
    assert candidate.energy_j[0, 0] == pytest.approx(144_000.0)
    assert candidate.carbon_g[0, 0] == pytest.approx(0.04 * 400.0)
    assert candidate.cost[0, 0] == pytest.approx(0.04e-3 * 80.0)


def test_a_negative_price_earns_money() -> None:
    assert cost_of(price=-50.0).cost[0, 0] == pytest.approx(-0.002)


def test_no_data_is_never_a_zero() -> None:
    candidate = cost_of(carbon=np.nan, price=np.nan)
    assert np.isnan(candidate.carbon_g[0, 0])
    assert np.isnan(candidate.cost[0, 0])
    assert candidate.energy_j[0, 0] > 0.0


@given(
    before=st.floats(0.0, 1.0),
    cores=st.floats(0.0, 500.0),
    more=st.floats(0.0, 500.0),
    gpus=st.integers(0, 8),
)
def test_more_work_never_draws_less(before: float, cores: float, more: float, gpus: int) -> None:
    less = cost_of(before=before, cores=cores, gpus=gpus)
    greater = cost_of(before=before, cores=cores + more, gpus=gpus)
    assert 0.0 <= less.power_w[0, 0] <= greater.power_w[0, 0] + 1e-9


@pytest.mark.parametrize(
    "curves",
    [
        pytest.param([[1.0] * 10], id="ten-points"),
        pytest.param([[1.0] * 10 + [-1.0]], id="negative"),
        pytest.param([[1.0] * 10 + [float("nan")]], id="nan"),
    ],
)
def test_a_wrong_curve_is_refused(curves: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="power curve"):
        curve_table(curves)
