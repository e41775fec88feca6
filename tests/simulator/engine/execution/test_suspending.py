"""Jobs that are suspended in dirty hours and resumed, and what that takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.compiling.compiled import compiled
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.pausing import PauseColumns, planned_slots
from greensched_policies.rules.catalogue import PAUSE_RULES
from greensched_simulator.bounds.bound import least_totals
from greensched_simulator.bounds.limits import freedom_of
from greensched_simulator.phase_jobs.phases import Phase, PhasedJob, spent
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.job_times import waits_s
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World

HOUR, MINUTE = 3600.0, 60.0
# Clean from 2 to 3 h and from 4 to 6 h; the slack of a job of 2.5 h is 4.5 h.
WAVES = [(0.0, 500.0, 50.0), (2 * HOUR, 100.0, 50.0), (3 * HOUR, 500.0, 50.0),
         (4 * HOUR, 100.0, 50.0), (6 * HOUR, 600.0, 50.0)]  # fmt: skip
JOB = {"runtime_s": 2.5 * HOUR, "deadline_s": 7 * HOUR, "save_every_s": 0.0}
COSTLY = {"startup_s": 5 * MINUTE, "save_s": MINUTE}


def ran(world: World, policy: str) -> Schedule:
    return simulate(world, policy_named(policy))


def run_segments(schedule: Schedule) -> list[tuple[int, float, float]]:
    """Return job, start and end of each run segment, in minutes."""
    told = schedule.run_segments
    minutes = [np.round(each / MINUTE, 6).tolist() for each in (told.start_s, told.end_s)]
    return list(zip(told.job.tolist(), *minutes, strict=True))


@pytest.mark.parametrize(("policy", "expected"), [
    pytest.param("run-now", [(0, 0, 150)], id="run-now"),
    pytest.param("lowest-window", [(0, 210, 360)], id="cleanest-window"),
    pytest.param("lowest-window+pause-freely", [(0, 120, 180), (0, 240, 330)], id="cleanest-slots"),
    pytest.param("wait-awhile", [(0, 120, 180), (0, 240, 330)], id="wait-awhile"),
    pytest.param("ecovisor", [(0, 120, 180), (0, 240, 330)], id="ecovisor"),
    pytest.param("run-now+pause-freely", [(0, 0, 150)], id="nothing-to-wait-for"),
])  # fmt: skip
def test_a_job_that_can_be_suspended_runs_in_the_clean_hours(
    policy: str, expected: list[tuple[int, float, float]]
) -> None:
    assert run_segments(ran(make_world([JOB], grids=[WAVES]), policy)) == expected


def test_other_jobs_run_through() -> None:
    world = make_world([JOB | {"save_every_s": np.inf}], grids=[WAVES])
    assert run_segments(ran(world, "wait-awhile")) == [(0, 210, 360)]


@pytest.mark.parametrize(("more", "expected"), [
    pytest.param({"startup_s": 300.0}, [(0, 120, 180), (0, 240, 335)], id="starts-up-twice"),
    pytest.param({"save_s": 60.0}, [(0, 120, 181), (0, 240, 330)], id="saves-before-it-stops"),
    pytest.param(
        COSTLY | {"save_every_s": 1800.0}, [(0, 120, 187), (0, 240, 328)], id="to-a-checkpoint"
    ),
])  # fmt: skip
def test_suspending_and_resuming_takes_time(
    more: dict[str, float], expected: list[tuple[int, float, float]]
) -> None:
    """With checkpoints of a minute after each half hour, the second ends 5 + 2 · 31 min on."""
    world = make_world([JOB | more], grids=[WAVES])
    assert run_segments(ran(world, "wait-awhile")) == expected


def test_a_suspended_job_waits_while_it_does_not_run_and_leaves_its_room_to_others() -> None:
    """Both need the whole node; the second has no deadline, and runs where there is room."""
    jobs = [JOB | {"cpu_cores": 10.0}, {"arrival_s": 1.0, "runtime_s": HOUR, "cpu_cores": 10.0}]
    world = make_world(jobs, grids=[WAVES])
    schedule = ran(world, "wait-awhile")
    assert run_segments(schedule)[:2] == [(0, 120, 180), (0, 240, 330)]
    assert waits_s(world, schedule).tolist() == [3 * HOUR, 0.0]
    late = make_world([jobs[0], jobs[1] | {"arrival_s": 2.5 * HOUR}], grids=[WAVES])
    assert run_segments(ran(late, "wait-awhile")) == [(0, 120, 180), (0, 240, 330), (1, 180, 240)]


def test_who_finds_no_room_when_resumed_queues_and_is_not_late_for_more_pauses() -> None:
    """The other job takes the room at 3 h for two hours."""
    other = {"arrival_s": 2.5 * HOUR, "runtime_s": 2 * HOUR, "cpu_cores": 10.0}
    world = make_world([JOB | {"cpu_cores": 10.0}, other], grids=[WAVES])
    assert run_segments(ran(world, "wait-awhile")) == [(0, 120, 180), (0, 300, 390), (1, 180, 300)]


def test_a_pause_that_saves_less_than_a_restart_takes_is_not_made() -> None:
    """A quarter at 230 instead of 100 g/kWh, or a restart of 20 minutes at 100."""
    short = [(0.0, 100.0, 50.0), (HOUR, 230.0, 50.0), (1.25 * HOUR, 100.0, 50.0)]
    job = {"runtime_s": 2 * HOUR, "deadline_s": 3 * HOUR, "save_every_s": 0.0,
           "startup_s": 20 * MINUTE}  # fmt: skip
    world = make_world([job], grids=[short])
    for pause in ("pause-freely", "pause-if-worth"):
        assert run_segments(ran(world, f"lowest-window+{pause}")) == [(0, 0, 120)]
        dirtier = make_world([job], grids=[[short[0], (HOUR, 240.0, 50.0), short[2]]])
        assert run_segments(ran(dirtier, f"lowest-window+{pause}")) == [(0, 0, 60), (0, 75, 155)]


def test_who_takes_longer_than_thought_is_resumed_in_time_all_the_same() -> None:
    world = make_world([JOB | {"estimate_s": HOUR}], grids=[WAVES])
    assert run_segments(ran(world, "wait-awhile")) == [(0, 120, 270)]
    world = make_world([JOB | {"estimate_s": 2.25 * HOUR}], grids=[WAVES])
    assert run_segments(ran(world, "wait-awhile")) == [(0, 120, 180), (0, 240, 330)]


def test_restarts_take_no_longer_than_the_job_was_thought_to() -> None:
    """Hours are clean and dirty in turn; the job starts up for a quarter of its time."""
    waves = [(hour * HOUR, 100.0 + 400.0 * (hour % 2), 50.0) for hour in range(60)]
    job = JOB | {"runtime_s": 10 * HOUR, "deadline_s": 50 * HOUR, "startup_s": 2.4 * HOUR}
    schedule = ran(make_world([job], grids=[waves]), "wait-awhile")
    assert len(run_segments(schedule)) - 1 <= 10 / 2.4


def test_nodes_sleep_while_their_job_is_suspended_and_wake_for_it() -> None:
    node = {"sleep_w": 10.0, "wake_s": 300.0, "wake_w": 300.0}
    schedule = ran(make_world([JOB], [node], [WAVES]), "lowest-window+sleep-at-once+pause-freely")
    told = schedule.sleeps
    assert run_segments(schedule) == [(0, 125, 180), (0, 245, 340)]
    assert sorted(told.asleep_s.tolist()) == [0.0, 3 * HOUR, 340 * MINUTE]
    assert sorted(told.awake_s.tolist()) == [125 * MINUTE, 245 * MINUTE, np.inf]


def test_a_job_takes_what_the_model_of_phases_says() -> None:
    """Watts are those of running; 300 s of startup, checkpoints of a minute after 1,800 s."""
    world = make_world([JOB | COSTLY | {"save_every_s": 1800.0}], grids=[WAVES], length_s=8 * HOUR)
    schedule = ran(world, "wait-awhile")
    work_s = 2.5 * HOUR - 300.0
    cycle = (Phase("work", 1800.0, 10.0), Phase("save", 60.0, 10.0, is_checkpoint=True))
    rest_s = work_s - 4 * 1860.0
    job = PhasedJob((Phase("start", 300.0, 10.0),), (*cycle * 4, Phase("end", rest_s, 10.0)))
    took = schedule.run_segments.end_s - schedule.run_segments.start_s
    told = spent(job, [float(took[0])])
    assert told.running_s == pytest.approx(took.sum())
    bill = bill_of(world, schedule, 8 * HOUR)
    assert bill.energy_active_j.sum() == pytest.approx(told.energy_j)


@pytest.mark.parametrize("when", ["lowest-window", "cheapest-window", "planned-window"])
def test_nobody_is_suspended_where_nothing_changes(when: str) -> None:
    flat = [(HOUR * hour, 609.81, 186.01) for hour in range(48)]
    job = {"arrival_s": 4935.5, "runtime_s": 15_000.0, "deadline_s": 60_000.0, "save_every_s": 0.0}
    schedule = ran(make_world([job], grids=[flat]), f"{when}+spread+pause-freely")
    assert len(run_segments(schedule)) == 1


@pytest.mark.parametrize("when", ["reject-all", "reject-long"])
def test_what_is_rejected_is_not_run_in_slots_instead(when: str) -> None:
    rising = [(900.0 * slot, 100.0 + slot, 50.0) for slot in range(60)]
    world = make_world([JOB], grids=[rising])
    through, pausing = ran(world, when), ran(world, f"{when}+pause-freely")
    assert pausing.end_s.tolist() == pytest.approx(through.end_s.tolist(), nan_ok=True)


def test_restarts_do_not_eat_up_what_is_left_before_the_deadline() -> None:
    """Eight slots reach beyond the deadline by most of one."""
    carbon = [500, 500, 500, 500, 100, 100, 500, 100, 100, 900]
    grid = [(900.0 * slot, float(value), 50.0) for slot, value in enumerate(carbon)]
    job = {"runtime_s": 2800.0, "deadline_s": 7300.0, "startup_s": 800.0, "save_every_s": 0.0}
    assert ran(make_world([job], grids=[grid]), "wait-awhile").end_s[0] <= 7300.0


def test_easy_reckons_with_a_job_that_goes_on_to_its_checkpoint() -> None:
    """It leaves at 5,000 s, and nobody may run on beyond that beside the large job that waits."""
    grid = [
        (0.0, 100.0, 50.0),
        (HOUR, 500.0, 50.0),
        (9 * HOUR, 90.0, 50.0),
        (11 * HOUR, 600.0, 50.0),
    ]
    jobs = [
        {"runtime_s": 9000.0, "cpu_cores": 6.0, "deadline_s": 11 * HOUR, "save_every_s": 5000.0},
        {"arrival_s": 3660.0, "runtime_s": HOUR, "cpu_cores": 8.0},
        {"arrival_s": 3720.0, "runtime_s": 5000.0, "cpu_cores": 4.0},
    ]
    schedule = ran(make_world(jobs, grids=[grid]), "lowest-window+spread+easy+pause-freely")
    assert schedule.start_s[1] == 5000.0


def test_rejecting_is_charged_more_than_waking_a_node_again_and_again() -> None:
    node = {"sleep_w": 90.0, "wake_s": 300.0, "wake_w": 400.0}
    grid = [(900.0 * slot, 100.0 if slot % 2 else 500.0, 50.0) for slot in range(400)]
    job = {"runtime_s": 6 * HOUR, "deadline_s": 24 * HOUR, "save_every_s": 0.0, "cpu_cores": 0.1}
    world = make_world([job], [node], [grid], length_s=24 * HOUR)
    found = [
        outcome_of(world, schedule, bill_of(world, schedule, 24 * HOUR), 24 * HOUR)
        for schedule in (
            ran(world, "lowest-window+spread+sleep-at-once+pause-freely"),
            ran(world, "reject-all+sleep-at-once"),
        )
    ]
    assert found[0].energy_j < found[1].energy_j
    assert found[0].carbon_g < found[1].carbon_g


@pytest.mark.parametrize("name", PAUSE_RULES)
@settings(max_examples=50)
@given(seed=st.integers(0, 2**32))
def test_every_pause_rule_and_what_follows_from_it_is_the_same_compiled(
    name: str, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    seen = PauseColumns._make(dice.uniform(60.0, 3600.0, (1, 1)) for _ in PauseColumns._fields)
    plain_rule = PAUSE_RULES[name]
    np.testing.assert_allclose(compiled(plain_rule)(seen), plain_rule(seen), rtol=1e-9)
    cost = dice.normal(size=int(dice.integers(1, 30)))
    told = (
        cost, float(dice.uniform(60.0, 20_000.0)), 900.0, float(dice.choice([0.0, 60.0, 2000.0])),
        float(dice.choice([0.0, 0.2, np.inf])), float(dice.choice([1.0, 99.0])),
        bool(dice.random() < 0.5),
    )  # fmt: skip
    (ours, cheapest), (plain, least) = compiled(planned_slots)(*told), planned_slots(*told)
    assert ours.tolist() == plain.tolist()
    assert cheapest == pytest.approx(least, rel=1e-9)


def test_the_bound_is_what_a_job_emits_that_stops_for_nothing_and_more_with_restarts() -> None:
    world = make_world([JOB], grids=[WAVES], length_s=8 * HOUR)
    costly = make_world([JOB | COSTLY], grids=[WAVES], length_s=8 * HOUR)
    for each, factor in ((world, 1.0), (costly, 2.6 / 2.5)):
        schedule = ran(each, "wait-awhile")
        assert freedom_of(world, [schedule]).suspend
        idle_g = float(bill_of(each, schedule, 8 * HOUR).carbon_idle_g.sum())
        active_g = float(bill_of(each, schedule, 8 * HOUR).carbon_active_g.sum())
        least_g = least_totals(each, [schedule], 8 * HOUR).carbon_g
        assert factor * (least_g - idle_g) <= active_g + 1e-9
        assert least_g - idle_g == pytest.approx(2.5 * 0.01 * 100.0)


def cheapest(carbon: Floats, needed: int) -> float:
    return float(np.sort(carbon)[:needed].sum())


@settings(max_examples=30)
@given(
    st.lists(st.floats(10.0, 900.0), min_size=24, max_size=24), st.integers(2, 8), st.integers(0, 9)
)
def test_alone_and_well_forecast_it_emits_as_little_as_any_choice_of_slots(
    carbon: list[float], needed: int, spare: int
) -> None:
    """Quarter hours, each with its intensity; nothing is lost by a suspension."""
    steps = [(900.0 * slot, value, 50.0) for slot, value in enumerate(carbon)]
    job = {"runtime_s": 900.0 * needed, "deadline_s": 900.0 * (needed + spare), "save_every_s": 0.0}
    world = make_world([job], grids=[steps], length_s=6 * HOUR)
    schedule = ran(world, "wait-awhile")
    assert schedule.end_s[0] <= job["deadline_s"]
    least = cheapest(np.array(carbon[: needed + spare]), needed) * 10.0 * 900.0 / 3.6e6
    bill = bill_of(world, schedule, 6 * HOUR)
    assert bill.carbon_active_g.sum() == pytest.approx(least)
