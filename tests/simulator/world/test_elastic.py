"""Elastic jobs: more workers in clean slots, fewer or none in dirty ones."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import NumbaExperimentalFeatureWarning

from greensched_policies.compiling.compiled import compiled
from greensched_policies.costs.carbon_scaler import carbon_scaler
from greensched_policies.costs.scaling import scaled_plan
from greensched_simulator.bounds.bound import least_totals
from greensched_simulator.bounds.limits import freedom_of
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.job_times import waits_s
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.scenario.model import ScenarioWorkload
from greensched_simulator.testing.small_worlds import GIB, Fields, free_room, make_world
from greensched_simulator.world.elastic_jobs import curves_of, range_of, scaling_of
from greensched_simulator.world.world import World

pytestmark = pytest.mark.engine

SLOT = 900.0
CURVE = np.array([1.0, 1.8, 2.2])
CURVES = np.stack([np.ones(3), CURVE])
DIRTY_CLEAN = [(0.0, 520.0, 50.0), (SLOT, 200.0, 50.0), (2 * SLOT, 260.0, 50.0),
               (3 * SLOT, 520.0, 50.0)]  # fmt: skip
JOB: Fields = {"runtime_s": 3 * SLOT, "deadline_s": 4 * SLOT, "save_every_s": 0.0,
                "scaling": 1.0, "cpu_cores": 4.0}  # fmt: skip
ROOMY: Fields = {"cpu_capacity": 99.0}


def ran(world: World, policy: str) -> Schedule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return simulate(world, policy_named(policy))


def sizes(schedule: Schedule, job: int = 0) -> list[tuple[float, float, int]]:
    """Return begin and end in slots, and workers, of each run segment of a job."""
    told = schedule.run_segments
    mine = told.job == job
    spans = {*zip(told.start_s[mine].tolist(), told.end_s[mine].tolist(), strict=True)}
    return [
        (begin / SLOT, end / SLOT, int((mine & (told.start_s == begin)).sum()))
        for begin, end in sorted(spans)
    ]


def test_a_job_has_the_workers_that_carbon_scaler_gives_it() -> None:
    """Two workers in the cleanest slot and two in the next one would do 3.6; 3 are to be done."""
    world = make_world([JOB], [ROOMY], [DIRTY_CLEAN], scaling=CURVES)
    schedule = ran(world, "carbon-scaler")
    carbon = np.array([[520.0, 200.0, 260.0, 520.0]])
    greedy = carbon_scaler(carbon, CURVE, np.arange(1.0, 4.0), np.array([3.0]))
    assert (greedy[0] > 0).sum(axis=1).tolist() == [0, 2, 2, 0]
    [(begin, end, size)] = sizes(schedule)
    assert (begin, size) == (1.0, 2)
    assert end == pytest.approx(1 + 3 / 1.8)
    assert waits_s(world, schedule).tolist() == [SLOT]


def test_it_starts_again_with_each_number_of_workers() -> None:
    """Three workers do 2.2 in the clean slot; one ends the rest: 0.8, and 0.1 to start up again.

    The first start is in the runtime, and as long however many start.
    """
    grid = [(0.0, 900.0, 50.0), (SLOT, 10.0, 50.0), (2 * SLOT, 100.0, 50.0)]
    job = {**JOB, "startup_s": 0.1 * SLOT, "runtime_s": 3.1 * SLOT, "deadline_s": 6 * SLOT}
    world = make_world([job], [ROOMY], [grid], scaling=CURVES)
    schedule = ran(world, "carbon-scaler")
    told = sizes(schedule)
    assert [size for _, _, size in told] == [3, 1]
    assert told[0][:2] == (1.0, 2.0)
    assert told[1][0] == 2.0
    # 0.9 of the clean slot are worked in: 1.98 of 3.
    assert told[1][1] - 2.0 == pytest.approx(3.0 - 0.9 * 2.2 + 0.1)


def test_other_pause_rules_leave_it_one_worker_and_so_does_no_deadline() -> None:
    world = make_world([JOB], [ROOMY], [DIRTY_CLEAN], scaling=CURVES)
    for policy in ("run-now", "wait-awhile", "planned-window+pause-if-worth"):
        assert {size for _, _, size in sizes(ran(world, policy))} == {1}
    free = make_world([{**JOB, "deadline_s": np.inf}], [ROOMY], [DIRTY_CLEAN], scaling=CURVES)
    assert sizes(ran(free, "carbon-scaler")) == [(0.0, 3.0, 1)]


def test_it_begins_with_those_that_find_room_and_takes_more_when_there_is_some() -> None:
    """Of ten cores four are taken until the third slot, which leaves room for one worker.

    From then on a second one makes up for what is late in the cheap slots; the rest is for one.
    """
    other: Fields = {"runtime_s": 2.5 * SLOT, "cpu_cores": 4.0}
    grid = [(0.0, 10.0, 50.0), (SLOT, 20.0, 50.0), (4 * SLOT, 500.0, 50.0)]
    elastic = {**JOB, "arrival_s": 1.0, "runtime_s": 5 * SLOT, "deadline_s": 6 * SLOT}
    world = make_world([other, elastic], [{"cpu_capacity": 10.0}], [grid], scaling=CURVES)
    told = sizes(ran(world, "carbon-scaler"), job=1)
    assert [round(begin, 2) for begin, _, _ in told] == [0.0, 3.0, 4.0]
    assert [size for _, _, size in told] == [1, 2, 1]
    assert told[-1][1] == pytest.approx(4.2, abs=0.01)  # 3 + 1.8 + 0.2


def test_one_that_is_late_gets_all_workers_that_are_of_use() -> None:
    scaling = np.stack([np.ones(4), [1.0, 1.8, 1.8, 1.8]])
    world = make_world([{**JOB, "deadline_s": 1.5 * SLOT}], [ROOMY], scaling=scaling)
    [(begin, end, size)] = sizes(ran(world, "carbon-scaler"))
    assert (begin, size) == (0.0, 2)
    assert end == pytest.approx(3 / 1.8)


@pytest.mark.parametrize("queue", ["", "+easy", "+fcfs", "+concurrent", "+sjf", "+cap-fifo"])
def test_every_queue_scales(queue: str) -> None:
    jobs = [{**JOB, "arrival_s": float(number), "deadline_s": 12 * SLOT} for number in range(6)]
    world = make_world(jobs, [{"cpu_capacity": 16.0}], [DIRTY_CLEAN], scaling=CURVES)
    schedule = ran(world, f"lowest-window+scale-freely{queue}")
    assert np.isfinite(schedule.end_s).all()
    assert max(size for job in range(6) for _, _, size in sizes(schedule, job)) > 1


numbers = st.integers(0, 2**32)


@settings(max_examples=60)
@given(
    numbers, st.sampled_from(["carbon-scaler", "planned-window+scale-freely+cap-frugal",
                              "clean-threshold+scale-freely+sleep-at-once"])
)  # fmt: skip
def test_work_and_room_are_kept_whatever_scales(seed: int, policy: str) -> None:
    world = random_world(np.random.default_rng(seed))
    schedule = ran(world, policy)
    told, jobs = schedule.run_segments, world.jobs
    for at_s in np.unique(np.concatenate([told.start_s, told.end_s])):
        assert (free_room(world, schedule, float(at_s)) >= -1e-6).all()
    if world.nodes.speed.min() == world.nodes.speed.max() and schedule.caps.node.size == 0:
        for job in range(jobs.arrival_s.size):
            assert work_left_s(world, schedule, job) == pytest.approx(0.0, abs=1e-4)
    until_s = billed_until_s(world, schedule)
    mine = outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
    least = least_totals(world, [schedule], until_s)
    for name in ("energy_j", "cost", "carbon_g"):
        assert getattr(least, name) <= getattr(mine, name) * (1 + 1e-9) + 1e-6, name
    nothing = ran(world, "reject-all+sleep-at-once" if "sleep" in policy else "reject-all")
    worst = outcome_of(world, nothing, bill_of(world, nothing, until_s), until_s)
    assert worst.energy_j > mine.energy_j
    assert worst.carbon_g > mine.carbon_g


def random_world(dice: np.random.Generator) -> World:
    jobs = []
    for arrival_s in np.sort(dice.integers(0, 4, 6)) * 600.0:
        runtime_s = float(dice.integers(2, 12)) * 600.0
        jobs.append({
            "arrival_s": float(arrival_s), "runtime_s": runtime_s,
            "estimate_s": runtime_s * float(dice.choice([0.6, 1.0, 1.5])),
            "deadline_s": float(arrival_s) + runtime_s + float(dice.choice([0.0, 7200.0, np.inf])),
            "cpu_cores": float(dice.integers(1, 7)), "scaling": float(dice.integers(0, 3)),
            "save_every_s": float(dice.choice([0.0, 0.0, 900.0])),
            "startup_s": float(dice.choice([0.0, 60.0])), "save_s": float(dice.choice([0.0, 20.0])),
        })  # fmt: skip
    speed = float(dice.choice([0.5, 1.0]))
    nodes = [{"cpu_capacity": 8.0, "speed": speed, "sleep_w": 20.0, "wake_s": 60.0}] * 3
    values = dice.uniform([10.0, -40.0], [900.0, 200.0], (60, 2))
    grid = [(1800.0 * step, *pair) for step, pair in enumerate(values.tolist())]
    return make_world(jobs, nodes, [grid], scaling=np.stack([np.ones(3), CURVE, [1.0, 2.0, 3.0]]))


def work_left_s(world: World, schedule: Schedule, job: int) -> float:
    """Return what is left of a job's work at its end, told by its run segments alone."""
    jobs, told = world.jobs, schedule.run_segments
    startup_s, save_s = jobs.startup_s[job], jobs.save_s[job]
    curve = world.scaling[int(jobs.scaling[job])]
    left_s = jobs.runtime_s[job] - startup_s
    run_segments = sizes(schedule, job)
    for number, (begin, end, size) in enumerate(run_segments):
        ran_s = (end - begin) * SLOT * world.nodes.speed[0]
        worked_s = max(ran_s - startup_s, 0.0)
        is_suspended = number < len(run_segments) - 1
        if is_suspended and jobs.save_every_s[job] == 0.0 and worked_s > 1e-6:
            worked_s -= save_s
        left_s -= worked_s * curve[size - 1]
    assert set(told.worker[told.job == job].tolist()) <= set(range(3))
    return float(left_s)


def test_the_bound_reckons_with_most_workers_at_once() -> None:
    """Three workers do all in the clean hour, and no schedule emits less."""
    hour = 4 * SLOT
    grid = [(0.0, 900.0, 50.0), (hour, 100.0, 50.0), (2 * hour, 900.0, 50.0)]
    linear = np.stack([np.ones(3), [1.0, 2.0, 3.0]])
    job: Fields = {**JOB, "runtime_s": 3 * hour, "deadline_s": 5 * hour}
    world = make_world([job], [ROOMY], [grid], scaling=linear, length_s=5 * hour)
    schedule = ran(world, "carbon-scaler")
    assert sizes(schedule) == [(4.0, 8.0, 3)]
    assert freedom_of(world, [schedule]).scale
    bill, least = bill_of(world, schedule, 5 * hour), least_totals(world, [schedule], 5 * hour)
    emitted_g = float(bill.carbon_active_g.sum() + bill.carbon_idle_g.sum())
    assert least.carbon_g == pytest.approx(emitted_g, rel=1e-6)
    alone = ran(world, "wait-awhile")
    assert not freedom_of(world, [alone]).scale
    assert least_totals(world, [alone], 5 * hour).carbon_g > emitted_g


def test_a_late_job_is_not_started_again_where_that_makes_it_later() -> None:
    """Room comes free for one worker after the other; each start takes ten hours."""
    hour, sizes_up = 4 * SLOT, 16
    curve = np.stack([np.ones(sizes_up), np.arange(1.0, sizes_up + 1) ** 0.95])
    late: Fields = {**JOB, "arrival_s": 1.0, "runtime_s": 12 * hour, "estimate_s": 3 * hour,
                 "startup_s": 10 * hour, "deadline_s": 2.0, "cpu_cores": 1.0,
                 "memory_bytes": 4 * GIB}  # fmt: skip
    others: list[Fields] = [
        {"runtime_s": 2.5 * hour * number, "cpu_cores": 0.001, "memory_bytes": 4 * GIB}
        for number in range(1, sizes_up)
    ]
    world = make_world([*others, late], [{"cpu_capacity": 16.0}], scaling=curve)
    [(_, end, size)] = sizes(ran(world, "carbon-scaler"), job=sizes_up - 1)
    assert size == 1
    assert end <= 4 * 12.01
    until_s = 40 * hour
    assert outcome(world, "carbon-scaler", until_s).energy_j < (
        outcome(world, "reject-all", until_s).energy_j
    )


def outcome(world: World, policy: str, until_s: float) -> Outcome:
    schedule = ran(world, policy)
    return outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)


def test_the_bound_counts_the_startup_of_all_workers_while_that_earns_money() -> None:
    job: Fields = {**JOB, "runtime_s": 3600.0, "startup_s": 1800.0, "deadline_s": 1200.0}
    world = make_world([job], [ROOMY], [[(0.0, 100.0, -50.0)]], length_s=7200.0,
                       scaling=np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]))  # fmt: skip
    schedule = ran(world, "carbon-scaler")
    assert {size for _, _, size in sizes(schedule)} == {3}
    until_s = billed_until_s(world, schedule)
    assert (
        least_totals(world, [schedule], until_s).cost
        <= outcome(world, "carbon-scaler", until_s).cost
    )


def test_a_quota_of_cores_counts_all_workers() -> None:
    small: Fields = {"runtime_s": 16 * SLOT, "cpu_cores": 1.0}
    elastic: Fields = {**JOB, "arrival_s": 10.0, "runtime_s": 8 * SLOT, "deadline_s": 2 * SLOT,
                    "cpu_cores": 1.0}  # fmt: skip
    grid = [(0.0, 900.0, 50.0), (40 * SLOT, 10.0, 50.0)]
    world = make_world([small, elastic], [{"cpu_capacity": 12.0}], [grid],
                       scaling=np.array([[1.0] * 4, [1.0, 2.0, 3.0, 4.0]]))  # fmt: skip
    [(begin, _, size), *_] = sizes(ran(world, "run-now+first-fit+scale-freely+cap-fifo"), job=1)
    assert (begin, size) == (16.0, 4)


@settings(max_examples=50)
@given(numbers)
def test_plans_are_the_same_compiled(seed: int) -> None:
    dice = np.random.default_rng(seed)
    curve = np.concatenate([[1.0], 1.0 + np.cumsum(dice.uniform(0.0, 1.0, 4))])
    told = (
        dice.normal(size=(5, int(dice.integers(1, 20)))), curve, float(dice.uniform(60.0, 2e4)),
        SLOT, float(dice.choice([0.0, 60.0, 600.0])), float(dice.choice([1.0, 99.0])),
        int(dice.integers(0, 6)),
    )  # fmt: skip
    (ours, cost), (plain, least) = compiled(scaled_plan)(*told), scaled_plan(*told)
    assert ours.tolist() == plain.tolist()
    assert cost == pytest.approx(least, rel=1e-9)


def workload(*kinds: dict[str, object]) -> ScenarioWorkload:
    return ScenarioWorkload.model_validate({"elastic": [*kinds]})


def test_kinds_of_elastic_jobs_are_drawn_by_their_shares() -> None:
    two = workload({"throughput": [1.0, 1.8], "share": 0.25}, {"throughput": [1.0, 2.0, 3.0],
                                                               "share": 0.5})  # fmt: skip
    assert scaling_of(two).tolist() == [[1.0, 1.0, 1.0], [1.0, 1.8, 1.8], [1.0, 2.0, 3.0]]
    may_be = np.arange(10_000) % 2 == 0
    rows = curves_of(two, may_be, seed=3)
    assert (rows[~may_be] == 0.0).all()
    shares = np.bincount(rows[may_be].astype(int)) / may_be.sum()
    np.testing.assert_allclose(shares, [0.25, 0.25, 0.5], atol=0.02)
    assert (curves_of(workload(), may_be, seed=3) == 0.0).all()


def test_what_scaling_can_make_of_jobs() -> None:
    """Three workers make a job 2.2 times as fast and take 3 / 2.2 of what one takes."""
    world = make_world([JOB, {**JOB, "scaling": 0.0}], scaling=CURVES)
    told = range_of(world.jobs, world.scaling)
    assert [each.tolist() for each in told] == [
        [3.0, 1.0], [2.2, 1.0], [1.0, 1.0], [pytest.approx(3 / 2.2), 1.0]
    ]  # fmt: skip
    assert range_of(world.jobs, np.ones((1, 1))).rate.tolist() == [1.0, 1.0]
