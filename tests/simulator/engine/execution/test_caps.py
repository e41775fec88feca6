"""Nodes under power caps: how long jobs then take, when power caps change, and what that is
billed.
"""

import numpy as np
import pytest

from greensched_policies.costs.capping import EXPECTED_SENSITIVITY, cpu_speed
from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.limits import Freedom, limits_of
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

HOUR = 3600.0
SLOW = 1.0 / (0.5 + 0.5 / 0.6)  # the speed at 60 % of a job of which half scales with frequency
HALF = 1.0 / 1.5
GPU_NODE = {"gpu_capacity": 2.0, "gpu_idle_w": 50.0, "gpu_peak_w": 400.0}


def ran(world: World, policy: str) -> Schedule:
    return simulate(world, policy_named(policy))


def told(schedule: Schedule) -> list[tuple[float, ...]]:
    """Return node, time, CPU frequency and GPU cap of each change."""
    return list(zip(*(each.tolist() for each in schedule.caps), strict=True))


def test_a_capped_job_takes_longer_and_draws_less() -> None:
    """One of ten cores, half used: 10 W above idle, 4.352 W at 60 %."""
    world = make_world([{}])
    schedule = ran(world, "cap-60")
    assert told(schedule) == [(0, 0.0, 0.6, 1.0)]
    assert schedule.end_s.tolist() == [pytest.approx(HOUR / SLOW)]
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [pytest.approx(4.352 * HOUR / SLOW)]
    assert bill.energy_idle_j.tolist() == [pytest.approx(100.0 * 2 * HOUR)]


def test_a_job_with_gpus_goes_by_their_limit() -> None:
    """Four fifths of 350 W above 50 W, so 330 W: a limit of 240 W leaves 190 above idle."""
    job = {"gpus": 1.0, "cpu_cores": 0.0, "frequency_sensitivity": 0.0}
    world = make_world([job], [GPU_NODE])
    schedule = ran(world, "cap-60")
    assert told(schedule)[-1] == (0, 0.0, 0.6, 0.6)
    speed = float(np.interp(240 / 330, [0.723, 0.813], [0.908, 0.954]))
    assert schedule.end_s.tolist() == [pytest.approx(HOUR / speed)]
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [pytest.approx(190.0 * HOUR / speed)]


def test_a_limit_of_gpus_slows_only_the_work_that_draws_more() -> None:
    """A limit of 240 W leaves 190 above idle: of 330 that one job wants, and of 70 of the other."""
    jobs = [
        {"gpus": 1.0, "cpu_cores": 0.0, "frequency_sensitivity": 0.0, "gpu_ratio": gpu_ratio}
        for gpu_ratio in (0.8, 0.2)
    ]
    world = make_world(jobs, [GPU_NODE])
    schedule = ran(world, "cap-60")
    speed = float(np.interp(240 / 330, [0.723, 0.813], [0.908, 0.954]))
    assert schedule.end_s.tolist() == pytest.approx([HOUR / speed, HOUR])
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [pytest.approx(190.0 * HOUR / speed + 70.0 * HOUR)]


@pytest.mark.parametrize(("gpu_ratio", "gpu_cap"), [
    pytest.param(0.1, 0.6, id="light-work-is-not-slowed-by-any-limit"),
    pytest.param(0.8, 0.9, id="work-that-wants-330-W-keeps-them"),
])  # fmt: skip
def test_a_deadline_counts_at_the_speed_of_its_own_job(gpu_ratio: float, gpu_cap: float) -> None:
    """For the first job alone, which wants 400 W, a limit of 60 % takes least energy."""
    jobs = [
        {"gpus": 1.0, "cpu_cores": 0.0, "gpu_ratio": 1.0},
        {"gpus": 1.0, "cpu_cores": 0.0, "gpu_ratio": gpu_ratio, "deadline_s": HOUR},
    ]
    schedule = ran(make_world(jobs, [GPU_NODE]), "cap-frugal")
    assert told(schedule)[0] == (0, 0.0, 1.0, gpu_cap)
    assert schedule.end_s[1] == HOUR


def test_a_change_of_power_cap_moves_the_ends_of_what_runs() -> None:
    """An hour at two thirds of the speed while it is dirty, and the rest at full speed."""
    grid = [(0.0, 900.0, 50.0), (HOUR, 100.0, 50.0)]
    world = make_world([{"runtime_s": 2 * HOUR}], grids=[grid])
    schedule = ran(world, "cap-when-dirty")
    assert told(schedule) == [(0, 0.0, 0.5, 1.0), (0, HOUR, 1.0, 1.0)]
    assert schedule.end_s.tolist() == [pytest.approx(HOUR + (2 - HALF) * HOUR)]
    bill = bill_of(world, schedule, 4 * HOUR)
    active_j = 10.0 * (0.396 + (2 - HALF)) * HOUR
    assert bill.energy_active_j.tolist() == [pytest.approx(active_j)]
    grams = 10.0 * HOUR * (0.396 * 900 + (2 - HALF) * 100) / 3.6e6
    assert bill.carbon_active_g.tolist() == [pytest.approx(grams)]


@pytest.mark.parametrize("sensitivity", [0.0, 0.22, 1.0])
def test_each_job_slows_by_its_own_sensitivity(sensitivity: float) -> None:
    jobs = [{"frequency_sensitivity": sensitivity}, {}]
    schedule = ran(make_world(jobs), "cap-60")
    slowed = float(cpu_speed(0.6, sensitivity))
    assert schedule.end_s.tolist() == pytest.approx([HOUR / slowed, HOUR / SLOW])


def test_what_is_not_known_of_a_jobs_sensitivity_makes_no_job_late() -> None:
    """It may be fully sensitive, so that 80 % just do; the expected one would allow 60 %."""
    job = {"deadline_s": 1.29 * HOUR, "frequency_sensitivity": 1.0}
    schedule = ran(make_world([job]), "cap-frugal")
    assert [cpu for _, _, cpu, _ in told(schedule)] == [0.8]
    assert schedule.end_s[0] == pytest.approx(1.25 * HOUR)


def test_the_slower_of_cpus_and_gpus_holds_up_a_job_that_uses_both() -> None:
    sensitive = {"gpus": 1.0, "frequency_sensitivity": 1.0}
    schedule = ran(make_world([sensitive], [GPU_NODE]), "cap-60")
    assert schedule.end_s.tolist() == [pytest.approx(HOUR / 0.6)]


def test_cpus_are_not_slowed_where_that_prolongs_the_watts_of_gpus() -> None:
    """Beside 280 W of a GPU, 10 W of the CPUs are not worth a slower run."""
    schedule = ran(make_world([{"gpus": 1.0}], [GPU_NODE]), "cap-frugal")
    assert [cpu for _, _, cpu, _ in told(schedule)] == [1.0]
    assert told(schedule)[-1][3] < 1.0


def test_gpus_that_nobody_uses_are_not_capped() -> None:
    jobs = [{}, {"arrival_s": HOUR / 2, "gpus": 1.0}]
    schedule = ran(make_world(jobs, [GPU_NODE]), "cap-60")
    assert told(schedule) == [(0, 0.0, 0.6, 1.0), (0, HOUR / 2, 0.6, 0.6)]


@pytest.mark.parametrize(("cores", "frequency"), [
    pytest.param(10.0, 1.0, id="half-loaded-CPUs-draw-less-than-60-percent"),
    pytest.param(20.0, 0.5 ** (1 / 3), id="full-ones-clock-down-as-the-watts-demand"),
])  # fmt: skip
def test_a_limit_of_package_watts_counts_only_below_what_the_cpus_draw(
    cores: float, frequency: float
) -> None:
    """A limit of 60 % of the watts at full load: 0.8 · f³ + 0.2 = 0.6."""
    world = make_world([{"cpu_cores": 10.0}], caps_package_power=True)
    world = world._replace(utilisation_ratio=cores / 20.0)
    schedule = ran(world, "cap-60")
    speed = float(cpu_speed(frequency, 0.5))
    assert schedule.end_s.tolist() == [pytest.approx(HOUR / speed)]
    drawn_w = 200.0 * min(cores / 20.0, 0.6)
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [pytest.approx(drawn_w * HOUR / speed)]


def test_package_watts_bind_once_a_second_job_loads_the_node() -> None:
    jobs = [{"cpu_cores": 5.0}, {"cpu_cores": 5.0, "arrival_s": HOUR / 2}]
    world = make_world(jobs, caps_package_power=True)._replace(utilisation_ratio=1.0)
    schedule = ran(world, "cap-60")
    (_, at_s, frequency, _), *later = told(schedule)
    assert (at_s, later[0][2]) == (HOUR / 2, 1.0)
    assert frequency == pytest.approx(0.5 ** (1 / 3))


def test_a_deadline_lifts_the_cap_for_all_on_the_node() -> None:
    """The second job has no time to lose; once it has ended the first one is slowed again."""
    jobs = [{"runtime_s": 4 * HOUR}, {"arrival_s": HOUR, "runtime_s": HOUR, "deadline_s": 2 * HOUR}]
    schedule = ran(make_world(jobs), "cap-frugal")
    frequencies = [(at_s, cpu) for _, at_s, cpu, _ in told(schedule)]
    assert frequencies == [(0.0, 0.6), (HOUR, 1.0), (2 * HOUR, 0.6)]
    assert schedule.end_s[1] == 2 * HOUR
    left_s = (4 - SLOW - 1) * HOUR
    assert schedule.end_s[0] == pytest.approx(2 * HOUR + left_s / SLOW)


def test_a_static_cap_misses_deadlines_and_that_is_reported() -> None:
    world = make_world([{"deadline_s": 1.2 * HOUR}])
    assert ran(world, "cap-60").end_s[0] > 1.2 * HOUR
    assert ran(world, "cap-frugal").end_s[0] <= 1.2 * HOUR + 1e-6


def test_a_cap_goes_by_the_estimate_not_by_the_truth() -> None:
    """Half of the work is expected: 60 % seems to do until the deadline, and is too slow."""
    job = {"runtime_s": HOUR, "estimate_s": HOUR / 2, "deadline_s": HOUR}
    schedule = ran(make_world([job]), "cap-frugal")
    assert told(schedule)[0] == (0, 0.0, 0.6, 1.0)
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
    assert schedule.end_s[0] == pytest.approx(HOUR / SLOW)
    assert schedule.end_s[1] > 2.2 * HOUR


def test_of_two_choices_at_one_instant_the_later_one_holds() -> None:
    """A job that takes less than the clock can tell comes and goes at the same time."""
    hasty = {"arrival_s": HOUR, "runtime_s": 1e-13, "estimate_s": HOUR, "deadline_s": 2 * HOUR}
    schedule = ran(make_world([{"runtime_s": 4 * HOUR}, hasty]), "cap-frugal")
    assert told(schedule)[-1][2] == 0.6
    assert schedule.end_s[0] == pytest.approx(4 * HOUR / SLOW)


@pytest.mark.parametrize("gpus", [0.0, 1.0])
def test_the_bound_is_the_least_joules_of_any_power_cap_for_the_jobs_kind(gpus: float) -> None:
    """Alone on its node, on a straight curve, a job of the expected sensitivity takes just that."""
    job = {"gpus": gpus, "cpu_cores": 1.0 - gpus, "frequency_sensitivity": EXPECTED_SENSITIVITY}
    world = make_world([job], [GPU_NODE if gpus else {}])
    schedule = ran(world, "cap-frugal")
    limits = limits_of(world, schedule)._replace(freedom=Freedom(cap=True))
    least = least_bill(world, "energy", 4 * HOUR, limits)
    taken_j = bill_of(world, schedule, 4 * HOUR).energy_active_j.sum()
    assert least.total - least.idle == pytest.approx(taken_j, rel=1e-6)
