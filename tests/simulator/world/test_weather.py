"""The PUE that follows the weather: in the bill, the rows, the charges, the bound, decisions."""

import os
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_policies.billing.accounting import PARTS, bill_schedule
from greensched_policies.billing.timelines import Placements
from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.limits import limits_of
from greensched_simulator.policy import policy_named
from greensched_simulator.results.recorded_rows import grid_rows
from greensched_simulator.runs.charges import REJECTION_FACTOR, charge_of
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.simulation import (
    bill_of,
    billed_nodes_of,
    billed_until_s,
    simulate,
    zone_series,
)
from greensched_simulator.scenario.site import Weather
from greensched_simulator.testing.small_worlds import in_one_piece, make_world
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[4] / "shared" / "data")
# 100 W when empty and 200 W at half load, which ten cores of ten make.
CURVE = [100, 120, 140, 160, 180, 200, 240, 280, 320, 360, 400]
BY_TENS = [{"celsius": 0, "pue": 1.0}, {"celsius": 20, "pue": 2.0}]
FLAT = {"carbon": {"constant": 300}, "price": {"constant": 0.1, "unit": "EUR/kWh"}}
JOB = "job,{at},3600,10,1,0\n"


def content(folder: Path, celsius: list[float], jobs: str, **weather: Any) -> dict[str, Any]:
    """Return a scenario of one ten-core node at one site whose temperature changes by the hour."""
    (folder / "jobs.csv").write_text("name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n" + jobs)
    rows = [f"2023-06-01T{hour:02}:00:00,{each}" for hour, each in enumerate(celsius)]
    (folder / "weather.csv").write_text("time_utc,celsius\n" + "\n".join(rows) + "\n")
    temperature = {"file": "weather.csv", "time_column": "time_utc", "column": "celsius"}
    return {
        "name": "hand", "start": "2023-06-01T00:00:00Z", "length": "2h",
        "cluster": {"nodes": [{"name": "node", "count": 1, "curve_watts": CURVE, "cpu_cores": 10,
                               "memory": "16Gi", "zone": "Z"}]},
        "grids": {"Z": FLAT},
        "sites": {"Z": {"weather": {"temperature": temperature, "pue": BY_TENS} | weather}},
        "workload": {"trace": {"file": "jobs.csv"}, "slack": "3h"},
    }  # fmt: skip


def made(folder: Path, celsius: list[float], jobs: str = JOB.format(at=0), **weather: Any) -> World:
    return build_world(parse_scenario(content(folder, celsius, jobs, **weather), folder))


def test_the_bill_uses_the_pue_of_each_moment(tmp_path: Path) -> None:
    """An hour at 0 °C and one at 10 °C, PUE 1 and 1.5; the job runs half an hour in each."""
    world = made(tmp_path, [0, 10, 10])
    ran = in_one_piece(np.array([0.5 * HOUR]), np.array([1.5 * HOUR]), np.array([0]))
    bill = bill_of(world, ran, 2 * HOUR)
    active_wh, idle_wh = 100 * (0.5 * 1.0 + 0.5 * 1.5), 100 * (1.0 + 1.5)
    assert bill.energy_active_j.tolist() == pytest.approx([active_wh * HOUR])
    assert bill.energy_idle_j.tolist() == pytest.approx([idle_wh * HOUR])
    assert bill.cost_idle.tolist() == pytest.approx([idle_wh / 1000 * 0.1])
    assert bill.carbon_active_g.tolist() == pytest.approx([active_wh / 1000 * 300])


def test_the_nodes_have_the_mean_pue_of_the_scenarios_length(tmp_path: Path) -> None:
    world = made(tmp_path, [0, 10, 20, 20])
    assert world.nodes.pue.tolist() == [1.25]
    assert "Z has a PUE of 1.00 to 1.50 by its weather, 1.25 in the mean" in world.notes


@pytest.mark.parametrize(
    ("celsius", "pue"),
    [
        pytest.param(-30, 1.05, id="flat-below-the-first-point"),
        pytest.param(-3.9, 1.05, id="first-point"),
        pytest.param(15.55, 1.175, id="straight-between"),
        pytest.param(35, 1.30, id="last-point"),
        pytest.param(45, 1.30, id="flat-above-the-last-point"),
    ],
)
def test_without_a_curve_a_cooling_system_with_outside_air_is_assumed(
    tmp_path: Path, celsius: float, pue: float
) -> None:
    told = content(tmp_path, [0, 0], JOB.format(at=0))
    told["sites"] = {"Z": {"weather": {"temperature": {"constant": celsius}}}}
    assert build_world(parse_scenario(told, tmp_path)).nodes.pue.tolist() == pytest.approx([pue])


def test_a_rule_that_looks_for_clean_hours_finds_the_cool_one_of_a_flat_grid(
    tmp_path: Path,
) -> None:
    world = made(tmp_path, [20, 20, 0, 20, 20, 20])
    for rule in ("lowest-window", "cheapest-window"):
        assert simulate(world, policy_named(rule)).start_s.tolist() == [2 * HOUR]
    assert simulate(world, policy_named("run-now")).start_s.tolist() == [0.0]


def test_a_rule_that_looks_for_little_energy_goes_where_it_is_cool(tmp_path: Path) -> None:
    told = content(tmp_path, [0, 0], JOB.format(at=0))
    told["cluster"]["nodes"].append(told["cluster"]["nodes"][0] | {"name": "cool", "zone": "C"})
    told["grids"]["C"] = FLAT
    told["sites"] = {
        zone: {"weather": {"temperature": {"constant": celsius}}}
        for zone, celsius in (("Z", 30), ("C", 5))
    }
    world = build_world(parse_scenario(told, tmp_path))
    for rule in ("least-energy", "least-carbon", "least-cost"):
        assert simulate(world, policy_named(f"run-now+{rule}")).node.tolist() == [1]


def test_a_job_that_never_ran_is_charged_by_the_hottest_hour_that_it_could_have_had(
    tmp_path: Path,
) -> None:
    world = made(tmp_path, [0, 10, 20])
    rejected = in_one_piece(np.array([np.nan]), np.array([np.nan]), np.array([-1]))
    charge = charge_of(world, rejected, 2 * HOUR)
    steepest_wh = 10 * 10 * 1.5  # ten cores, watts of each, PUE of the second hour
    assert charge.energy_j == pytest.approx(REJECTION_FACTOR * steepest_wh * HOUR)
    assert charge.carbon_g == pytest.approx(REJECTION_FACTOR * steepest_wh / 1000 * 300)


def test_the_bound_takes_the_coolest_hour(tmp_path: Path) -> None:
    world = made(tmp_path, [20, 20, 0, 20, 20])
    found = least_bill(world, "energy", 4 * HOUR, limits_of(world))
    assert found.idle == pytest.approx(100 * (2 + 2 + 1 + 2) * HOUR)
    assert found.total == pytest.approx(found.idle + 100 * 1.0 * HOUR)


def test_a_file_that_ends_before_the_last_job_does_is_refused(tmp_path: Path) -> None:
    world = made(tmp_path, [0, 10], "first,0,60,1,1,0\n" + JOB.format(at=5400))
    ran = simulate(world, policy_named("run-now"))
    with pytest.raises(BadInput, match="Z lacks temperature for a part of the 2 h"):
        bill_of(world, ran, billed_until_s(world, ran))
    with pytest.raises(BadInput, match="Z lacks temperature before 9000 s"):
        least_bill(world, "energy", 2.5 * HOUR, limits_of(world))


def test_time_without_watts_needs_no_temperature(tmp_path: Path) -> None:
    told = content(tmp_path, [0, 10], JOB.format(at=0)) | {
        "assumptions": {"empty_nodes_sleep": True}
    }
    world = build_world(parse_scenario(told, tmp_path))
    bill = bill_of(world, simulate(world, policy_named("run-now")), 5 * HOUR)
    assert bill.energy_active_j.tolist() == pytest.approx([100 * HOUR])


def test_a_run_tells_the_pue_of_each_step(tmp_path: Path) -> None:
    (rows,) = grid_rows(made(tmp_path, [0, 10, 20]), 3 * HOUR)
    assert rows["pue"].to_pylist() == pytest.approx([1.0, 1.5, 2.0])
    (rows,) = grid_rows(make_world([{}]), HOUR)
    assert rows["pue"].to_pylist() == [None]


def shaped(seed: int, **more: Any) -> World:
    """Return the world of ten days with made-up weather."""
    shape = {"shape": "daily", "mean": 12, "swing": 8, "warmest": "15h30m"} | more
    return build_world(
        parse_scenario(
            {
                "name": "shaped", "start": "2023-06-01T00:30:00Z", "length": "10d",
                "cluster": {"nodes": [{"name": "node", "count": 1, "hardware": "epyc-7763-1s",
                                       "cpu_cores": 8, "memory": "8Gi", "zone": "Z"}]},
                "grids": {"Z": FLAT},
                "sites": {"Z": {"weather": {"temperature": shape, "pue": [
                    {"celsius": -50, "pue": 1.0}, {"celsius": 50, "pue": 2.0}]}}},
                "workload": {"generator": {"jobs": 1, "cpu_cores": [1]}},
            }
        ),
        seed,
    )  # fmt: skip


def test_made_up_days_are_warmest_when_asked_to_be() -> None:
    grids = shaped(1, noise=0).grids
    celsius = (grids.pue_relative[:24] * grids.pue_mean[0] - 1.0) * 100 - 50
    assert grids.times_s[:2].tolist() == [-1800.0, 1800.0]  # by the full hour
    assert int(np.argmax(celsius)) == 15
    assert celsius.max() == pytest.approx(20.0)
    assert celsius.min() == pytest.approx(4.0)


def test_made_up_weather_is_that_of_its_seed() -> None:
    first, again, other = (shaped(seed).grids.pue_relative.tobytes() for seed in (1, 1, 2))
    assert first == again != other
    noise = shaped(1).grids.pue_relative[:-1] * shaped(1).grids.pue_mean
    noise -= shaped(1, noise=0).grids.pue_relative[:-1] * shaped(1, noise=0).grids.pue_mean
    assert float(noise.std() * 100) == pytest.approx(2.0, rel=0.3)


FAULTS = [
    ({"W": {}}, "sites.W", "'W' has no grid"),
    ({"Z": {"weather": {}}}, "sites.Z.weather.temperature", "is missing"),
    ({"Z": {"weather": {"temperature": 20}}}, "sites.Z.weather.temperature",
     "such as {shape: daily, mean: 12}"),
    ({"Z": {"weather": {"temperature": {"constant": 300}}}},
     "sites.Z.weather.temperature.constant", "less than or equal to 60 (given 300)"),
    ({"Z": {"weather": {"temperature": {"constant": 20}, "pue": BY_TENS[::-1]}}},
     "sites.Z.weather.pue", "celsius must grow from point to point"),
    ({"Z": {"weather": {"temperature": {"constant": 20}, "pue": [{"celsius": 0, "pue": 0.9}]}}},
     "sites.Z.weather.pue[0].pue", "greater than or equal to 1 (given 0.9)"),
]  # fmt: skip


@pytest.mark.parametrize(("sites", "place", "reason"), FAULTS)
def test_a_fault_of_a_site_is_reported_with_its_place(
    tmp_path: Path, sites: dict[str, Any], place: str, reason: str
) -> None:
    told = content(tmp_path, [0, 0], JOB.format(at=0)) | {"sites": sites}
    with pytest.raises(BadInput) as raised:
        parse_scenario(told, tmp_path)
    assert any(place in line and reason in line for line in str(raised.value).splitlines())


def test_nodes_whose_pue_goes_by_the_weather_have_none_of_their_own(tmp_path: Path) -> None:
    told = content(tmp_path, [0, 0], JOB.format(at=0))
    told["cluster"]["nodes"][0]["pue"] = 1.2
    with pytest.raises(BadInput, match=r"nodes\[0\].pue: depends on the weather, sites.Z.weather"):
        parse_scenario(told, tmp_path)


def test_weather_that_does_not_cover_the_scenario_is_reported(tmp_path: Path) -> None:
    told = content(tmp_path, [0, 0], JOB.format(at=0)) | {"length": "3h"}
    with pytest.raises(BadInput, match=r"sites.Z.weather.temperature.file: .*lasts from"):
        parse_scenario(told, tmp_path)


JOBS = [{"arrival_s": 900.0 * at, "cpu_cores": 1.0 + at % 4} for at in range(6)]
relative = st.lists(st.floats(0.7, 1.5), min_size=4, max_size=4)
GRID = [(HOUR * hour, 100.0 + 50 * hour, 40.0 - 30 * hour) for hour in range(4)]


@settings(max_examples=30)
@given(weather=relative, policy=st.sampled_from(["run-now", "carbon-time", "bin-pack+cap-60"]))
def test_the_hours_of_the_nodes_add_up_to_the_bill(weather: list[float], policy: str) -> None:
    world = make_world(JOBS, [{}, {"pue": 1.3}], [GRID], weather=[weather])
    ran = simulate(world, policy_named(policy))
    until_s = billed_until_s(world, ran)
    bill, rows = bill_of(world, ran, until_s), list(node_hours(world, ran, until_s))
    for name in PARTS:
        told = sum(float(getattr(part, name).sum()) for part in rows)
        assert told == pytest.approx(float(getattr(bill, name).sum()), rel=1e-9, abs=1e-9)


@settings(max_examples=30)
@given(pue=st.floats(1.0, 3.0))
def test_weather_that_never_changes_is_a_pue_like_any_other(pue: float) -> None:
    plain = make_world(JOBS, [{"pue": pue}], [GRID])
    still = make_world(JOBS, [{}], [GRID], weather=[[pue] * 4])
    ran = simulate(plain, policy_named("run-now"))
    bills = [astuple(bill_of(world, ran, 4 * HOUR))[:-1] for world in (plain, still)]
    np.testing.assert_allclose(bills[0], bills[1], rtol=1e-12)


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 3 * HOUR), min_size=2, max_size=2))
def test_without_weather_bills_are_the_same_to_the_last_digit(starts_s: list[float]) -> None:
    world = make_world(JOBS, [{"pue": 1.37}], [GRID], weather=[[1.0] * 4])
    start_s = np.array(starts_s)
    placed = Placements(np.zeros(2, np.int64), start_s, start_s + HOUR, np.ones(2), np.zeros(2))
    plain = [series._replace(pue_relative=None) for series in zone_series(world)]
    bills = [
        bill_schedule(billed_nodes_of(world), placed, zones, (0.0, 4 * HOUR), cost_model(world))
        for zones in (plain, zone_series(world))
    ]
    for name in vars(bills[0]):
        assert getattr(bills[0], name).tobytes() == getattr(bills[1], name).tobytes()


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs published data, and there is no {DATA}")
def test_published_weather_makes_texas_dearer_to_cool_than_germany_in_summer() -> None:
    place = {"time_column": "datetime_utc", "column": "temperature_c"}
    zones = ("DE-LU", "US-TEX-ERCO")
    folder = DATA / "open-meteo-weather"
    machine = {"count": 1, "hardware": "epyc-7763-1s", "cpu_cores": 8, "memory": "8Gi"}
    world = build_world(
        parse_scenario(
            {
                "name": "real", "start": "2023-07-01T00:00:00Z", "length": "31d",
                "cluster": {"nodes": [machine | {"name": zone.lower(), "zone": zone}
                                      for zone in zones]},
                "grids": dict.fromkeys(zones, FLAT),
                "sites": {zone: {"weather": {"temperature": place | {
                    "file": str(folder / f"{zone}_2021-2023_hourly.csv.gz")}}} for zone in zones},
                "workload": {"generator": {"jobs": 1, "cpu_cores": [1]}},
            }
        )
    )  # fmt: skip
    german, texan = world.nodes.pue.tolist()
    assert 1.15 < german < 1.22 < texan < 1.30


def test_the_curve_that_is_assumed_is_the_one_that_is_cited() -> None:
    points = Weather.model_validate({"temperature": {"constant": 20}}).pue
    assert [(each.celsius, each.pue) for each in points] == [(-3.9, 1.05), (35.0, 1.30)]
