import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_core.power.hardware import shipped_catalogue
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.world.scenario_loading import load_scenario, parse_scenario
from greensched_simulator.world.world import World, build_world, capacity_of

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
GALLERY = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))
DAY_S = 86_400.0
CONSTANT = {"carbon": {"constant": 300}, "price": {"constant": 0.05, "unit": "EUR/kWh"}}
PLAIN = "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n"
NODE = {
    "name": "node",
    "count": 3,
    "hardware": "epyc-7763-1s",
    "cpu_cores": 128,
    "memory": "512Gi",
    "zone": "SUN",
}
SMALL: dict[str, Any] = {
    "name": "small",
    "start": "2023-06-01T06:00:00Z",
    "length": "2d",
    "cluster": {"nodes": [NODE]},
    "grids": {"SUN": {"carbon": {"shape": "solar"}, "price": {"shape": "solar"}}},
    "workload": {"generator": {"jobs": 50}},
}


def world(seed: int | None = None, folder: Path = Path(), **changes: Any) -> World:
    """Return the world of a small scenario, with parts of it replaced."""
    return build_world(parse_scenario(SMALL | changes, folder), seed)


def as_bytes(built: World) -> list[bytes]:
    """Return all that a world holds, as bytes."""
    columns = [*built.jobs, *built.nodes, *built.grids, built.curve_watts]
    return [column.tobytes() for column in columns] + [repr(built.job_names).encode()]


def zone_values(built: World, column: np.ndarray, zone: int = 0) -> np.ndarray:
    return column[built.grids.starts[zone] : built.grids.starts[zone + 1]]


def traced(folder: Path, rows: str, **options: Any) -> dict[str, Any]:
    (folder / "jobs.csv").write_text(PLAIN + rows)
    more = {name: options.pop(name) for name in ("first", "sample", "repeat") if name in options}
    return {"trace": {"file": "jobs.csv"} | more} | options


@settings(max_examples=25)
@given(st.integers(0, 2**63 - 1))
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    workload = {"generator": {"jobs": 20}, "estimate_error": 0.3}
    drawn = as_bytes(world(seed, workload=workload))
    assert as_bytes(world(seed, workload=workload)) == drawn
    assert as_bytes(world(seed + 1, workload=workload)) != drawn


def test_without_a_seed_the_scenarios_own_is_drawn() -> None:
    content = SMALL | {"seed": 7}
    assert as_bytes(build_world(parse_scenario(content))) == as_bytes(world(7))


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.integers(1, 200),
    st.floats(0, 1),
    st.floats(0, 3),
    st.sampled_from(["6h", "none", "0s"]),
)
def test_jobs_are_in_order_possible_and_in_the_contracts_form(
    seed: int, count: int, swing: float, sigma: float, slack: str
) -> None:
    generator = {"jobs": count, "daily_swing": swing, "runtime_sigma": sigma}
    built = world(seed, workload={"generator": generator, "slack": slack, "estimate_error": 0.5})
    jobs = built.jobs
    assert (np.diff(jobs.arrival_s) >= 0).all()
    assert ((jobs.arrival_s >= 0) & (jobs.arrival_s < built.length_s)).all()
    assert ((jobs.runtime_s >= 30) & (jobs.runtime_s <= DAY_S)).all()
    assert ((jobs.estimate_s > 0) & np.isfinite(jobs.estimate_s)).all()
    assert (jobs.deadline_s >= jobs.arrival_s + jobs.runtime_s).all()
    assert len(set(built.job_names)) == len(built.job_names) == jobs.arrival_s.size
    for column in (*jobs[:-1], *built.nodes[:-1], *built.grids[1:], built.curve_watts):
        assert column.dtype == np.float64 and column.ndim == 1 and column.flags.c_contiguous
    for places in (jobs.data_zone, built.nodes.zone, built.grids.starts):
        assert places.dtype == np.int64


def test_one_part_drawn_anew_shifts_no_other() -> None:
    few = world(workload={"generator": {"jobs": 50}})
    gpus = world(
        workload={"generator": {"jobs": 50, "cpu_cores": [1]}, "estimate_error": 0.5},
        grids={"SUN": {"carbon": {"constant": 1}, "price": {"shape": "solar"}}},
    )
    assert few.jobs.runtime_s.tolist() == gpus.jobs.runtime_s.tolist()
    assert few.jobs.arrival_s.tolist() == gpus.jobs.arrival_s.tolist()
    assert few.jobs.estimate_s.tolist() != gpus.jobs.estimate_s.tolist()


def test_streams_differ_by_seed_and_purpose() -> None:
    draws = {stream(seed, purpose).random() for seed in (1, 2) for purpose in ("a", "b")}
    assert len(draws) == 4


def test_nodes_have_the_watts_and_speed_of_their_hardware() -> None:
    old = NODE | {"name": "old", "count": 2, "hardware": "xeon-e5-2670-2s", "cpu_cores": 32,
                  "pue": 1.5, "gpus": {"model": "t4", "count": 4}}  # fmt: skip
    built = world(cluster={"nodes": [NODE, old]})
    machines = shipped_catalogue().machines
    assert built.node_names == ("node-0", "node-1", "node-2", "old-0", "old-1")
    assert built.nodes.cpu_capacity.tolist() == [128, 128, 128, 32, 32]
    assert built.nodes.curve_class.tolist() == [0, 0, 0, 1, 1]
    assert built.curve_watts.tolist() == [
        *machines["epyc-7763-1s"].curve.watts,
        *machines["xeon-e5-2670-2s"].curve.watts,
    ]
    assert built.nodes.speed[3] == pytest.approx(machines["xeon-e5-2670-2s"].speed)
    assert built.nodes.pue.tolist() == [1.2] * 3 + [1.5] * 2
    assert built.nodes.gpu_capacity.tolist() == [0, 0, 0, 4, 4]
    assert built.nodes.gpu_peak_w[3] == shipped_catalogue().gpus["t4"].peak_w
    assert built.nodes.zone.tolist() == [0] * 5


def test_a_curve_and_a_speed_that_are_given_win() -> None:
    watts = [float(10 * step) for step in range(11)]
    built = world(cluster={"nodes": [NODE | {"curve_watts": watts, "speed": 2.0}]})
    assert built.curve_watts.tolist() == watts
    assert built.nodes.speed.tolist() == [2.0] * 3


def test_a_constant_grid_has_one_step() -> None:
    built = world(grids={"SUN": CONSTANT})
    assert built.grids.starts.tolist() == [0, 1]
    assert built.grids.times_s.tolist() == [0]
    assert built.grids.carbon_g_per_kwh.tolist() == [300]
    assert built.grids.price_per_mwh.tolist() == [50]


def test_a_foreign_price_is_changed_into_the_scenarios_currency() -> None:
    grid = {"carbon": {"constant": 300}, "price": {"constant": 50, "unit": "USD/MWh"}}
    built = world(grids={"SUN": grid}, exchange_rates={"USD": 0.9})
    assert built.grids.price_per_mwh.tolist() == [45]


@pytest.mark.parametrize(("noon", "hours"), [("12h", 6), ("0s", 18), ("20h", 14)])
def test_a_made_up_sun_stands_highest_at_the_zones_noon(noon: str, hours: float) -> None:
    shape = {"shape": "solar", "noon": noon}
    built = world(grids={"SUN": {"carbon": shape, "price": shape}})  # the start is at 6 h UTC
    first_day = built.grids.times_s < DAY_S
    cleanest = built.grids.times_s[first_day][np.argmin(built.grids.carbon_g_per_kwh[first_day])]
    assert abs(cleanest / 3600 - hours) < 3


def test_steps_cover_the_run_and_end_without_data() -> None:
    built = world()
    times_s = built.grids.times_s
    assert times_s[0] <= 0
    assert times_s[-1] > built.length_s
    assert (np.diff(times_s) == 900).all()
    assert np.isfinite(built.grids.carbon_g_per_kwh[:-1]).all()
    assert math.isnan(built.grids.carbon_g_per_kwh[-1])


def hourly(folder: Path, name: str, hours: list[int], first: str = "2023-06-01T05") -> None:
    start = np.datetime64(first, "h")
    rows = "".join(f"{start + np.timedelta64(n, 'h')}:00:00,{100 + n % 1000}\n" for n in hours)
    (folder / name).write_text("time_utc,value\n" + rows)


def test_file_and_constant_share_the_files_steps(tmp_path: Path) -> None:
    hourly(tmp_path, "carbon.csv", list(range(60)))
    carbon = {"file": "carbon.csv", "time_column": "time_utc", "column": "value"}
    grid = {"carbon": carbon, "price": {"constant": 50, "unit": "EUR/MWh"}}
    built = world(folder=tmp_path, grids={"SUN": grid}, start="2023-06-01T06:30:00Z")
    assert built.grids.times_s[:3].tolist() == [-1800, 1800, 5400]
    assert built.grids.carbon_g_per_kwh[:3].tolist() == [101, 102, 103]
    assert (built.grids.price_per_mwh[:-1] == 50).all()


def test_even_steps_stay_even(tmp_path: Path) -> None:
    hourly(tmp_path, "carbon.csv", list(range(3000)))
    carbon = {"file": "carbon.csv", "time_column": "time_utc", "column": "value"}
    grid = {"carbon": carbon, "price": {"constant": 50, "unit": "EUR/MWh"}}
    built = world(folder=tmp_path, grids={"SUN": grid}, start="2023-06-01T06:30:00Z")
    assert (np.diff(built.grids.times_s) == 3600).all()
    assert built.grids.times_s[-1] >= built.length_s + 30 * DAY_S
    assert math.isnan(built.grids.carbon_g_per_kwh[-1])


def test_a_hole_in_a_file_stays_a_hole_and_is_reported(tmp_path: Path) -> None:
    hourly(tmp_path, "carbon.csv", [n for n in range(49) if n not in (10, 11)])
    carbon = {"file": "carbon.csv", "time_column": "time_utc", "column": "value"}
    built = world(folder=tmp_path, grids={"SUN": {"carbon": carbon, "price": {"shape": "coal"}}})
    hour = (built.grids.times_s >= 9 * 3600) & (built.grids.times_s < 11 * 3600)
    assert np.isnan(built.grids.carbon_g_per_kwh[hour]).all()
    assert np.isfinite(built.grids.price_per_mwh[hour]).all()
    assert "SUN has no carbon for 2 h" in built.notes
    assert any("no carbon after the scenario's length" in note for note in built.notes)


def test_a_perfect_forecast_is_the_truth() -> None:
    grids = world().grids
    assert grids.forecast_carbon_g_per_kwh.tobytes() == grids.carbon_g_per_kwh.tobytes()
    assert grids.forecast_price_per_mwh.tobytes() == grids.price_per_mwh.tobytes()


def test_a_forecasts_error_grows_with_the_square_root_of_its_lead(tmp_path: Path) -> None:
    hourly(tmp_path, "carbon.csv", list(range(145)), first="2023-06-01T06")
    carbon = {"file": "carbon.csv", "time_column": "time_utc", "column": "value"}
    price = {"constant": 50, "unit": "EUR/MWh"}
    grid = {"carbon": carbon, "price": price, "forecast_error": 0.1}
    errors = []
    for seed in range(400):
        grids = world(seed, tmp_path, grids={"SUN": grid}).grids
        errors.append(np.log(grids.forecast_carbon_g_per_kwh / grids.carbon_g_per_kwh))
    times_s, seen = grids.times_s, np.array(errors)
    spread = seen.std(axis=0)
    assert (seen[:, 0] == 0).all()
    assert spread[times_s == DAY_S] == pytest.approx(0.1, rel=0.12)
    assert spread[times_s == 4 * DAY_S] == pytest.approx(0.2, rel=0.12)
    next_to_each_other = np.corrcoef(seen[:, 24], seen[:, 25])[0, 1]
    assert next_to_each_other > 0.9


def test_a_forecast_of_prices_may_cross_zero_but_one_of_carbon_never_does() -> None:
    shape = {"carbon": {"shape": "solar"}, "price": {"shape": "solar"}, "forecast_error": 1.0}
    grids = world(grids={"SUN": shape}).grids
    assert np.nanmin(grids.forecast_carbon_g_per_kwh) > 0
    assert np.nanmin(grids.forecast_price_per_mwh) < 0


def test_a_constant_is_known_whatever_the_other_signal_does() -> None:
    grid = {"carbon": {"constant": 300}, "price": {"shape": "solar"}, "forecast_error": 0.5}
    grids = world(grids={"SUN": grid}).grids
    assert np.unique(grids.forecast_carbon_g_per_kwh[:-1]).tolist() == [300.0]
    assert not np.array_equal(grids.forecast_price_per_mwh[:-1], grids.price_per_mwh[:-1])


def test_slack_goes_by_runtime(tmp_path: Path) -> None:
    slack = [{"shorter_than": "2h", "may_wait": "6h"}, {"shorter_than": "1d", "may_wait": "24h"},
             {"may_wait": "none"}]  # fmt: skip
    rows = "a,0,7199,1,1,0\nb,0,7200,1,1,0\nc,5,86400,1,1,0\n"
    built = world(folder=tmp_path, workload=traced(tmp_path, rows, slack=slack))
    waits_h = (built.jobs.deadline_s - built.jobs.arrival_s - built.jobs.runtime_s) / 3600
    assert waits_h.tolist() == [6, 24, math.inf]


def test_a_deadline_may_allow_for_slow_nodes(tmp_path: Path) -> None:
    workload = traced(tmp_path, "a,0,100,1,1,0\n", slack="1h", deadline_runtime_factor=2.0)
    assert world(folder=tmp_path, workload=workload).jobs.deadline_s.tolist() == [3800]


def test_the_first_job_arrives_at_the_start(tmp_path: Path) -> None:
    built = world(folder=tmp_path, workload=traced(tmp_path, "a,70,9,1,1,0\nb,95,9,1,1,0\n"))
    assert built.jobs.arrival_s.tolist() == [0, 25]
    assert built.job_names == ("a", "b")


def test_a_trace_may_be_cut_drawn_and_repeated(tmp_path: Path) -> None:
    rows = "".join(f"t{n},{10 * n},60,1,1,0\n" for n in range(100))
    first = world(folder=tmp_path, workload=traced(tmp_path, rows, first=7))
    assert first.job_names == tuple(f"t{n}" for n in range(7))
    drawn = world(folder=tmp_path, workload=traced(tmp_path, rows, sample=9))
    assert len(set(drawn.job_names)) == 9
    again = world(2, folder=tmp_path, workload=traced(tmp_path, rows, sample=9))
    assert drawn.job_names != again.job_names
    twice = world(folder=tmp_path, workload=traced(tmp_path, rows, first=3, repeat=2))
    assert twice.jobs.arrival_s.tolist() == [0, 10, 20, 30, 40, 50]
    assert twice.job_names == ("t0-0", "t1-0", "t2-0", "t0-1", "t1-1", "t2-1")


@settings(max_examples=30)
@given(st.floats(0.05, 2), st.integers(2, 60), st.integers(0, 99))
def test_arrivals_are_pressed_to_the_load(
    tmp_path_factory: pytest.TempPathFactory, load: float, count: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    dice = np.random.default_rng(seed)
    rows = "".join(
        f"t{n},{60 * n},{dice.integers(60, 9000)},{dice.integers(1, 64)},1024,0\n"
        for n in range(count)
    )
    workload = traced(folder, rows, load=load)
    built = world(folder=folder, workload=workload, grids={"SUN": CONSTANT}, length="3000d")
    jobs, capacity = built.jobs, capacity_of(built.nodes)
    work = float(jobs.runtime_s @ jobs.cpu_cores) / capacity.speed
    assert jobs.arrival_s.size == count
    assert work / capacity.cpu_cores / jobs.arrival_s[-1] == pytest.approx(load)


def test_the_scarcest_resource_makes_the_load(tmp_path: Path) -> None:
    rows = "a,0,1000,1,262144,0\nb,1,1000,1,262144,0\n"  # half of a node's memory each
    built = world(folder=tmp_path, workload=traced(tmp_path, rows, load=0.5))
    busy_s = 2 * 1000 / built.nodes.speed[0] / 2 / 3
    assert built.jobs.arrival_s[-1] == pytest.approx(busy_s / 0.5)


@pytest.mark.parametrize("load", [0.2, 0.7])
def test_as_many_jobs_are_made_up_as_make_the_load(load: float) -> None:
    generator = {"memory_per_core": ["1Gi"]}  # so that cores are scarce
    built = world(workload={"generator": generator, "load": load}, length="14d")
    jobs, capacity = built.jobs, capacity_of(built.nodes)
    work = float(jobs.runtime_s @ jobs.cpu_cores) / capacity.speed
    assert work / capacity.cpu_cores / built.length_s == pytest.approx(load, rel=0.01)


def test_jobs_after_the_end_are_left_out_and_reported(tmp_path: Path) -> None:
    rows = "a,0,60,1,1,0\nb,7200,60,1,1,0\n"
    built = world(folder=tmp_path, workload=traced(tmp_path, rows), length="2h")
    assert built.job_names == ("a",)
    assert "1 jobs are left out: they arrive after the scenario's length" in built.notes


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        pytest.param("big,0,60,129,1,0", "129 cores", id="cores"),
        pytest.param("big,0,60,1,524289,0", "512 GiB", id="memory"),
        pytest.param("big,0,60,1,1,1", "1 GPU;", id="gpus"),
    ],
)
def test_jobs_that_fit_no_node_are_refused_or_left_out(
    tmp_path: Path, row: str, asked: str
) -> None:
    rows = f"{row}\nfits,1,60,128,524288,0\n"
    with pytest.raises(BadInput, match=f"1 of 2 jobs fit no node; the largest, big, .*{asked}"):
        world(folder=tmp_path, workload=traced(tmp_path, rows))
    built = world(folder=tmp_path, workload=traced(tmp_path, rows, skip_unplaceable=True))
    assert built.job_names == ("fits",)
    assert any("fit no node" in note and "left out" in note for note in built.notes)


def test_estimates_err_around_what_was_given(tmp_path: Path) -> None:
    exact = world()
    assert exact.jobs.estimate_s.tolist() == exact.jobs.runtime_s.tolist()
    rough = world(workload={"generator": {"jobs": 5000}, "estimate_error": 0.4}, length="30d").jobs
    spread = np.log(rough.estimate_s / rough.runtime_s)
    assert spread.mean() == pytest.approx(0, abs=0.03)
    assert spread.std() == pytest.approx(0.4, rel=0.05)


def test_arrivals_peak_where_they_are_said_to() -> None:
    generator = {"jobs": 20_000, "daily_swing": 1.0, "peak": "14h"}
    jobs = world(workload={"generator": generator}, length="4d").jobs
    hour = (jobs.arrival_s / 3600 + 6) % 24  # the start is at 6 h UTC
    share = np.mean((hour >= 8) & (hour < 20))
    assert share == pytest.approx(0.5 + 1 / math.pi, abs=0.02)


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: str(path.stem))
def test_the_gallery_makes_worlds(path: Path) -> None:
    if "${" in path.read_text() and not DATA.is_dir():
        pytest.skip(f"no data sets at {DATA}; set GREENSCHED_DATA")
    built = build_world(load_scenario(path, {"GREENSCHED_DATA": str(DATA)}))
    assert built.jobs.arrival_s.size > 1000
    assert built.grids.starts.size == len(built.zones) + 1
    for zone in range(len(built.zones)):
        times_s = zone_values(built, built.grids.times_s, zone)
        assert times_s[0] <= 0 and times_s[-1] > built.length_s
        assert (np.diff(times_s) > 0).all()
        assert np.isfinite(zone_values(built, built.grids.carbon_g_per_kwh, zone)[:-1]).all()


def test_a_node_has_a_share_of_the_carbon_of_making_it_each_second() -> None:
    made = world(cluster={"nodes": [NODE | {"embodied": {"kg": 1000, "years": 4}}]})
    assert made.nodes.embodied_g_per_s == pytest.approx(1e6 / (4 * 365.25 * 86_400))
    assert not world().nodes.embodied_g_per_s.any()


def test_marginal_carbon_has_steps_of_its_own_and_leaves_the_others_as_they_were() -> None:
    grid = SMALL["grids"]["SUN"]
    plain, told = world(), world(grids={"SUN": grid | {"marginal": {"constant": 700}}})
    assert plain.grids.marginal_g_per_kwh.size == 0
    assert (told.grids.marginal_g_per_kwh[:-1] == 700.0).all()
    for ours, theirs in zip(told.grids[:6], plain.grids[:6], strict=True):
        assert ours.tobytes() == theirs.tobytes()
