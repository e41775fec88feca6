from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.billing.accounting import (
    Bill,
    PlacementBill,
    bill_placements,
    bill_schedule,
)
from greensched_policies.billing.timelines import BilledNodes, Placements, ZoneSeries
from tests.policies.billing.placed_jobs import HOUR, MODEL, NODES, ZONES, Job, placed


class Both(NamedTuple):
    nodes: Bill
    jobs: PlacementBill


def bill(jobs: list[Job], until_s: float = 2 * HOUR, nodes: BilledNodes = NODES) -> Both:
    arguments = (nodes, placed(jobs), ZONES, (0.0, until_s), MODEL)
    return Both(bill_schedule(*arguments), bill_placements(*arguments))


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


def test_cores_that_run_side_by_side_share_the_watts_by_what_they_request() -> None:
    # 8 cores for an hour, 4 more from its middle on: 70 W above idle throughout, at PUE 1.2.
    found = bill([Job(1, 0.0, HOUR, 8.0), Job(1, HOUR / 2, 1.5 * HOUR, 4.0)]).jobs
    first_wh = (70.0 / 2 + 70.0 / 2 * 8 / 12) * 1.2
    second_wh = (70.0 / 2 * 4 / 12 + 70.0 / 2) * 1.2
    assert found.energy_active_j == pytest.approx([first_wh * HOUR, second_wh * HOUR])
    assert found.carbon_active_g == pytest.approx([first_wh * 0.05, second_wh * 0.05])
    assert found.cost_active == pytest.approx([first_wh * 30e-6, second_wh * 30e-6])


def test_gpus_are_charged_to_those_who_request_them() -> None:
    found = bill([Job(1, 0.0, HOUR, 4.0, 2.0), Job(1, 0.0, HOUR, 4.0)], HOUR).jobs
    cpu_wh, gpu_wh = 70.0 / 2 * 1.2, 2 * 350 * 0.8 * 1.2
    assert found.energy_active_j == pytest.approx([(cpu_wh + gpu_wh) * HOUR, cpu_wh * HOUR])


def test_each_is_charged_the_watts_that_its_own_gpus_draw() -> None:
    found = bill([Job(1, 0.0, HOUR, 0.0, 1.0, 0.2), Job(1, 0.0, HOUR, 0.0, 1.0, 1.0)], HOUR).jobs
    assert found.energy_active_j == pytest.approx([0.2 * 350 * 1.2 * HOUR, 350 * 1.2 * HOUR])


def test_each_hour_is_charged_at_its_own_carbon_and_price() -> None:
    # 80 W above idle from half past to half past, over the step at one hour.
    found = bill([Job(0, HOUR / 2, 1.5 * HOUR, 8.0)]).jobs
    assert found.carbon_active_g == pytest.approx([0.04 * 400 + 0.04 * 200])
    assert found.cost_active == pytest.approx([0.04e-3 * (100 - 20)])


@given(jobs)
def test_shares_add_up_to_the_nodes_active_part(placements: list[Job]) -> None:
    found = bill(placements)
    node = np.array([job.node for job in placements], dtype=np.int64)
    for shares, whole in (
        (found.jobs.energy_active_j, found.nodes.energy_active_j),
        (found.jobs.cost_active, found.nodes.cost_active),
        (found.jobs.carbon_active_g, found.nodes.carbon_active_g),
    ):
        assert np.bincount(node, shares, 3) == pytest.approx(whole, rel=1e-9, abs=1e-9)


@given(jobs, st.randoms(use_true_random=False))
def test_a_share_does_not_depend_on_the_order_of_placements(
    placements: list[Job], random: object
) -> None:
    order = list(range(len(placements)))
    random.shuffle(order)  # type: ignore[attr-defined] # hypothesis types it as object
    first, second = bill(placements).jobs, bill([placements[place] for place in order]).jobs
    for one, other in zip(first, second, strict=True):
        assert (one[order] == other).all()


@given(jobs)
def test_who_requests_nothing_or_runs_at_no_time_is_charged_nothing(placements: list[Job]) -> None:
    idle = [Job(1, 0.0, HOUR, 0.0), Job(1, HOUR, HOUR, 4.0, 1.0), Job(1, 3 * HOUR, 4 * HOUR, 4.0)]
    found = bill(placements + idle).jobs
    assert not np.stack(found)[:, len(placements) :].any()


@given(jobs)
def test_equal_placements_have_equal_shares(placements: list[Job]) -> None:
    twin = Job(1, HOUR / 4, 1.25 * HOUR, 3.0, 1.0)
    for column in bill([twin, *placements, twin]).jobs:
        assert column[0] == column[-1]


def test_what_is_too_small_to_be_seen_beside_others_costs_next_to_nothing() -> None:
    # Beside 8 cores a core of 1e-20 vanishes in the sum; it runs on alone.
    found = bill([Job(0, 0.0, HOUR, 8.0), Job(0, 0.0, 2 * HOUR, 1e-20)]).jobs
    assert found.energy_active_j == pytest.approx([80.0 * HOUR, 0.0], abs=1e-9)


def test_only_those_who_ran_without_data_have_an_unknown_bill() -> None:
    gap = ZoneSeries(
        np.array([0.0, HOUR, 1.5 * HOUR]), np.array([50.0, np.nan, 50.0]), np.array([30.0] * 3)
    )
    node, start_s = np.array([1, 1, 1, 1]), np.array([0.0, 0.5, 1.5, 1.0]) * HOUR
    asked = Placements(
        node, start_s, start_s + HOUR, np.array([4.0, 4.0, 4.0, 0.0]), np.zeros(4)
    )  # the last one draws nothing
    found = bill_placements(NODES, asked, (ZONES[0], gap), (0.0, 3 * HOUR), MODEL)
    assert np.isnan(found.carbon_active_g).tolist() == [False, True, False, False]
    assert np.isfinite(found.cost_active).all() and np.isfinite(found.energy_active_j).all()


def test_a_node_in_no_zone_leaves_its_placements_without_money_and_carbon() -> None:
    nowhere = NODES._replace(zone=np.array([-1, 1, 0]))
    found = bill([Job(0, 0.0, HOUR, 8.0), Job(1, 0.0, HOUR, 4.0)], HOUR, nowhere).jobs
    assert np.isnan(found.carbon_active_g).tolist() == [True, False]
    assert np.isnan(found.cost_active).tolist() == [True, False]
    assert np.isfinite(found.energy_active_j).all()


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        bill([Job(3, 0.0, 1.0, 1.0)])
