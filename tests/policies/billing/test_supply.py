"""Panels and a battery at a site: where a zone's joules come from, and who pays for which."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.billing.accounting import bill_schedule
from greensched_policies.billing.supply import (
    NO_BATTERY,
    Balance,
    Battery,
    SolarPlant,
    balance_of,
    balances_of,
    imported,
)
from greensched_policies.billing.timelines import (
    NO_CAPS,
    NO_SLEEPS,
    BilledNodes,
    Placements,
    ZoneSeries,
)
from greensched_policies.costs.cost import CostModel, curve_table

HOUR = 3600.0
WH = 3600.0
BATTERY = Battery(100 * WH, 200.0, 50.0, 0.8)


def balance(drawn_w: list[float], yield_w: list[float], battery: Battery) -> Balance:
    times_s = np.linspace(0.0, HOUR * len(drawn_w), len(drawn_w) + 1)
    return balance_of(times_s, np.array(drawn_w), np.array(yield_w), battery)


def test_the_sun_serves_the_nodes_first_and_the_rest_is_curtailed_without_a_battery() -> None:
    found = balance([100, 100, 100], [0, 60, 150], NO_BATTERY)
    assert found.used_w.tolist() == [0, 60, 100]
    assert found.imported_w.tolist() == [100, 40, 0]
    assert found.curtailed_w.tolist() == [0, 0, 50]


def test_a_battery_is_full_and_empty_at_the_very_moment() -> None:
    """250 W over charge 200 W, of which 160 W are kept: full after 37.5 min; 50 W last 2 h."""
    found = balance([100, 100, 100, 100], [350, 0, 0, 0], BATTERY)
    assert found.length_s.tolist() == pytest.approx([2250, 1350, 3600, 3600, 3600])
    assert found.charge_w.tolist() == [200, 0, 0, 0, 0]
    assert found.discharge_w.tolist() == [0, 0, 50, 50, 0]
    assert found.curtailed_w.tolist() == [50, 250, 0, 0, 0]
    assert found.imported_w.tolist() == [0, 0, 50, 50, 100]
    assert (found.stored_j / WH).tolist() == pytest.approx([0, 100, 100, 50, 0, 0])


def test_what_is_lost_is_lost_in_charging() -> None:
    found = balance([0, 40], [100, 0], BATTERY)
    assert found.joules(found.charge_w) == pytest.approx(100 * WH)
    assert found.joules(found.discharge_w) == pytest.approx(40 * WH)
    assert found.stored_j[-1] == pytest.approx(40 * WH)


def test_without_data_of_the_sun_nothing_is_known() -> None:
    found = balance([100, 100], [float("nan"), 150], NO_BATTERY)
    assert np.isnan(found.imported_w[0])
    assert found.imported_w[1] == 0


watts = st.floats(0.0, 500.0)
batteries = st.builds(
    Battery, st.floats(0.0, 1e6), st.floats(0.0, 300.0), st.floats(0.0, 300.0), st.floats(0.5, 1.0)
)


@given(st.lists(st.tuples(watts, watts), min_size=1, max_size=12), batteries)
def test_energy_is_conserved_and_nothing_beyond_what_the_battery_can(
    steps: list[tuple[float, float]], battery: Battery
) -> None:
    drawn, yielded = (list(column) for column in zip(*steps, strict=True))
    found = balance(drawn, yielded, battery)
    assert found.length_s.sum() == pytest.approx(HOUR * len(steps))
    used, charged, given_, bought, curtailed = (
        found.joules(each)
        for each in (found.used_w, found.charge_w, found.discharge_w, found.imported_w,
                     found.curtailed_w)
    )  # fmt: skip
    for whole, parts in (
        (sum(drawn) * HOUR, used + given_ + bought),
        (sum(yielded) * HOUR, used + charged + curtailed),
        (charged * battery.efficiency, given_ + found.stored_j[-1]),
    ):
        assert parts == pytest.approx(whole, rel=1e-9, abs=1e-3)
    assert (found.stored_j >= 0.0).all()
    assert (found.stored_j <= battery.capacity_j).all()
    for each in (found.imported_w, found.curtailed_w, found.charge_w, found.discharge_w):
        assert (each >= -1e-9).all()
    assert (found.charge_w <= battery.charge_w).all()
    assert (found.discharge_w <= battery.discharge_w).all()
    # Nothing is bought while there is plant to spare, or the battery could still give more.
    assert not ((found.imported_w > 1e-9) & (found.curtailed_w > 1e-9)).any()


@given(st.lists(st.tuples(watts, watts), min_size=1, max_size=12), batteries, st.floats(0.0, 300.0))
def test_who_draws_more_never_imports_less(
    steps: list[tuple[float, float]], battery: Battery, more_w: float
) -> None:
    drawn, yielded = (list(column) for column in zip(*steps, strict=True))
    less = balance(drawn, yielded, battery)
    more = balance([drawn[0] + more_w, *drawn[1:]], yielded, battery)
    added_j = more.joules(more.imported_w) - less.joules(less.imported_w)
    assert -1e-3 <= added_j <= more_w * HOUR + 1e-3


NODES = BilledNodes(
    cpu_capacity=np.array([10.0, 10.0, 10.0]),
    curve_class=np.array([0, 0, 0]),
    gpu_capacity=np.zeros(3),
    gpu_idle_w=np.zeros(3),
    gpu_peak_w=np.zeros(3),
    pue=np.array([1.0, 1.5, 1.0]),
    zone=np.array([0, 0, 1]),
)
MODEL = CostModel(curve_table([[100.0 + 20.0 * k for k in range(11)]]), 0.5, 0.8, False)
ZONES = (
    ZoneSeries(np.array([0.0, HOUR]), np.array([400.0, 200.0]), np.array([100.0, -20.0])),
    ZoneSeries(np.array([0.0]), np.array([50.0]), np.array([30.0])),
)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.floats(0.0, 2 * HOUR), st.floats(0.5, 5.0)), max_size=6
    ),
    st.floats(0.0, 600.0),
    batteries,
)
def test_the_bills_of_the_nodes_add_up_to_that_of_the_zones_imports(
    jobs: list[tuple[int, float, float]], yield_w: float, battery: Battery
) -> None:
    node = np.array([job[0] for job in jobs], np.int64)
    start_s = np.array([job[1] for job in jobs])
    cores = np.array([job[2] for job in jobs])
    placed = Placements(node, start_s, start_s + 0.7 * HOUR, cores, np.zeros(len(jobs)))
    window_s = (0.0, 3 * HOUR)
    plants = [SolarPlant(np.array([yield_w, 0.0]), battery), None]
    sites = list(zip(ZONES, plants, strict=True))
    balances = balances_of(NODES, placed, sites, window_s, MODEL, NO_SLEEPS, NO_CAPS)
    series = [imported(*each) for each in zip(ZONES, balances, strict=True)]
    plain = bill_schedule(NODES, placed, ZONES, window_s, MODEL)
    bill = bill_schedule(NODES, placed, series, window_s, MODEL)
    found = balances[0]
    assert found is not None
    assert balances[1] is None
    in_first_hour = np.where(found.start_s < HOUR, 1.0, 0.0)
    at = found.imported_w * (in_first_hour * 400 + (1 - in_first_hour) * 200) / 3.6e6
    billed_g = (bill.carbon_active_g + bill.carbon_idle_g)[:2].sum()
    assert billed_g == pytest.approx(found.joules(at), rel=1e-9, abs=1e-9)
    drawn_j = (bill.energy_active_j + bill.energy_idle_j)[:2].sum()
    assert drawn_j == pytest.approx(found.joules(found.drawn_w), rel=1e-9)
    # Energy is what nodes draw, whoever gives it; others pay as before.
    for name in vars(bill):
        ours, theirs = getattr(bill, name), getattr(plain, name)
        if name.startswith("energy"):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        assert ours[2] == pytest.approx(theirs[2], rel=1e-9)
