import json
import math
from dataclasses import replace

import pytest

from greensched_core.power.hardware import Gpu
from greensched_core.testing import make_node
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_testbed.changes import change_pct, relative_change_text
from greensched_testbed.demo.billing import BillAssumptions, BilledPod, bill_run
from greensched_testbed.demo.results import (
    DemoResult,
    HeldPod,
    Holding,
    ThreeRuns,
    demo_summary,
)
from greensched_testbed.demo.tables import (
    comparison_rows,
    demo_lever_rows,
    holding_rows,
)

HOUR_S = 3600.0
KWH_J = 3.6e6
ASSUMED = BillAssumptions(utilisation_ratio=1.0, gpu_ratio=0.5, default_pue=2.0)
NODES = [
    make_node("clean", zone="A", cpu_cores=10, idle_w=100, peak_w=300),
    make_node("dirty", zone="B", cpu_cores=10, gpu=Gpu("T4", 2, 10.0, 70.0)),
]
GENERATION_OF = {"clean": "new", "dirty": "old"}
GRID = {
    "A": [SyntheticSlot(0.0, 100.0, 50.0), SyntheticSlot(HOUR_S, 200.0, -50.0)],
    "B": [SyntheticSlot(0.0, 800.0, 80.0)],
}


def pod(
    node: str | None, *, cores: float = 10.0, gpus: float = 0.0, at_s: float = 0.0
) -> BilledPod:
    return BilledPod(cores, gpus, HOUR_S, node, at_s if node else None, 0.5 if node else None)


def outcome_of(
    ours: DemoResult, default: DemoResult, at_once: DemoResult | None = None
) -> ThreeRuns:
    return ThreeRuns(default, at_once or ours, ours, Holding(0, (), {}, 0, 0))


def test_a_full_node_for_one_hour_costs_what_the_hand_says() -> None:
    run = bill_run("x", [pod("clean")], NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
    bill = run.by_zone["A"].bill
    assert bill.energy_active_j == pytest.approx((300 - 100) * 2.0 * HOUR_S)
    assert bill.energy_idle_j == pytest.approx(100 * 2.0 * HOUR_S)
    assert bill.carbon_active_g == pytest.approx(0.4 * 100.0)
    assert bill.cost_active == pytest.approx(0.4 / 1000 * 50.0)


def test_the_grid_of_each_hour_counts_for_that_hour() -> None:
    run = bill_run("x", [pod("clean", at_s=HOUR_S / 2)], NODES, GENERATION_OF, GRID,
                   2 * HOUR_S, ASSUMED)  # fmt: skip
    bill = run.by_zone["A"].bill
    assert bill.carbon_active_g == pytest.approx(0.2 * 100.0 + 0.2 * 200.0)
    assert bill.cost_active == pytest.approx(0.2 / 1000 * 50.0 - 0.2 / 1000 * 50.0)


def test_gpus_draw_their_share_of_the_range_above_idle() -> None:
    run = bill_run("x", [pod("dirty", cores=0.0, gpus=2.0)], NODES, GENERATION_OF, GRID, HOUR_S,
                   ASSUMED)  # fmt: skip
    bill = run.by_generation["old"].bill
    assert bill.energy_active_j == pytest.approx(2 * (70 - 10) * 0.5 * 2.0 * HOUR_S)
    assert bill.energy_idle_j == pytest.approx((100 + 2 * 10) * 2.0 * HOUR_S)


def test_empty_nodes_that_sleep_are_billed_only_while_something_runs() -> None:
    sleepy = replace(ASSUMED, empty_nodes_sleep=True)
    run = bill_run("x", [pod("clean")], NODES, GENERATION_OF, GRID, 2 * HOUR_S, sleepy)
    assert run.by_zone["A"].bill.energy_idle_j == pytest.approx(100 * 2.0 * HOUR_S)
    assert run.by_zone["B"].bill.energy_idle_j == 0.0


def test_groups_add_up_to_the_whole() -> None:
    pods = [pod("clean", cores=3), pod("dirty", cores=4, gpus=1), pod(None)]
    run = bill_run("x", pods, NODES, GENERATION_OF, GRID, 2 * HOUR_S, ASSUMED)
    for groups in (run.by_zone, run.by_generation):
        assert sum(group.pods for group in groups.values()) == run.pods_placed == 2
        assert sum(group.bill.energy_j for group in groups.values()) == pytest.approx(
            run.bill.energy_j
        )
        assert sum(group.bill.carbon_g for group in groups.values()) == pytest.approx(
            run.bill.carbon_g
        )
    assert run.unplaced == {2}
    assert run.nodes_used == 2


def test_two_runs_with_equal_placements_do_not_differ() -> None:
    one, other = (
        bill_run(name, [pod("clean")], NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
        for name in ("greensched", "default-scheduler")
    )
    figures = demo_summary(outcome_of(one, other))
    assert figures["pods_unplaced"] == 0
    assert {figures[f"{kind}_vs_default_pct"] for kind in ("energy", "cost", "carbon")} == {0.0}


@pytest.mark.parametrize("is_ours", [True, False])
def test_no_saving_is_reported_where_a_run_left_a_pod_out(is_ours: bool) -> None:
    pods = [[pod("clean"), pod("clean")], [pod("clean"), pod(None)]]
    ours, default = (
        bill_run(name, told, NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
        for name, told in zip("xy", reversed(pods) if is_ours else pods, strict=True)
    )
    figures = demo_summary(outcome_of(ours, default))
    assert figures["pods_unplaced"] + figures["default_pods_unplaced"] == 1
    assert {figures[name] for name in figures if name.endswith("_vs_default_pct")} == {None}
    assert {row[1] for row in demo_lever_rows(outcome_of(ours, default))[2:]} == {"–"}
    head, placed, *others = comparison_rows(ours, default)
    assert (head[3], placed[3]) == ("change", "not the same")
    assert {row[3] for row in others} == {"", "–"}


def test_the_same_pod_without_a_node_in_both_runs_is_no_difference() -> None:
    runs = [
        bill_run(name, [pod("clean"), pod(None)], NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
        for name in "xy"
    ]
    assert demo_summary(outcome_of(*runs))["carbon_vs_default_pct"] == 0.0


def test_the_summary_tells_energy_money_and_carbon_of_both_runs() -> None:
    ours = bill_run("x", [pod("clean")], NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
    none = bill_run("y", [pod(None)], NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
    figures = demo_summary(outcome_of(ours, none))
    assert figures["energy_active_kwh"] == pytest.approx(0.4)
    assert figures["carbon_active_kg"] == pytest.approx(0.04)
    assert figures["cost_active_eur"] == pytest.approx(0.4 / 1000 * 50.0)
    assert figures["default_energy_kwh"] == pytest.approx(figures["energy_kwh"] - 0.4)
    assert figures["default_carbon_kg"] == pytest.approx(figures["carbon_kg"] - 0.04)
    assert figures["default_cost_eur"] == pytest.approx(figures["cost_eur"] - 0.02)


@pytest.mark.parametrize(("ours", "theirs", "change"), [
    pytest.param(50.0, 100.0, -50.0, id="half"),
    pytest.param(-10.0, -20.0, 50.0, id="a-negative-cost-that-shrank-is-dearer"),
    pytest.param(1.0, 0.0, None, id="nothing-to-compare-with"),
])  # fmt: skip
def test_a_change_is_reported_in_percent_of_the_baseline(
    ours: float, theirs: float, change: float | None
) -> None:
    assert change_pct(ours, theirs) == change


@pytest.mark.parametrize(("ours", "theirs", "text"), [
    pytest.param(50.0, 100.0, "-50.0 %", id="less"),
    pytest.param(101.0, 100.0, "+1.0 %", id="more"),
    pytest.param(99.99, 100.0, "0.0 %", id="too-little-to-have-a-sign"),
    pytest.param(1.0, 0.0, "–", id="nothing-to-compare-with"),
    pytest.param(math.nan, 1.0, "–", id="not-known"),
])  # fmt: skip
def test_a_change_is_written_with_its_sign(ours: float, theirs: float, text: str) -> None:
    assert relative_change_text(ours, theirs) == text


def test_a_run_that_placed_nothing_is_reported_without_nan() -> None:
    ours, default = (
        bill_run(name, [pod(None)], NODES, GENERATION_OF, GRID, HOUR_S, ASSUMED)
        for name in ("greensched", "default-scheduler")
    )
    told = json.loads(json.dumps(demo_summary(outcome_of(ours, default)), allow_nan=False))
    assert told["pods_unplaced"] == 1
    assert told["wait_mean_s"] is None
    assert "nan" not in str(comparison_rows(ours, default))
    assert "nan" not in str(holding_rows(outcome_of(ours, default).holding, 1))


def test_placing_is_reported_against_the_default_and_waiting_against_starting_at_once() -> None:
    default, at_once, held = (
        bill_run(name, [pod(node, at_s=at_s)], NODES, GENERATION_OF, GRID, 2 * HOUR_S, ASSUMED)
        for name, node, at_s in (
            ("default", "dirty", 0.0), ("at once", "clean", HOUR_S), ("held", "clean", 0.0),
        )
    )  # fmt: skip
    outcome = outcome_of(held, default, at_once)
    rows = {row[0]: row[1:] for row in demo_lever_rows(outcome)}
    assert rows["against"] == ("default", "at once", "default")
    assert rows["carbon above idle"] == ("-83.3 %", "-50.0 %", "-91.7 %")
    figures = demo_summary(outcome)
    assert figures["at_once_carbon_active_vs_default_pct"] == pytest.approx(-500 / 6)
    assert figures["carbon_active_vs_at_once_pct"] == pytest.approx(-50.0)
    assert figures["carbon_active_vs_default_pct"] == pytest.approx(-550 / 6)


def test_held_pods_are_counted_with_their_mean_and_longest_wait() -> None:
    pods = tuple(
        HeldPod(name, "A", HOUR_S, HOUR_S + waited_s, 60.0, "planned-start", cores, grams, 400.0)
        for name, waited_s, cores, grams in (
            ("a", HOUR_S, 1.0, 100.0),
            ("b", 3 * HOUR_S, 3.0, 300.0),
        )
    )
    told = holding_rows(Holding(3, pods, {"planned-start": 2}, 1, 0), 9)
    rows = {row[0]: row[1] for row in told}
    assert rows["may wait"] == "3 of 9"
    assert rows["held for a later hour"] == "2"
    assert (rows["  waited, mean"], rows["  waited, longest"]) == ("2h", "3h")
    assert rows["  grid while they ran"] == "250 g/kWh, at once 400 (-37.5 %)"
    assert rows["  started: planned-start"] == "2"
    assert (rows["started at their latest start"], rows["deadlines missed"]) == ("1", "0")
