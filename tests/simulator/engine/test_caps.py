"""Nodes under power caps: how long jobs then take, when power caps change, and what that is
billed.
"""

import numpy as np
import pytest

from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.limits import Freedom, limits_of
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

HOUR = 3600.0
SLOW = 1.0 / (0.5 + 0.5 / 0.6)  # a CPU's speed at 60 %
HALF = 1.0 / 1.5


def ran(world: World, policy: str) -> Schedule:
    return simulate(world, policy_named(policy))


def told(schedule: Schedule) -> list[tuple[float, ...]]:
    """Return node, time and power cap of each change."""
    return list(zip(*(each.tolist() for each in schedule.caps), strict=True))


def test_a_capped_job_takes_longer_and_draws_less() -> None:
    """One of ten cores, half used: 10 W above idle, 3.6 W at 60 %."""
    world = make_world([{}])
    schedule = ran(world, "cap-60")
    assert told(schedule) == [(0, 0.0, 0.6)]
    assert schedule.end_s.tolist() == [pytest.approx(HOUR / SLOW)]
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [pytest.approx(10.0 * 0.36 * HOUR / SLOW)]
    assert bill.energy_idle_j.tolist() == [pytest.approx(100.0 * 2 * HOUR)]


def test_a_job_with_gpus_goes_by_their_limit() -> None:
    """Four fifths of 350 W above 50 W, so 330 W: a limit of 240 W leaves 190 above idle."""
    node = {"gpu_capacity": 2.0, "gpu_idle_w": 50.0, "gpu_peak_w": 400.0}
    world = make_world([{"gpus": 1.0, "cpu_cores": 0.0}], [node])
    schedule = ran(world, "cap-60")
    speed = float(np.interp(240 / 330, [0.723, 0.813], [0.908, 0.954]))
    assert schedule.end_s.tolist() == [pytest.approx(HOUR / speed)]
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [pytest.approx(190.0 * HOUR / speed)]


def test_a_change_of_power_cap_moves_the_ends_of_what_runs() -> None:
    """An hour at two thirds of the speed while it is dirty, and the rest at full speed."""
    grid = [(0.0, 900.0, 50.0), (HOUR, 100.0, 50.0)]
    world = make_world([{"runtime_s": 2 * HOUR}], grids=[grid])
    schedule = ran(world, "cap-when-dirty")
    assert told(schedule) == [(0, 0.0, 0.5), (0, HOUR, 1.0)]
    assert schedule.end_s.tolist() == [pytest.approx(HOUR + (2 - HALF) * HOUR)]
    bill = bill_of(world, schedule, 4 * HOUR)
    active_j = 10.0 * (0.25 + (2 - HALF)) * HOUR
    assert bill.energy_active_j.tolist() == [pytest.approx(active_j)]
    grams = 10.0 * HOUR * (0.25 * 900 + (2 - HALF) * 100) / 3.6e6
    assert bill.carbon_active_g.tolist() == [pytest.approx(grams)]


def test_a_deadline_lifts_the_cap_for_all_on_the_node() -> None:
    """The second job has no time to lose; once it has ended the first one is slowed again."""
    jobs = [{"runtime_s": 4 * HOUR}, {"arrival_s": HOUR, "runtime_s": HOUR, "deadline_s": 2 * HOUR}]
    schedule = ran(make_world(jobs), "cap-frugal")
    assert told(schedule) == [(0, 0.0, 0.5), (0, HOUR, 1.0), (0, 2 * HOUR, 0.5)]
    assert schedule.end_s[1] == 2 * HOUR
    left_s = (4 - HALF - 1) * HOUR
    assert schedule.end_s[0] == pytest.approx(2 * HOUR + left_s / HALF)


def test_a_static_cap_misses_deadlines_and_that_is_told() -> None:
    world = make_world([{"deadline_s": 1.2 * HOUR}])
    assert ran(world, "cap-60").end_s[0] > 1.2 * HOUR
    assert ran(world, "cap-frugal").end_s[0] <= 1.2 * HOUR + 1e-6


def test_a_cap_goes_by_the_estimate_not_by_the_truth() -> None:
    """Half of the work is expected: half speed seems to do until the deadline, and is too slow."""
    job = {"runtime_s": HOUR, "estimate_s": HOUR / 2, "deadline_s": HOUR}
    schedule = ran(make_world([job]), "cap-frugal")
    assert told(schedule)[0] == (0, 0.0, 0.5)
    assert schedule.end_s[0] > HOUR


def test_a_job_on_a_waking_node_begins_when_that_is_awake() -> None:
    node = {"sleep_w": 10.0, "wake_s": 300.0, "wake_w": 300.0}
    world = make_world([{"arrival_s": HOUR}], [node])
    schedule = ran(world, "sleep-at-once+cap-60")
    assert schedule.start_s.tolist() == [HOUR + 300.0]
    assert schedule.end_s.tolist() == [pytest.approx(HOUR + 300.0 + HOUR / SLOW)]


def test_without_a_rule_that_caps_nobody_is_capped() -> None:
    assert told(ran(make_world([{}, {}]), "run-now")) == []


def test_idle_watts_that_end_with_the_work_count_where_empty_nodes_sleep_for_nothing() -> None:
    """100 W idle and 10 above: slower work would keep the node awake for more than it saves."""
    assumed = ran(make_world([{}], empty_nodes_sleep=True), "cap-frugal")
    modelled = ran(make_world([{}], [{"sleep_w": 0.0}]), "cap-frugal+sleep-at-once")
    assert told(assumed) == told(modelled) == []


def test_who_waits_for_room_is_not_asked_how_long() -> None:
    """The second job has slack while it runs, but the first one, slowed, keeps it waiting."""
    jobs = [{"cpu_cores": 10.0}, {"arrival_s": 60.0, "cpu_cores": 10.0, "deadline_s": 2.2 * HOUR}]
    assert ran(make_world(jobs), "full-speed").end_s.tolist() == [HOUR, 2 * HOUR]
    schedule = ran(make_world(jobs), "cap-frugal")
    assert schedule.end_s[0] == pytest.approx(1.5 * HOUR)
    assert schedule.end_s[1] > 2.2 * HOUR


def test_of_two_choices_at_one_instant_the_later_one_holds() -> None:
    """A job that takes less than the clock can tell comes and goes at the same time."""
    hasty = {"arrival_s": HOUR, "runtime_s": 1e-13, "estimate_s": HOUR, "deadline_s": 2 * HOUR}
    schedule = ran(make_world([{"runtime_s": 4 * HOUR}, hasty]), "cap-frugal")
    assert told(schedule)[-1][2] == 0.5
    assert schedule.end_s[0] == pytest.approx(6 * HOUR)


@pytest.mark.parametrize("gpus", [0.0, 1.0])
def test_the_bound_is_the_least_joules_of_any_power_cap_for_the_jobs_kind(gpus: float) -> None:
    """Alone on its node, on a straight curve, a job under the frugal cap takes just the bound."""
    node = {"gpu_capacity": 1.0, "gpu_idle_w": 50.0, "gpu_peak_w": 400.0} if gpus else {}
    world = make_world([{"gpus": gpus, "cpu_cores": 1.0 - gpus}], [node])
    schedule = ran(world, "cap-frugal")
    limits = limits_of(world, schedule)._replace(freedom=Freedom(cap=True))
    least = least_bill(world, "energy", 4 * HOUR, limits)
    taken_j = bill_of(world, schedule, 4 * HOUR).energy_active_j.sum()
    assert least.total - least.idle == pytest.approx(taken_j, rel=1e-6)
