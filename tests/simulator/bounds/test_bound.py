"""The least bill: reckoned by hand where that can be done, and never above what a policy takes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.inputs import SignalName
from greensched_simulator.bounds.limits import Freedom, latest_ends, limits_of
from greensched_simulator.policy import policy_named
from greensched_simulator.results.bound_report import bounded
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world
from tests.fuzzing import IS_FUZZING

HOUR_S = 3600.0
SIGNALS: tuple[SignalName, ...] = ("energy", "carbon", "cost")
# 100 W when empty, 20 W for each of the first five tenths of load and 40 W for each other one; with
# half of a request used, a core of ten takes 10 W at least.
CURVE = [100, 120, 140, 160, 180, 200, 240, 280, 320, 360, 400]


def made(folder: Any, rows: str, *, hours: list[float], slack: str = "3h", **more: Any) -> World:
    """Return a world of one ten-core node whose carbon, and price, change by the hour."""
    (folder / "jobs.csv").write_text("name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n" + rows)
    stamps = [f"2023-06-01T{hour:02}:00:00Z,{value}" for hour, value in enumerate(hours)]
    (folder / "grid.csv").write_text("time,value\n" + "\n".join(stamps) + "\n")
    grid = {"file": "grid.csv", "time_column": "time", "column": "value"}
    carbon = {"constant": 100} if min(hours) < 0 else grid
    node = {"name": "node", "count": 1, "curve_watts": CURVE, "cpu_cores": 10, "memory": "16Gi",
            "zone": "Z", "pue": 1.0} | more  # fmt: skip
    return build_world(
        parse_scenario(
            {
                "name": "hand", "start": "2023-06-01T00:00:00Z", "length": "2h",
                "cluster": {"nodes": [node]},
                "grids": {"Z": {"carbon": carbon, "price": grid | {"unit": "EUR/MWh"}}},
                "workload": {"trace": {"file": "jobs.csv"}, "slack": slack},
            },
            folder,
        )
    )  # fmt: skip


def test_one_job_takes_the_cleanest_hours_of_its_window(tmp_path: Any) -> None:
    world = made(tmp_path, "job,0,3600,10,1,0\n", hours=[400, 300, 100, 200, 500, 500])
    found = least_bill(world, "carbon", 4 * HOUR_S, limits_of(world))
    idle = 0.1 * (400 + 300 + 100 + 200)
    assert found.idle == pytest.approx(idle)
    assert found.total == pytest.approx(idle + 0.1 * 100)  # 100 W above idle in the third hour


def test_preemption_takes_the_cleanest_hours_wherever_they_lie(tmp_path: Any) -> None:
    world = made(tmp_path, "job,0,7200,10,1,0\n", hours=[400, 100, 300, 50, 500, 500], slack="2h")
    limits = limits_of(world)
    whole = least_bill(world, "carbon", 4 * HOUR_S, limits)
    parted = least_bill(world, "carbon", 4 * HOUR_S, limits, preempt=True)
    assert whole.total - whole.idle == pytest.approx(0.1 * (300 + 50))
    assert parted.total - parted.idle == pytest.approx(0.1 * (100 + 50))


def test_the_best_start_may_lie_within_a_slot(tmp_path: Any) -> None:
    world = made(tmp_path, "job,0,1800,10,1,0\n", hours=[400, 100, 400, 400, 400], slack="2h")
    slots = [least_bill(world, "carbon", 4 * HOUR_S, limits_of(world), slot_s=slot_s)
             for slot_s in (900.0, HOUR_S, 4 * HOUR_S)]  # fmt: skip
    assert [each.total - each.idle for each in slots] == pytest.approx([0.05 * 100] * 3)


def test_jobs_that_do_not_fit_together_cannot_all_have_the_best_hour(tmp_path: Any) -> None:
    rows = "a,0,3600,10,1,0\nb,0,3600,10,1,0\nc,0,3600,10,1,0\n"
    world = made(tmp_path, rows, hours=[400, 100, 400, 200, 500, 500])
    found = least_bill(world, "carbon", 4 * HOUR_S, limits_of(world), slot_s=900.0)
    all_in_one = 3 * 0.1 * 100
    assert found.total - found.idle > 2 * all_in_one
    assert found.total - found.idle <= 0.1 * (100 + 200 + 400) + 1e-9


def test_while_prices_are_negative_the_most_watts_count(tmp_path: Any) -> None:
    world = made(tmp_path, "job,0,3600,10,1,0\n", hours=[-100, -100, -100, -100, -100, -100])
    found = least_bill(world, "cost", 4 * HOUR_S, limits_of(world))
    assert found.idle == pytest.approx(4 * 0.0001 * -100)
    assert found.total - found.idle == pytest.approx(0.0001 * -100)


def test_a_job_that_cannot_end_in_time_is_reported_by_its_name(tmp_path: Any) -> None:
    world = made(tmp_path, "late,0,7200,10,1,0\n", hours=[1, 1, 1, 1], slack="0s", speed=0.5)
    limits = limits_of(world)._replace(latest_end_s=np.array([7200.0]))
    with pytest.raises(BadInput, match="late cannot end by 7200 s"):
        least_bill(world, "carbon", 3 * HOUR_S, limits)


def test_jobs_may_run_until_the_bills_end_where_nobody_knows_what_comes_after() -> None:
    hours = [(0.0, 100.0, 50.0), (10 * HOUR_S, np.nan, np.nan)]
    world = make_world([{"deadline_s": 99 * HOUR_S}], grids=[hours], length_s=10 * HOUR_S)
    assert least_bill(world, "carbon", 10 * HOUR_S, limits_of(world)).total > 0


def test_a_bound_of_nothing_has_no_gap_in_percent() -> None:
    found = bounded(make_world([{}], grids=[[(0.0, 0.0, 50.0)]]), [policy_named("spread")], HOUR_S)
    carbon = next(figure for figure in found.figures if figure.name == "carbon")
    assert (carbon.bound, carbon.runs[0].gap_pct) == (0.0, None)


def test_where_nothing_can_be_saved_no_share_is_reported() -> None:
    """Equal nodes, a straight curve, a constant grid: the baseline is the bound."""
    world = make_world([{"arrival_s": 60.0 * at, "runtime_s": 100.0 + at} for at in range(9)])
    policies = [policy_named("run-now+spread"), policy_named("reject-all")]
    for figure in bounded(world, policies, HOUR_S).figures:
        assert figure.runs[1].captured_pct is None


def test_a_job_that_none_ran_may_end_by_its_deadline_or_at_any_time() -> None:
    world = make_world([{"deadline_s": 9 * HOUR_S}, {}, {"deadline_s": 2 * HOUR_S}, {}])
    never = simulate(world, policy_named("reject-all"))
    assert latest_ends(world, never).tolist() == [9 * HOUR_S, np.inf, 2 * HOUR_S, np.inf]
    late = never._replace(end_s=np.array([np.nan, 5.0, 8 * HOUR_S, np.nan]))
    for schedules in ((late, never), (never, late)):
        assert latest_ends(world, *schedules).tolist() == [9 * HOUR_S, 5.0, 8 * HOUR_S, np.inf]


def test_a_policy_that_rejects_stands_beside_the_bound_with_its_charge() -> None:
    found = bounded(
        make_world([{"cpu_cores": 2.0}, {"runtime_s": 2 * HOUR_S}]),
        [policy_named(name) for name in ("spread", "reject-long", "reject-all")],
        HOUR_S,
    )
    for figure in found.figures:
        spread, some, none = (run.total for run in figure.runs)
        assert figure.bound <= spread < some < none


PANELS = {"peak_kw": 1.5, "output": {"shape": "days"}}
BATTERY = {"capacity_kwh": 1.0, "charge_kw": 0.5, "discharge_kw": 0.3}
WEATHER = {"shape": "daily", "mean": 15, "swing": 15}
FAILURES = {"every": "10h", "repair": "2h"}
WEB: dict[str, Any] = {
    "name": "web", "requests": {"generator": {"rate_per_s": 20.0, "daily_swing": 0.8}},
    "service_time": {"mean": "500ms"}, "objective": {"share": 0.95, "within": "4s"},
    "replica": {"cpu_cores": 3, "memory": "1Gi", "places": 4},
    "autoscaler": {"every": "15m", "scale_down_after": "30m"},
}  # fmt: skip


def sunny(noon: str) -> dict[str, Any]:
    return {name: {"shape": "solar", "noon": noon} for name in ("carbon", "price")}


def drawn(
    seed: int,
    nodes: int = 3,
    *,
    sleep: Any = None,
    autoscaling: Any = None,
    sites: Any = None,
    data: Any = None,
    failures: Any = None,
    services: Any = None,
    elastic: Any = None,
    together: dict[str, Any] = {},  # noqa: B006 - never written to
    **assumed: bool,
) -> World:
    """Return a random day in two sunny zones half a day apart."""
    grids = {"A": sunny("12h"), "B": sunny("0h")}
    groups = [
        {"name": zone.lower(), "count": nodes, "curve_watts": CURVE, "cpu_cores": 16,
         "memory": "64Gi", "zone": zone, "speed": speed, "sleep": sleep,
         "autoscaling": autoscaling, "failures": failures}
        for zone, speed in (("A", 1.0), ("B", 1.3))
    ]  # fmt: skip
    return build_world(
        parse_scenario(
            {
                "name": "random", "start": "2023-06-01T00:00:00Z", "length": "1d",
                "cluster": {"nodes": groups}, "grids": grids, "sites": sites or {},
                "workload": {
                    "generator": {"jobs": 60, "runtime_longest": "6h"} | together,
                    "slack": [{"shorter_than": "1h", "may_wait": "2h"}, {"may_wait": "8h"}],
                    "suspend": {"share": 0.8, "startup": "10m", "saving": "2m"},
                    "data": data or [],
                    "elastic": elastic or [],
                },
                "services": services or [],
                "assumptions": assumed,
            }
        ),
        seed,
    )  # fmt: skip


def figure(outcome: Outcome, signal: SignalName) -> float:
    return {"energy": outcome.energy_j, "carbon": outcome.carbon_g, "cost": outcome.cost}[signal]


SLEEPS = st.sampled_from(
    [
        {},
        {"empty_nodes_sleep": True},
        {"sleep": {"watts": 5, "wake": "4m"}},
        {"sleep": {"watts": 5, "wake": "0s"}},
        {"sleep": {"watts": 5, "wake": "4m"}, "autoscaling": {"min": 1}},
        {"sites": {"A": {"solar": PANELS}}},
        {"sites": {"B": {"solar": PANELS, "battery": BATTERY}}, "empty_nodes_sleep": True},
        {"sites": {"A": {"weather": {"temperature": WEATHER}}}},
        {"sites": {"B": {"weather": {"temperature": WEATHER}}}, "empty_nodes_sleep": True},
        {"data": [{"size": ["100M", "5G"], "zones": ["A"], "share": 0.8}]},
        {"data": [{"size": ["50G"]}], "sleep": {"watts": 5, "wake": "4m"}},
        {"data": [{"size": ["50G"]}], "failures": FAILURES},
    ]
)


CAPS = ("bin-pack+cap-frugal", "bin-pack+sleep-at-once+cap-60", "planned-window+cap-when-dirty")
PAUSES = ("wait-awhile", "ecovisor", "price-threshold+bin-pack+pause-freely",
          "planned-window+sleep-at-once+pause-if-worth")  # fmt: skip
SCALES = ("carbon-scaler", "price-threshold+bin-pack+sleep-at-once+scale-freely", "wait-awhile")
ELASTIC = [{"throughput": [1, 1.8, 2.2], "share": 0.5}, {"throughput": [1, 2], "share": 0.4}]
FREEDOM = st.sampled_from(
    [(Freedom(), ()), (Freedom(cap=True), CAPS), (Freedom(suspend=True), PAUSES),
     (Freedom(suspend=True, cap=True), ("cheapest-window+cap-60+pause-freely",)),
     (Freedom(suspend=True, scale=True), SCALES),
     (Freedom(suspend=True, cap=True, scale=True),
      ("planned-window+cap-when-dirty+scale-freely",))]
)  # fmt: skip


BESIDE = st.sampled_from(
    [{}, {"services": [WEB]}, {"failures": FAILURES}, {"services": [WEB], "failures": FAILURES}]
)
TOGETHER = st.sampled_from([{}, {"workers": [1, 1, 2], "stages": [1, 3], "stage_tasks": [1, 2]}])


@settings(max_examples=48 if IS_FUZZING else 24)
@given(st.integers(0, 1000), SLEEPS, BESIDE, st.sampled_from([0.0, 90.0]), FREEDOM, TOGETHER)
def test_no_policy_is_below_the_bound_and_preemption_only_lowers_it(
    seed: int,
    sleeps: dict[str, Any],
    beside: dict[str, Any],
    price_falls_by: float,
    free: tuple[Freedom, tuple[str, ...]],
    together: dict[str, Any],
) -> None:
    freedom, free_ones = free
    elastic = ELASTIC if freedom.scale else []
    world = drawn(seed, together=together, elastic=elastic, **{**sleeps, **beside})
    grids = world.grids
    world = world._replace(grids=grids._replace(price_per_mwh=grids.price_per_mwh - price_falls_by))
    names = ("run-now+spread", "lowest-window+weighted-cost", "planned-window+least-cost",
             "bin-pack+sleep-at-once", "planned-window+bin-pack+sleep-at-break-even",
             "reject-all+sleep-at-once", "reject-long+spread", *free_ones)  # fmt: skip
    schedules = [simulate(world, policy_named(name)) for name in names]
    until_s, limits = billed_until_s(world, *schedules), limits_of(world, *schedules)
    outcomes = [
        outcome_of(world, each, bill_of(world, each, until_s), until_s) for each in schedules
    ]
    for signal in SIGNALS:
        found = limits.freedom
        assert (found.cap, found.suspend <= freedom.suspend) == (freedom.cap, True)
        assert found.scale <= freedom.scale
        whole = least_bill(world, signal, until_s, limits)
        parted = least_bill(world, signal, until_s, limits, preempt=True)
        least = min(figure(outcome, signal) for outcome in outcomes)
        assert parted.total <= whole.total + 1e-9 * abs(whole.total)
        assert whole.total <= least + 1e-9 * abs(least)


@pytest.mark.parametrize("signal", ["energy", "carbon", "cost"])
@settings(max_examples=8)
@given(st.integers(0, 1000))
def test_more_nodes_never_make_the_active_part_dearer(signal: SignalName, seed: int) -> None:
    # What more nodes take while they idle is another matter: the whole bound rises with it.
    small, large = drawn(seed), drawn(seed, nodes=6)
    ends_s = np.maximum(latest_ends(small), latest_ends(large))
    limits = limits_of(small)._replace(latest_end_s=ends_s)
    active = [
        found.total - found.idle
        for found in (least_bill(each, signal, 2 * 86_400.0, limits) for each in (small, large))
    ]
    assert active[1] <= active[0] * (1 + 1e-9)
