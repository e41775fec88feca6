from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.billing.accounting import Bill, bill_placements, bill_schedule, total_bill
from greensched_policies.billing.timelines import Caps
from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    placement_cost,
)
from tests.policies.billing.placed_jobs import HOUR, MODEL, NODES, WATTS, ZONES, Job, placed

SLEEPY = MODEL._replace(empty_nodes_sleep=True)


def bill(jobs: list[Job], start_s: float, end_s: float, model: CostModel = MODEL) -> Bill:
    return bill_schedule(NODES, placed(jobs), ZONES, (start_s, end_s), model)


def columns(found: Bill) -> np.ndarray:
    return np.stack([np.asarray(column, dtype=float) for column in astuple(found)])


jobs = st.lists(
    st.builds(
        lambda node, start_s, length_s, *asked: Job(node, start_s, start_s + length_s, *asked),
        st.integers(0, 2),
        st.integers(-1000, 8000).map(float),
        st.integers(0, 5000).map(float),
        st.floats(0.0, 12.0),
        st.integers(0, 2).map(float),
        st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    ),
    max_size=12,
)


def test_a_bill_computed_by_hand() -> None:
    # 8 cores requested, 4 used of 10: 80 W above idle, over the step at one hour.
    found = bill([Job(0, HOUR / 2, 1.5 * HOUR, 8.0)], 0.0, 2 * HOUR)
    assert found.energy_active_j[0] == pytest.approx(80.0 * HOUR)
    assert found.energy_idle_j[0] == pytest.approx(100.0 * 2 * HOUR)
    assert found.carbon_active_g[0] == pytest.approx(0.04 * 400 + 0.04 * 200)
    assert found.carbon_idle_g[0] == pytest.approx(0.1 * 400 + 0.1 * 200)
    assert found.cost_active[0] == pytest.approx(0.04e-3 * (100 - 20))
    assert found.cost_idle[0] == pytest.approx(0.1e-3 * (100 - 20))
    assert found.is_used.tolist() == [True, False, False]
    assert total_bill(found).nodes_used == 1


def test_gpus_draw_between_idle_and_peak() -> None:
    found = bill([Job(1, 0.0, HOUR, 0.0, 2.0)], 0.0, HOUR)
    assert found.energy_active_j[1] == pytest.approx(2 * 350 * 0.8 * 1.2 * HOUR)
    assert found.energy_idle_j[1] == pytest.approx((50 + 2 * 50) * 1.2 * HOUR)


def test_two_kinds_of_work_on_a_node_draw_the_watts_of_their_own_kind() -> None:
    found = bill([Job(1, 0.0, HOUR, 0.0, 1.0, 0.2), Job(1, 0.0, HOUR / 2, 0.0, 1.0, 1.0)], 0, HOUR)
    assert found.energy_active_j[1] == pytest.approx((0.2 + 1.0 / 2) * 350 * 1.2 * HOUR)


@given(jobs)
def test_work_that_gives_no_share_draws_the_models(placements: list[Job]) -> None:
    asked = placed([job._replace(gpu_ratio=MODEL.gpu_ratio) for job in placements])
    window_s = (0.0, 2 * HOUR)
    given_none = bill_schedule(NODES, asked._replace(gpu_ratio=None), ZONES, window_s, MODEL)
    given_each = bill_schedule(NODES, asked, ZONES, window_s, MODEL)
    assert (columns(given_none) == columns(given_each)).all()


@given(jobs, st.lists(st.tuples(st.integers(0, 7200), st.sampled_from([0.2, 0.5, 0.9, 1.0]))))
def test_a_cap_limits_each_gpu_to_its_own_watts(
    placements: list[Job], caps: list[tuple[int, float]]
) -> None:
    told = sorted((float(at_s), cap) for at_s, cap in caps)
    at_s, cap = np.array(told).reshape(-1, 2).T
    capped = Caps(np.ones(at_s.size, np.int64), at_s, np.ones(at_s.size), cap)
    window_s, asked = (0.0, 2 * HOUR), placed([job._replace(cpu_cores=0.0) for job in placements])
    found = bill_schedule(NODES, asked, ZONES, window_s, MODEL, caps=capped)
    drawn_j, seconds = 0.0, np.arange(2 * HOUR)
    limits = np.append(1.0, cap)[np.searchsorted(at_s, seconds, side="right")]
    for job in placements:
        if job.node == 1:
            runs = (job.start_s <= seconds) & (seconds < job.end_s)
            above_w = np.clip(400 * limits - 50, 0.0, 350 * job.gpu_ratio)
            drawn_j += float((runs * job.gpus * above_w).sum()) * 1.2
    assert found.energy_active_j[1] == pytest.approx(drawn_j, rel=1e-9, abs=1e-6)
    shares = bill_placements(NODES, asked, ZONES, window_s, MODEL, capped)
    on_node = np.array([job.node == 1 for job in placements], bool)
    assert shares.energy_active_j[on_node].sum() == pytest.approx(drawn_j, rel=1e-9, abs=1e-6)


def test_empty_nodes_that_sleep_are_billed_only_while_something_runs() -> None:
    found = bill([Job(0, 0.0, 900.0, 1.0)], 0.0, HOUR, SLEEPY)
    assert found.energy_idle_j.tolist() == pytest.approx([100.0 * 900.0, 0.0, 0.0])


@pytest.mark.parametrize("sleep", [False, True])
def test_a_single_placement_is_billed_what_the_candidate_was_said_to_cost(sleep: bool) -> None:
    model = MODEL._replace(empty_nodes_sleep=sleep)
    values = (20.0, 0.0, 1.0, 1.0, 2.0, 2.0, 50.0, 400.0, 1.0, 1.0, 1.2, 1.0)
    said = placement_cost(
        NodeColumns(*(np.array([[value]]) for value in values)),
        WorkloadColumns(*(np.array([value]) for value in (3.0, 1.0, 1.0, HOUR))),
        ZoneColumns(np.array([[50.0]]), np.array([[30.0]])),
        model,
    )
    found = bill([Job(1, 0.0, HOUR, 3.0, 1.0)], 0.0, HOUR, model)
    billed = found.energy_active_j[1] + (found.energy_idle_j[1] if sleep else 0.0)
    assert billed == pytest.approx(said.energy_j[0, 0])


@given(jobs, st.randoms(use_true_random=False))
def test_the_order_of_placements_does_not_matter(placements: list[Job], random: object) -> None:
    shuffled = placements.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined] # hypothesis types it as object
    first, second = bill(placements, 0.0, 2 * HOUR), bill(shuffled, 0.0, 2 * HOUR)
    assert (columns(first) == columns(second)).all()


@given(jobs, st.floats(0.0, 2 * HOUR), st.sampled_from([MODEL, SLEEPY]))
def test_bills_of_adjoining_windows_add_up(
    placements: list[Job], middle: float, model: CostModel
) -> None:
    whole = columns(bill(placements, 0.0, 2 * HOUR, model))[:6]
    first = columns(bill(placements, 0.0, middle, model))[:6]
    second = columns(bill(placements, middle, 2 * HOUR, model))[:6]
    np.testing.assert_allclose(first + second, whole, rtol=1e-9, atol=1e-6)


@given(jobs, st.sampled_from([MODEL, SLEEPY]))
def test_carbon_lies_between_the_cleanest_and_the_dirtiest_hour(
    placements: list[Job], model: CostModel
) -> None:
    found = bill(placements, 0.0, 2 * HOUR, model)
    for energy_j, carbon_g in (
        (found.energy_active_j, found.carbon_active_g),
        (found.energy_idle_j, found.carbon_idle_g),
    ):
        kwh = energy_j / 3.6e6
        least = np.array([200.0, 50.0, 200.0]) * kwh
        most = np.array([400.0, 50.0, 400.0]) * kwh
        assert (carbon_g >= least * (1 - 1e-9) - 1e-9).all()
        assert (carbon_g <= most * (1 + 1e-9) + 1e-9).all()


@given(jobs)
def test_energy_is_the_integral_of_power(placements: list[Job]) -> None:
    found = bill(placements, 0.0, 2 * HOUR)
    at_s = np.arange(2 * HOUR) + 0.5  # starts and ends are whole seconds
    for row, (capacity, watts) in enumerate(zip(NODES.cpu_capacity, (0, 1, 0), strict=True)):
        cores, gpu_w = np.zeros(at_s.size), np.zeros(at_s.size)
        range_w = NODES.gpu_peak_w[row] - NODES.gpu_idle_w[row]
        for job in placements:
            if job.node == row:
                is_running = (job.start_s <= at_s) & (at_s < job.end_s)
                cores += is_running * job.cpu_cores
                gpu_w += is_running * job.gpus * job.gpu_ratio * range_w
        curve = WATTS[watts * 11 : watts * 11 + 11]
        load = np.minimum(cores * 0.5 / capacity, 1.0)
        cpu_w = np.interp(load, np.linspace(0.0, 1.0, 11), curve) - curve[0]
        joules = float((cpu_w + gpu_w).sum()) * NODES.pue[row]
        assert found.energy_active_j[row] == pytest.approx(joules, rel=1e-9, abs=1e-3)


@given(jobs)
def test_the_total_is_the_sum_over_the_nodes(placements: list[Job]) -> None:
    found = bill(placements, 0.0, 2 * HOUR)
    total = total_bill(found)
    assert list(astuple(total)) == pytest.approx(columns(found).sum(axis=1).tolist())


def test_missing_data_makes_money_and_carbon_unknown_and_leaves_energy() -> None:
    nodes = NODES._replace(zone=np.array([0, -1, 1]))
    late = (ZONES[0]._replace(times_s=np.array([600.0, HOUR])), ZONES[1])
    found = bill_schedule(nodes, placed([]), late, (0.0, HOUR), MODEL)
    assert np.isnan(found.carbon_idle_g).tolist() == [True, True, False]
    assert np.isnan(found.cost_idle).tolist() == [True, True, False]
    assert np.isfinite(found.energy_idle_j).all()
    assert np.isnan(total_bill(found).carbon_idle_g)


@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [
        pytest.param(0.0, float("inf"), id="still-running"),
        pytest.param(-HOUR, 2 * HOUR, id="beyond-the-window"),
    ],
)
def test_only_what_lies_within_the_window_is_billed(start_s: float, end_s: float) -> None:
    found = bill([Job(0, start_s, end_s, 8.0)], 0.0, HOUR)
    assert found.energy_active_j[0] == pytest.approx(80.0 * HOUR)


def test_a_window_of_no_length_costs_nothing() -> None:
    assert not columns(bill([Job(0, 0.0, HOUR, 8.0)], 60.0, 60.0)).any()


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before it starts"):
        bill([], 1.0, 0.0)
    with pytest.raises(ValueError, match="does not exist"):
        bill([Job(3, 0.0, 1.0, 1.0)], 0.0, 1.0)
