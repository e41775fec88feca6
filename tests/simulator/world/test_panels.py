"""Panels and a battery at a zone's site: in bill, rows, figures, bound and decisions."""

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import PARTS
from greensched_policies.billing.supply import Battery
from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.limits import limits_of
from greensched_simulator.policy import policy_named
from greensched_simulator.results.recorded_rows import grid_rows
from greensched_simulator.results.tables import outcome_rows
from greensched_simulator.runs.charges import charge_of
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate, zone_balances
from greensched_simulator.testing.small_worlds import in_one_piece, make_world
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
KWH = 3.6e6
# 100 W when empty and 200 W at half load, which ten cores of ten make.
CURVE = [100, 120, 140, 160, 180, 200, 240, 280, 320, 360, 400]
FLAT = {"carbon": {"constant": 300}, "price": {"constant": 0.1, "unit": "EUR/kWh"}}
BATTERY = {"capacity_kwh": 0.1, "charge_kw": 0.1, "discharge_kw": 0.05, "efficiency": 0.8}


def content(folder: Path, kw: list[float], **site: Any) -> dict[str, Any]:
    """Return a scenario of a ten-core node with 1 kWp, whose yield changes by the hour."""
    (folder / "jobs.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\njob,0,3600,10,1,0\n"
    )
    rows = [f"2023-06-01T{hour:02}:00:00,{each}" for hour, each in enumerate(kw)]
    (folder / "sun.csv").write_text("time_utc,kw\n" + "\n".join(rows) + "\n")
    output = {"file": "sun.csv", "time_column": "time_utc", "column": "kw", "unit": "kW/kWp"}
    return {
        "name": "hand", "start": "2023-06-01T00:00:00Z", "length": "2h",
        "cluster": {"nodes": [{"name": "node", "count": 1, "curve_watts": CURVE, "cpu_cores": 10,
                               "memory": "16Gi", "zone": "Z", "pue": 1.0}]},
        "grids": {"Z": FLAT},
        "sites": {"Z": {"solar": {"peak_kw": 1, "output": output}} | site},
        "workload": {"trace": {"file": "jobs.csv"}, "slack": "3h"},
    }  # fmt: skip


def made(folder: Path, kw: list[float], **site: Any) -> World:
    return build_world(parse_scenario(content(folder, kw, **site), folder))


def ran_at(start_s: float) -> Schedule:
    return in_one_piece(np.array([start_s]), np.array([start_s + HOUR]), np.array([0]))


def test_only_what_is_imported_is_paid_for_and_shared_by_watts(tmp_path: Path) -> None:
    """Drawn: 200 W, of which 100 idle, then 100. Of the sun 150 W, then 40."""
    bill = bill_of(made(tmp_path, [0.15, 0.04]), ran_at(0.0), 2 * HOUR)
    assert bill.energy_active_j.tolist() == pytest.approx([0.1 * KWH])
    assert bill.energy_idle_j.tolist() == pytest.approx([0.2 * KWH])
    assert bill.carbon_active_g.tolist() == pytest.approx([300 * 0.025])  # half of the 50 W
    assert bill.carbon_idle_g.tolist() == pytest.approx([300 * (0.025 + 0.060)])
    assert bill.cost_active.tolist() == pytest.approx([0.1 * 0.025])


def test_a_battery_carries_the_sun_to_the_next_hour(tmp_path: Path) -> None:
    """400 W for 200 drawn: 100 W of the 200 over are stored, 80 Wh; then 50 of 100 W come back."""
    world = made(tmp_path, [0.4, 0.0, 0.0], battery=BATTERY)
    ran = ran_at(0.0)
    bill = bill_of(world, ran, 3 * HOUR)
    assert bill.carbon_idle_g.tolist() == pytest.approx([300 * 0.12])  # 200 Wh less 80
    outcome = outcome_of(world, ran, bill, 3 * HOUR)
    told = {
        "solar_used_j": 0.2, "solar_stored_j": 0.1, "solar_curtailed_j": 0.1,
        "battery_given_j": 0.08, "battery_lost_j": 0.02, "battery_left_j": 0.0, "imported_j": 0.12,
    }  # fmt: skip
    for name, kwh in told.items():
        assert getattr(outcome, name) == pytest.approx(kwh * KWH, abs=1e-6), name
    names = [str(row[0]) for row in outcome_rows(outcome, "EUR")]
    assert [name for name in names if "panels" in name or "battery" in name] == [
        "from panels, kWh", "  into the battery", "from the battery, kWh",
        "from the grid in zones with panels, kWh",
    ]  # fmt: skip


def test_without_panels_no_line_tells_of_them() -> None:
    world = make_world([{}])
    outcome = outcome_of(world, ran_at(0.0), bill_of(world, ran_at(0.0), 2 * HOUR), 2 * HOUR)
    assert outcome.imported_j == outcome.solar_used_j + outcome.solar_curtailed_j == 0.0
    assert not any("panels" in str(row[0]) for row in outcome_rows(outcome, "EUR"))


def test_irradiance_counts_with_the_performance_ratio(tmp_path: Path) -> None:
    told = content(tmp_path, [500, 1000, 0])
    told["sites"]["Z"]["solar"]["output"]["unit"] = "W/m2"
    told["sites"]["Z"]["solar"] |= {"peak_kw": 2, "performance_ratio": 0.75}
    world = build_world(parse_scenario(told, tmp_path))
    assert world.grids.solar_w[:3].tolist() == pytest.approx([750, 1500, 0])
    (rows,) = grid_rows(world, 2 * HOUR)
    assert rows["solar_w"].to_pylist() == pytest.approx([750, 1500])


def shaped(seed: int, **more: Any) -> World:
    """Return the world of three days with made-up sun."""
    return build_world(
        parse_scenario(
            {
                "name": "shaped", "start": "2023-06-01T00:00:00Z", "length": "3d",
                "cluster": {"nodes": [{"name": "node", "count": 1, "hardware": "epyc-7763-1s",
                                       "cpu_cores": 8, "memory": "8Gi", "zone": "Z"}]},
                "grids": {"Z": FLAT},
                "sites": {"Z": {"solar": {"peak_kw": 1, "output": {"shape": "days"} | more}}},
                "workload": {"generator": {"jobs": 1, "cpu_cores": [1]}},
            }
        ),
        seed,
    )  # fmt: skip


def test_made_up_days_have_their_sun_around_noon_and_clouds_of_their_own() -> None:
    clear = shaped(1, clouds=0, noon="10h", daylight="8h").grids
    watts = clear.solar_w[:96]
    assert np.flatnonzero(watts > 0)[[0, -1]].tolist() == [24, 55]  # 6 h to 14 h
    assert watts.max() == pytest.approx(800, rel=0.01)
    days = shaped(1, clouds=0.5).grids.solar_w[: 3 * 96].reshape(3, 96).max(axis=1)
    assert (days >= 395).all()
    assert (days <= 800).all()
    assert np.unique(days).size == 3
    assert shaped(1).grids.solar_w.tobytes() == shaped(1).grids.solar_w.tobytes()
    assert shaped(1).grids.solar_w.tobytes() != shaped(2).grids.solar_w.tobytes()


def test_a_rule_that_looks_for_clean_hours_finds_the_sun(tmp_path: Path) -> None:
    world = made(tmp_path, [0.0, 0.0, 0.3, 0.0, 0.0, 0.0])
    for rule in ("lowest-window", "cheapest-window"):
        assert simulate(world, policy_named(rule)).start_s.tolist() == [2 * HOUR]


def test_the_bound_is_what_is_left_when_all_the_sun_is_used(tmp_path: Path) -> None:
    """Four hours of 100 W idle and 100 Wh of work are 150 g; the sun gives 150 Wh in the third."""
    world = made(tmp_path, [0.0, 0.0, 0.15, 0.0, 0.0])
    found = least_bill(world, "carbon", 4 * HOUR, limits_of(world))
    assert found.total == pytest.approx(300 * 0.35)
    ran = simulate(world, policy_named("lowest-window"))
    assert bill_of(world, ran, 4 * HOUR).carbon_active_g.sum() == pytest.approx(300 * 0.025)
    energy = least_bill(world, "energy", 4 * HOUR, limits_of(world))
    assert energy.total == pytest.approx(0.5 * KWH)


def test_a_job_that_never_ran_is_charged_without_the_sun(tmp_path: Path) -> None:
    rejected = in_one_piece(np.array([np.nan]), np.array([np.nan]), np.array([-1]))
    sunny, dark = (made(tmp_path, [each] * 3) for each in (0.9, 0.0))
    assert charge_of(sunny, rejected, 2 * HOUR) == charge_of(dark, rejected, 2 * HOUR)


def test_a_file_that_ends_before_the_last_job_does_is_refused(tmp_path: Path) -> None:
    world = made(tmp_path, [0.1, 0.1])
    with pytest.raises(BadInput, match="Z lacks sun for a part of the 3 h"):
        bill_of(world, ran_at(0.0), 3 * HOUR)
    with pytest.raises(BadInput, match="Z lacks sun before 10800 s"):
        least_bill(world, "carbon", 3 * HOUR, limits_of(world))


FAULTS = [
    ({"battery": BATTERY}, "sites.Z.battery", "is charged only from panels: give solar, too"),
    ({"solar": {"peak_kw": 1, "output": 3}}, "sites.Z.solar.output", "such as {shape: days}"),
    ({"solar": {"peak_kw": 0, "output": {"constant": 1}}}, "sites.Z.solar.peak_kw",
     "greater than 0 (given 0)"),
]  # fmt: skip


@pytest.mark.parametrize(("site", "place", "reason"), FAULTS)
def test_a_fault_of_panels_is_reported_with_its_place(
    tmp_path: Path, site: dict[str, Any], place: str, reason: str
) -> None:
    told = content(tmp_path, [0.1, 0.1]) | {"sites": {"Z": site}}
    with pytest.raises(BadInput) as raised:
        parse_scenario(told, tmp_path)
    assert any(place in line and reason in line for line in str(raised.value).splitlines())


def test_a_file_of_panels_that_does_not_cover_the_scenario_is_reported(tmp_path: Path) -> None:
    told = content(tmp_path, [0.1, 0.1]) | {"length": "3h"}
    with pytest.raises(BadInput, match=r"sites.Z.solar.output.file: .*lasts from"):
        parse_scenario(told, tmp_path)


JOBS = [{"arrival_s": 900.0 * at, "cpu_cores": 1.0 + at % 4} for at in range(6)]
GRID = [(HOUR * hour, 100.0 + 50 * hour, 40.0 - 30 * hour) for hour in range(4)]
batteries = st.builds(
    Battery, st.floats(0.0, 1e6), st.floats(0.0, 300.0), st.floats(0.0, 300.0), st.floats(0.5, 1.0)
)


@settings(max_examples=30)
@given(
    sun=st.lists(st.floats(0.0, 900.0), min_size=4, max_size=4),
    weather=st.lists(st.floats(0.7, 1.5), min_size=4, max_size=4),
    battery=batteries,
    policy=st.sampled_from(["run-now", "carbon-time", "bin-pack+cap-60"]),
)
def test_hours_and_nodes_add_up_to_what_the_zone_imports(
    sun: list[float], weather: list[float], battery: Battery, policy: str
) -> None:
    nodes: list[dict[str, float]] = [{}, {"pue": 1.3}, {"zone": 1}]
    world = make_world(JOBS, nodes, [GRID, GRID], weather=[weather, weather])
    solar_w = np.array([*sun, 0.0, 0.0, 0.0, 0.0])
    world = world._replace(grids=world.grids._replace(solar_w=solar_w), batteries=(battery, None))
    ran = simulate(world, policy_named(policy))
    until_s = billed_until_s(world, ran)
    bill, rows = bill_of(world, ran, until_s), list(node_hours(world, ran, until_s))
    for name in PARTS:
        told = sum(float(getattr(part, name).sum()) for part in rows)
        assert told == pytest.approx(float(getattr(bill, name).sum()), rel=1e-9, abs=1e-9)
    balance, other = zone_balances(world, ran, until_s)
    assert other is None
    assert balance is not None
    drawn_j = sum(float(part[:2].sum()) for part in astuple(bill)[:4])
    assert balance.joules(balance.drawn_w) == pytest.approx(drawn_j, rel=1e-9)
    step = np.minimum(balance.start_s // HOUR, 3)
    imported_g = balance.joules(balance.imported_w * (100.0 + 50.0 * step)) / KWH
    told_g = sum(float(part[:2].sum()) for part in astuple(bill)[10:14])
    assert told_g == pytest.approx(imported_g, rel=1e-9)
    outcome = outcome_of(world, ran, bill, until_s)
    sources_j = outcome.solar_used_j + outcome.battery_given_j + outcome.imported_j
    assert sources_j == pytest.approx(drawn_j, rel=1e-9)
