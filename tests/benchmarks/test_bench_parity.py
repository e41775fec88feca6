"""What the compared day reckons itself, beside the bill."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parity import dirtier, dirtier_simulated, grams_of_kilowatt
from benchmarks.parity_day import PlayedDay
from greensched_core.errors import BadInput
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_testbed.held_day.day import Day, ItemRun, PodSpan
from greensched_testbed.operator_processes import FastClock

HOUR_S = 3600.0
JOB = {"arrival_s": 0.0, "runtime_s": 60.0, "cpu_cores": 1.0, "memory_bytes": 1.0, "gpus": 0.0}
GRID = [(0.0, 100.0, 1.0), (HOUR_S, 200.0, 1.0), (2 * HOUR_S, np.nan, np.nan)]


@pytest.mark.parametrize(
    ("start_h", "hours", "grams"),
    [
        pytest.param(0.5, 1.0, 150.0, id="over-two-steps"),
        pytest.param(1.0, 1.0, 200.0, id="until-the-data-ends"),
        pytest.param(1.5, 1.0, np.nan, id="beyond-the-data"),
    ],
)
def test_a_kilowatt_emits_what_each_hour_of_its_run_has(
    start_h: float, hours: float, grams: float
) -> None:
    world = make_world([JOB], [{}], [GRID])
    found = grams_of_kilowatt(world, 0, start_h * HOUR_S, hours * HOUR_S)
    assert found == pytest.approx(grams, nan_ok=True)


def held_run(first_planned: float | None) -> ItemRun:
    """Return a run held from hour 0 to 1, whose power emits 200 instead of 100 g/kWh."""
    pods = {"pod": PodSpan("node-0-0", HOUR_S, 1.5 * HOUR_S)}
    return ItemRun(
        0, "job", created_s=0.0, released_s=HOUR_S, planned_s=HOUR_S, pods=pods,
        arrival_g_per_kwh=first_planned,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first_planned", "share_pct", "worst_pct"),
    [
        pytest.param(100.0, 100.0, 100.0, id="there-was-room-in-its-own-zone"),
        pytest.param(250.0, 0.0, -20.0, id="there-was-room-in-a-dirtier-zone-only"),
        pytest.param(0.0, 100.0, np.inf, id="there-was-room-in-a-zone-that-emits-nothing"),
    ],
)
def test_a_held_run_is_compared_with_its_own_node_and_with_where_there_was_room(
    first_planned: float, share_pct: float, worst_pct: float
) -> None:
    day = Day(make_world([JOB], [{}], [GRID]), FastClock(60.0, 0.0, 0.0), "day")
    assert dirtier(day, [held_run(first_planned)]) == pytest.approx(
        {
            "held_dirtier_pct": 100.0,
            "held_dirtiest_pct": 100.0,
            "held_dirtier_than_first_planned_pct": share_pct,
            "held_dirtiest_than_first_planned_pct": worst_pct,
        }
    )


def test_a_held_run_whose_first_plan_was_not_seen_is_refused() -> None:
    day = Day(make_world([JOB], [{}], [GRID]), FastClock(60.0, 0.0, 0.0), "day")
    with pytest.raises(BadInput, match="carbon is not known for 1 runs"):
        dirtier(day, [held_run(None)])


def test_the_simulated_day_is_compared_alike() -> None:
    world = make_world([JOB], [{}], [GRID])
    ran = simulate(world, policy_named("run-now"))
    bill, later = bill_of(world, ran, HOUR_S), ran.run_segments
    later = later._replace(start_s=later.start_s + HOUR_S, end_s=later.end_s + HOUR_S)
    held = ran._replace(planned_s=ran.planned_s + HOUR_S, run_segments=later)
    day = Day(world, FastClock(60.0, 0.0, 0.0), "day")
    for simulated, share_pct in ((ran, 0.0), (held, 100.0)):
        done = PlayedDay(day, [], simulated, bill, bill, bill)
        assert dirtier_simulated(done) == {"held_dirtier_simulated_pct": share_pct}
