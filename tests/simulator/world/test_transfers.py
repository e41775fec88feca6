"""Data that lies in one zone: what bringing it to another takes, and who reckons with it."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import Bill, total_bill
from greensched_policies.billing.timelines import ZoneSeries
from greensched_policies.billing.transfers import (
    NO_TRANSFERS,
    TransferColumns,
    Transfers,
    transfer_grams,
    with_transfer,
)
from greensched_policies.compiling.compiled import compiled
from greensched_policies.costs.cost import PlacementCost
from greensched_simulator.arrays.moving import NO_LINKS
from greensched_simulator.bounds.bound import least_totals
from greensched_simulator.policy import policy_named
from greensched_simulator.results.recorded_rows import decision_rows
from greensched_simulator.runs.charges import charge_of
from greensched_simulator.runs.job_times import waits_s
from greensched_simulator.runs.job_transfers import transfers_of
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.scenario.model import ScenarioWorkload
from greensched_simulator.testing.small_worlds import Fields, even_links, make_world, with_outages
from greensched_simulator.world.network import data_of_jobs, links_of
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World

pytestmark = pytest.mark.engine

HOUR = 3600.0
GB, GIB = 1e9, 2.0**30
RUN_NOW = policy_named("run-now")
CLEAN, DIRTY = [(0.0, 100.0, 50.0)], [(0.0, 500.0, 50.0)]


def ran(world: World, policy: str = "run-now") -> Schedule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return simulate(world, policy_named(policy))


def billed(world: World, schedule: Schedule) -> Bill:
    return bill_of(world, schedule, billed_until_s(world, schedule))


def reading(gigabytes: float, zone: int, **more: float) -> Fields:
    return {"data_bytes": gigabytes * GB, "data_zone": zone, **more}


def test_a_job_away_from_its_data_waits_for_it_on_a_node_that_idles() -> None:
    """90 GB at 8 s each, half a second before the first: from the dirty zone into the clean one."""
    node: Fields = {"zone": 0}
    world = make_world([reading(90.0, 1)], [node], [CLEAN, DIRTY], links=even_links(latency_s=0.5))
    schedule = ran(world)
    assert schedule.run_segments.placed_s.tolist() == [0.0]
    assert schedule.start_s.tolist() == [720.5]
    assert schedule.end_s.tolist() == [720.5 + HOUR]
    bill = total_bill(billed(world, schedule))
    assert bill.energy_transfer_j == pytest.approx(90 * 0.06 * 3.6e6)
    assert bill.cost_transfer == pytest.approx(90 * 0.02)
    assert bill.carbon_transfer_g == pytest.approx(90 * 0.06 * (100 + 500) / 2)
    assert bill.energy_idle_j == pytest.approx(2 * HOUR * 100.0)
    assert bill.energy_active_j == pytest.approx(HOUR * 10.0)
    outcome = outcome_of(world, schedule, billed(world, schedule), 2 * HOUR)
    assert outcome.energy_j == pytest.approx(
        bill.energy_active_j + bill.energy_idle_j + 90 * 0.06 * 3.6e6
    )
    assert waits_s(world, schedule).tolist() == [720.5]
    (told,) = (table.to_pylist() for table in decision_rows(world, RUN_NOW, schedule, 9 * HOUR))
    assert [(row["at_s"], row["decision"], row["zone"]) for row in told] == [
        (0.0, "move", "A"), (720.5, "place", "A")
    ]  # fmt: skip


@pytest.mark.parametrize("job", [
    pytest.param(reading(90.0, 0), id="where-it-lies"), pytest.param({}, id="without-any"),
])  # fmt: skip
def test_nothing_is_brought_within_a_zone(job: Fields) -> None:
    world = make_world([job], [{"zone": 0}], [CLEAN, DIRTY], links=even_links())
    schedule = ran(world)
    assert schedule.start_s.tolist() == [0.0]
    assert transfers_of(world, schedule).node.size == 0
    assert total_bill(billed(world, schedule)).energy_transfer_j == 0.0


@pytest.mark.parametrize(("gigabytes", "node"), [
    # A core for an hour is 0.01 kWh: 4 g less in the clean zone, where the data brings 18 g each.
    pytest.param(0.1, 0, id="little-data-moves"), pytest.param(1.0, 1, id="much-stays"),
])  # fmt: skip
def test_the_where_rule_weighs_what_is_brought_against_what_is_saved(
    gigabytes: float, node: int
) -> None:
    nodes: list[Fields] = [{"zone": 0}, {"zone": 1}]
    world = make_world([reading(gigabytes, 1)], nodes, [CLEAN, DIRTY], links=even_links())
    assert ran(world, "least-carbon").node.tolist() == [node]


def test_what_is_paid_for_bytes_counts_as_money() -> None:
    """An hour costs 0.0005 more in the dear zone, and each GB 0.02."""
    cheap, dear = [(0.0, 100.0, 50.0)], [(0.0, 100.0, 100.0)]
    nodes: list[Fields] = [{"zone": 0}, {"zone": 1}]
    for gigabytes, node in ((0.02, 0), (0.03, 1)):
        links = even_links(kwh_per_gb=0.0)
        world = make_world([reading(gigabytes, 1)], nodes, [cheap, dear], links=links)
        assert ran(world, "least-cost").node.tolist() == [node]


@pytest.mark.parametrize(("gigabytes", "start_h"), [
    pytest.param(0.001, 2, id="the-other-zones-clean-hour"),
    pytest.param(5.0, 4, id="its-own-where-little-is-saved-elsewhere"),
])  # fmt: skip
def test_the_when_rule_waits_for_the_zone_in_which_the_job_will_run(
    gigabytes: float, start_h: float
) -> None:
    far = [(0.0, 500.0, 50.0), (2 * HOUR, 20.0, 50.0), (3 * HOUR, 500.0, 50.0)]
    home = [(0.0, 500.0, 50.0), (4 * HOUR, 50.0, 50.0), (5 * HOUR, 500.0, 50.0)]
    job = reading(gigabytes, 1, deadline_s=8 * HOUR)
    nodes: list[Fields] = [{"zone": 0}, {"zone": 1}]
    world = make_world([job], nodes, [far, home], links=even_links(), length_s=8 * HOUR)
    schedule = ran(world, "lowest-window+least-carbon")
    assert schedule.planned_s.tolist() == [start_h * HOUR]
    assert schedule.node.tolist() == [0 if start_h == 2 else 1]


def test_the_latest_start_leaves_time_to_bring_the_data() -> None:
    falling = [(hour * HOUR, 900.0 - 100.0 * hour, 50.0) for hour in range(9)]
    job = reading(90.0, 1, deadline_s=5 * HOUR)
    world = make_world([job], [{}], [falling, DIRTY], links=even_links(s_per_gb=20.0))
    schedule = ran(world, "lowest-window")
    assert schedule.planned_s.tolist() == [3.5 * HOUR]
    assert schedule.end_s.tolist() == [5 * HOUR]


def test_each_worker_gets_its_data_and_all_start_with_the_last() -> None:
    gang = reading(90.0, 0, workers=2.0, cpu_cores=8.0)
    world = make_world([gang], [{"zone": 0}, {"zone": 1}], [CLEAN, DIRTY], links=even_links())
    schedule = ran(world)
    assert schedule.run_segments.start_s.tolist() == [720.0, 720.0]
    assert transfers_of(world, schedule).node.tolist() == [1]
    assert total_bill(billed(world, schedule)).energy_transfer_j == pytest.approx(5.4 * 3.6e6)


def test_a_suspended_job_leaves_its_data_where_it_ran() -> None:
    """Planned for the first zone's clean hours, of which the later ones are cleaner elsewhere."""
    here = [(0.0, 50.0, 50.0), (HOUR, 900.0, 50.0), (5 * HOUR, 60.0, 50.0), (7 * HOUR, 900.0, 50.0)]
    there = [(0.0, 900.0, 50.0), (5 * HOUR, 55.0, 50.0), (7 * HOUR, 900.0, 50.0)]
    job = reading(1.0, 1, runtime_s=3 * HOUR, save_every_s=0.0, deadline_s=9 * HOUR, cpu_cores=8.0)
    nodes: list[Fields] = [{"zone": 0}, {"zone": 1}]
    links = even_links(s_per_gb=0.0, kwh_per_gb=1e-4, price_per_gb=0.0)
    world = make_world([job], nodes, [here, there], links=links, length_s=9 * HOUR)
    schedule = ran(world, "planned-window+least-carbon+pause-freely")
    told = schedule.run_segments
    assert (told.start_s / HOUR).tolist() == [0.0, 5.0]
    assert (told.node.tolist(), told.data_zone.tolist()) == ([0, 1], [1, 0])
    moved = transfers_of(world, schedule)
    assert (moved.node.tolist(), moved.from_zone.tolist()) == ([0, 1], [1, 0])


def test_what_is_stopped_before_its_data_came_is_billed_for_a_part_and_fetches_it_again() -> None:
    """The node fails after half of 900 s; the next one is in the same zone."""
    job = reading(90.0, 1)
    world = make_world([job], [{}, {}], [CLEAN, DIRTY], links=even_links(s_per_gb=10.0))
    schedule = ran(with_outages(world, (0, 0.125, 9.0)), "first-fit")
    assert schedule.run_segments.start_s.tolist() == [450.0, 1350.0]
    moved = transfers_of(world, schedule)
    assert moved.from_zone.tolist() == [1, 1]
    assert (moved.energy_j / (0.06 * 3.6e6)).round(6).tolist() == [45.0, 90.0]


def test_a_transfer_that_waited_for_its_node_to_wake_is_billed_for_what_came() -> None:
    """Placed at an hour, awake after 300 s, and stopped 100 s later, of 900."""
    node: Fields = {"sleep_w": 5.0, "wake_s": 300.0, "wake_w": 100.0}
    job = reading(90.0, 1, arrival_s=HOUR)
    world = make_world([job], [node, node], [CLEAN, DIRTY], links=even_links(s_per_gb=10.0))
    schedule = ran(with_outages(world, (0, 1.0 + 400 / HOUR, 9.0)), "first-fit+sleep-at-once")
    moved = transfers_of(world, schedule)
    assert (moved.start_s[0], moved.end_s[0]) == (HOUR + 300.0, HOUR + 400.0)
    assert (moved.energy_j / (0.06 * 3.6e6)).round(6).tolist() == [10.0, 90.0]


def test_a_transfer_of_an_instant_is_billed_as_a_whole() -> None:
    job = reading(1.0, 1, arrival_s=6e5 + 0.3)
    links = even_links(s_per_gb=8e-6)
    world = make_world([job], [{}], [CLEAN, DIRTY], links=links)
    schedule = ran(world)
    assert transfers_of(world, schedule).energy_j.tolist() == [0.06 * 3.6e6]
    bill = total_bill(billed(world, schedule))
    assert bill.carbon_transfer_g == pytest.approx(0.06 * 300, rel=1e-12)


def test_rules_take_another_zones_carbon_where_that_of_the_data_is_not_forecast() -> None:
    zones = [CLEAN, DIRTY, [(0.0, 10.0, 50.0)]]
    unknown = [[(0.0, np.nan, 50.0)], *zones[1:]]
    links = np.array([0.0, 8e-9, 1e-6, 0.0])[:, None, None] * (1.0 - np.eye(3))
    nodes: list[Fields] = [{"zone": 1}, {"zone": 2}]
    for size in (0.0, 0.001):
        world = make_world([reading(size, 0)], nodes, zones, forecasts=unknown, links=links)
        assert ran(world, "least-carbon").node.tolist() == [1]


def test_the_hours_of_nodes_add_up_to_the_bill() -> None:
    changing = [(0.0, 100.0, 50.0), (HOUR, 300.0, 50.0), (2 * HOUR, 700.0, 50.0)]
    jobs = [reading(700.0, 1), reading(90.0, 1, arrival_s=600.0), reading(0.1, 0)]
    world = make_world(jobs, [{}], [changing, DIRTY], links=even_links(latency_s=30.0))
    schedule = ran(world)
    until_s = billed_until_s(world, schedule)
    bill = total_bill(bill_of(world, schedule, until_s))
    (rows,) = node_hours(world, schedule, until_s)
    for name in ("energy_transfer_j", "cost_transfer", "carbon_transfer_g"):
        assert getattr(rows, name).sum() == pytest.approx(getattr(bill, name))
        assert (getattr(rows, name)[:2] > 0.0).all()
    # 700 GB in 5,630 s, the first 3,600 of them at (100 + 500) / 2.
    both = (3600 * (100 + 500) + 2030 * (300 + 500)) / 2 / 5630
    assert bill.carbon_transfer_g == pytest.approx(42 * both + 5.4 * (100 + 500) / 2)


def test_a_gap_while_data_comes_is_not_billed_as_nothing() -> None:
    series = ZoneSeries(np.array([0.0, 60.0]), np.array([100.0, np.nan]), np.zeros(2))
    known = ZoneSeries(np.zeros(1), np.array([300.0]), np.zeros(1))
    one, zero = np.ones(3, np.int64), np.zeros(3, np.int64)
    begin_s, end_s = np.array([0.0, 0.0, 60.0]), np.array([60.0, 61.0, 60.0])
    moved = Transfers(zero, one, begin_s, end_s, np.full(3, 3.6e6), np.zeros(3))
    grams = transfer_grams(moved, zero, [series, known])
    assert grams[0] == pytest.approx(200.0)
    assert np.isnan(grams[1:]).all()
    assert transfer_grams(NO_TRANSFERS, NO_TRANSFERS.node, [series, known]).size == 0


@given(st.integers(0, 2**31))
def test_what_is_brought_costs_the_same_compiled(seed: int) -> None:
    dice = np.random.default_rng(seed)
    cost = PlacementCost(*dice.normal(size=(6, 2, 5)))
    transfer = TransferColumns(*dice.uniform(0.0, 9.0, (4, 2, 5)))
    for ours, plain in zip(
        compiled(with_transfer)(cost, transfer), with_transfer(cost, transfer), strict=True
    ):
        np.testing.assert_allclose(ours, plain, rtol=1e-9)


def test_a_job_that_never_ran_is_charged_for_bringing_its_data_over_the_worst_link() -> None:
    links = even_links()
    links[:, 0, 1] *= 2.0
    plain, far = (
        charge_of(
            make_world([{**reading(size, 0), "cpu_cores": 9.0}], [{}], [CLEAN, DIRTY], links=links),
            never(), HOUR,
        )
        for size in (0.0, 10.0)
    )  # fmt: skip
    assert far.energy_j - plain.energy_j == pytest.approx(2 * 10 * 0.12 * 3.6e6)
    assert far.cost - plain.cost == pytest.approx(2 * 10 * 0.04)
    assert far.carbon_g - plain.carbon_g == pytest.approx(2 * 10 * 0.12 * 500)


def never() -> Schedule:
    """Return the schedule of one job that never ran."""
    world = make_world([{"cpu_cores": 11.0}])
    return ran(world, "reject-all")


def test_a_bound_pays_for_data_that_must_be_brought() -> None:
    """The only node lies elsewhere; no policy can do without."""
    world = make_world([reading(1.0, 1)], [{}], [CLEAN, DIRTY], links=even_links())
    least = least_totals(world, [ran(world)], 2 * HOUR)
    assert least.energy_j == pytest.approx((0.2 + 0.01 + 0.06) * 3.6e6)
    assert least.carbon_g == pytest.approx((0.2 + 0.01) * 100 + 0.06 * 300)
    assert least.cost == pytest.approx((0.2 + 0.01) * 0.05 + 0.02)


def test_a_bound_reckons_that_a_gang_that_goes_on_has_all_data_where_it_ran_first() -> None:
    """One worker away at first, two later: one transfer is billed."""
    hours = [(hour * HOUR, 100.0 if hour < 2 or hour >= 4 else 900.0, 50.0) for hour in range(9)]
    nodes: list[Fields] = [
        {"zone": 1, "cpu_capacity": 8.0},
        {"zone": 0, "cpu_capacity": 8.0, "gpu_capacity": 1.0},
        {"zone": 1, "cpu_capacity": 8.0, "memory_capacity": 128 * GIB},
    ]
    large: Fields = {"runtime_s": 2 * HOUR, "cpu_cores": 8.0, "memory_bytes": 100 * GIB}
    gang = reading(90.0, 0, runtime_s=4 * HOUR, cpu_cores=8.0, workers=2.0, save_every_s=0.0,
                   deadline_s=6 * HOUR)  # fmt: skip
    last: Fields = {"arrival_s": 2 * HOUR, "runtime_s": 4 * HOUR, "cpu_cores": 8.0, "gpus": 1.0}
    links = even_links(s_per_gb=0.0)
    world = make_world([large, gang, last], nodes, [hours, hours], links=links, length_s=6 * HOUR)
    schedule = ran(world, "lowest-window+first-fit+pause-freely")
    until_s = billed_until_s(world, schedule)
    assert transfers_of(world, schedule).node.size == 1
    outcome = outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
    least = least_totals(world, [schedule], until_s)
    assert least.energy_j <= outcome.energy_j
    assert least.cost <= outcome.cost
    assert least.carbon_g <= outcome.carbon_g


def test_a_gap_where_data_came_from_is_reported_and_not_at_all_where_no_joule_is_drawn() -> None:
    gap = [(0.0, 100.0, 50.0), (HOUR, np.nan, 50.0)]
    nodes: list[Fields] = [{"zone": 1, "pue": 1.0}]
    job = reading(900.0, 0)
    world = make_world([job], nodes, [gap, DIRTY], links=even_links())
    with pytest.raises(BadInput, match="B, or a zone from which its data came, lacks carbon"):
        billed(world, ran(world))
    world = world._replace(links=even_links(kwh_per_gb=0.0))
    assert total_bill(billed(world, ran(world))).carbon_transfer_g == 0.0


def test_what_never_ran_is_charged_by_the_carbon_from_its_arrival_on() -> None:
    late_known = [(0.0, np.nan, 50.0), (HOUR, 300.0, 50.0)]
    job = {**reading(10.0, 0, arrival_s=2 * HOUR), "cpu_cores": 9.0}
    world = make_world([job], [{}], [late_known, DIRTY], links=even_links())
    plain = charge_of(world._replace(links=NO_LINKS), never(), 4 * HOUR)
    far = charge_of(world, never(), 4 * HOUR)
    assert far.carbon_g - plain.carbon_g == pytest.approx(2 * 10 * 0.06 * 500)


READS = [{"size": ["1G"]}]


@pytest.mark.parametrize(("data", "network", "fault"), [
    pytest.param([], {"latency": "1s"}, "network: moves no data", id="no-data"),
    pytest.param(READS, {"links": [{"zones": ["A", "A"], "latency": "1s"}]}, "are the same",
                 id="one-zone"),
    pytest.param(READS, {"links": [{"zones": ["A", "X"], "latency": "1s"}]}, "'X' has no grid",
                 id="unknown-zone"),
    pytest.param(READS, {"links": [{"zones": ["A", "B"]}]}, "changes no value",
                 id="nothing-told"),
    pytest.param(READS, {"links": [{"zones": ["A", "B"], "latency": "1s"},
                                   {"zones": ["B", "A"], "latency": "2s"}]},
                 "B and A are given twice", id="told-twice"),
    pytest.param(READS, {"gbit_per_s": 1e-300}, "gbit_per_s", id="no-bandwidth"),
])  # fmt: skip
def test_faults_of_a_network_are_reported(
    data: list[dict[str, Any]], network: dict[str, Any], fault: str
) -> None:
    with pytest.raises(BadInput, match=fault):
        parse_scenario({**told(data=data), "network": network})


@pytest.mark.parametrize("kinds", [
    pytest.param([{"size": ["1G"], "share": 0.6}, {"size": ["2G"], "share": 0.6}], id="shares"),
    pytest.param([{"size": ["1G"], "zones": ["D"]}], id="unknown-zone"),
    pytest.param([{"size": ["0"]}], id="nothing"),
    pytest.param([{"size": ["1000Ei"]}], id="more-than-there-is"),
])  # fmt: skip
def test_faults_of_data_are_reported(kinds: list[dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match=r"workload\.data"):
        parse_scenario(told(data=kinds))


def told(**workload: Any) -> dict[str, Any]:
    node = {"count": 1, "hardware": "epyc-7763-1s", "cpu_cores": 8, "memory": "8Gi"}
    grid = {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}
    return {
        "name": "told", "start": "2023-06-01T00:00:00Z", "length": "1h",
        "cluster": {"nodes": [{**node, "name": zone.lower(), "zone": zone} for zone in "ABC"]},
        "grids": dict.fromkeys("ABC", grid),
        "workload": {"generator": {"jobs": 1, "cpu_cores": [1]}, **workload},
    }  # fmt: skip


def test_links_differ_both_ways_where_that_is_said() -> None:
    network = {"gbit_per_s": 2.0, "latency": "1s", "price_per_gb": 0.5,
               "links": [{"zones": ["C", "A"], "gbit_per_s": 8.0}]}  # fmt: skip
    scenario = parse_scenario({**told(data=[{"size": ["1G"]}]), "network": network})
    latency_s, s_per_byte, j_per_byte, price = links_of(scenario)
    assert latency_s.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert (s_per_byte * GB).tolist() == [[0, 4, 1], [4, 0, 4], [1, 4, 0]]
    assert j_per_byte[0, 1] == j_per_byte[2, 0] == pytest.approx(0.06 * 3.6e6 / GB)
    assert price[1, 0] == 0.5 / GB
    assert links_of(parse_scenario(told())) is NO_LINKS


def test_kinds_of_data_are_drawn_by_their_shares_and_lie_where_is_said() -> None:
    kinds = [{"size": ["1G", "3G"], "share": 0.25, "zones": ["B", "C"]},
             {"size": ["7G"], "share": 0.5}]  # fmt: skip
    size, home = data_of_jobs(
        ScenarioWorkload.model_validate({"data": kinds}), "ABC", 20_000, seed=3
    )
    shares = {each: float(np.mean(size == each * GB)) for each in (0, 1, 3, 7)}
    assert shares == pytest.approx({0: 0.25, 1: 0.125, 3: 0.125, 7: 0.5}, abs=0.01)
    assert {*home[(size > 0.0) & (size < 7 * GB)].tolist()} == {1, 2}
    assert np.bincount(home[size == 7 * GB]) / 10_000 == pytest.approx([1 / 3] * 3, abs=0.02)


def test_memory_is_no_data() -> None:
    job: Fields = {"memory_bytes": 32 * GIB, "data_zone": 1}
    world = make_world([job], [{}], [CLEAN, DIRTY], links=even_links())
    assert ran(world).start_s.tolist() == [0.0]
