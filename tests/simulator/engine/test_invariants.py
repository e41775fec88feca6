import itertools
from dataclasses import astuple, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.billing.accounting import PlacementBill, bill_placements
from greensched_policies.billing.timelines import Placements
from greensched_policies.costs.cost import Floats
from greensched_policies.rules.catalogue import (
    CAP_RULES,
    PAUSE_RULES,
    SLEEP_RULES,
    WHEN_RULES,
    WHERE_RULES,
)
from greensched_simulator.arrays.moving import NO_LINKS
from greensched_simulator.policy import QUEUES, Policy, policies_named, policy_named
from greensched_simulator.runs.job_times import ready_from_s
from greensched_simulator.runs.outcome import Outcome, outcome_of
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import (
    bill_of,
    billed_nodes_of,
    billed_until_s,
    simulate,
    zone_series,
)
from greensched_simulator.runs.sleep_tables import sleep_columns
from greensched_simulator.testing.drawn_power import drawn_watts
from greensched_simulator.testing.small_worlds import (
    can_take,
    done_s,
    drawn_world,
    even_links,
    free_room,
)
from greensched_simulator.world.world import World

HOUR = 3600.0
GIB = 2.0**30
EPSILON = 1e-9  # share of a capacity that sums of floats may be off by
EXAMPLES = settings(max_examples=60)

# Times on whole minutes, so that ends, starts and arrivals often fall together.
minutes = st.integers(0, 300).map(lambda count: 60.0 * count)
jobs = st.lists(
    st.fixed_dictionaries(
        {
            "arrival_s": minutes,
            "runtime_s": st.integers(1, 180).map(lambda count: 60.0 * count),
            "cpu_cores": st.one_of(st.integers(0, 8).map(float), st.floats(0.0, 8.0)),
            "memory_bytes": st.integers(1, 32).map(lambda count: count * GIB),
            "gpus": st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.3, 0.7]),
            "gpu_ratio": st.sampled_from([0.2, 0.8, 1.0]),
            "workers": st.sampled_from([1.0, 1.0, 2.0, 3.0]),
            "before": st.sets(st.integers(1, 4), max_size=2),  # so far behind those it waits for
            "wait_s": st.sampled_from([0.0, HOUR, 5 * HOUR, np.inf]),
            "error": st.sampled_from([0.5, 1.0, 1.7]),
            "startup_s": st.sampled_from([0.0, 30.0, 300.0]),
            "save_every_s": st.sampled_from([0.0, 1200.0, np.inf]),
            "save_s": st.sampled_from([0.0, 20.0]),
            "data_bytes": st.sampled_from([0.0, 1e9, 60e9]),
            "data_zone": st.integers(0, 1),
        }
    ),
    min_size=1,
    max_size=25,
)
nodes = st.lists(
    st.fixed_dictionaries({
        "cpu_capacity": st.sampled_from([8.0, 16.0]), "memory_capacity": st.just(64 * GIB),
        "gpu_capacity": st.sampled_from([2.0, 4.0]), "gpu_idle_w": st.just(30.0),
        "gpu_peak_w": st.sampled_from([250.0, 400.0]), "curve_class": st.sampled_from([0.0, 1.0]),
        "speed": st.sampled_from([1.0, 1.7, 0.6]), "pue": st.sampled_from([1.0, 1.3]),
        "sleep_w": st.sampled_from([0.0, 40.0]), "wake_s": st.sampled_from([0.0, 300.0]),
        "wake_w": st.sampled_from([40.0, 400.0]), "zone": st.integers(0, 1),
    }),
    min_size=1,
    max_size=4,
)  # fmt: skip
values = st.lists(st.tuples(st.floats(10.0, 900.0), st.floats(-50.0, 300.0)), min_size=1,
                  max_size=8)  # fmt: skip
# Queues in which a job that finds no room holds up no other.
WHOEVER_FITS = [
    name for name, each in QUEUES.items() if each.discipline in ("oldest-fit", "any-fit")
]
policies = st.builds(
    Policy,
    st.sampled_from(list(WHEN_RULES)),
    st.sampled_from(list(WHERE_RULES)),
    queue=st.sampled_from(list(QUEUES)),
    sleep=st.sampled_from(list(SLEEP_RULES)),
    cap=st.sampled_from(list(CAP_RULES)),
    pause=st.sampled_from(list(PAUSE_RULES)),
)


class Run(NamedTuple):
    """A random world and what a policy did with it."""

    world: World
    policy: Policy
    schedule: Schedule
    until_s: float


def new_run(
    told: list[dict[str, Any]],
    nodes: list[dict[str, float]],
    grids: list[list[tuple[float, float]]],
    policy: Policy,
    sleeps: bool = False,
    weather: list[float] | None = None,
    s_per_gb: float | None = None,
) -> Run:
    """Make a world out of what hypothesis drew, and run it; `weather` goes round both zones."""
    links = NO_LINKS if s_per_gb is None else even_links(0.5, s_per_gb, 0.001)
    world = drawn_world(told, nodes, grids, empty_nodes_sleep=sleeps, weather=weather, links=links)
    schedule = simulate(world, policy)
    return Run(world, policy, schedule, billed_until_s(world, schedule))


def alone(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return jobs of one worker each, of which none waits for others."""
    return [job | {"workers": 1.0, "before": set()} for job in told]


worlds: dict[str, Any] = {
    "told": jobs,
    "nodes": nodes,
    "grids": st.lists(values, min_size=2, max_size=2),
    "weather": st.none() | st.lists(st.sampled_from([0.8, 1.0, 1.3]), min_size=1, max_size=5),
    "s_per_gb": st.sampled_from([None, 0.0, 8.0]),
}


def placement_bill(run: Run) -> PlacementBill:
    """Return the shares of a run's jobs."""
    world, ran, jobs = run.world, run.schedule.run_segments, run.world.jobs
    cores, gpus = jobs.cpu_cores[ran.job], jobs.gpus[ran.job]
    placed = Placements(ran.node, ran.start_s, ran.end_s, cores, gpus, jobs.gpu_ratio[ran.job])
    window_s, model = (0.0, run.until_s), cost_model(world)
    return bill_placements(
        billed_nodes_of(world), placed, zone_series(world), window_s, model, run.schedule.caps
    )


def moments(run: Run) -> list[float]:
    """Return all times at which something changes within the window, its ends among them."""
    times = {0.0, run.until_s, *run.world.grids.times_s.tolist()}
    ran = run.schedule.run_segments
    times |= {*ran.start_s.tolist(), *ran.end_s.tolist()}
    for column in (*run.schedule.sleeps[1:4], run.schedule.caps.from_s):
        times |= {*column.tolist()}
    return sorted(each for each in times if 0.0 <= each <= run.until_s)


@EXAMPLES
@given(**worlds, policy=policies)
def test_nothing_is_ever_used_beyond_the_capacity(**drawn: Any) -> None:
    run = new_run(**drawn)
    machines = run.world.nodes
    capacity = np.stack([machines.cpu_capacity, machines.memory_capacity, machines.gpu_capacity])
    for at_s in moments(run):
        assert (
            free_room(run.world, run.schedule, at_s) >= -EPSILON * np.maximum(capacity, 1.0)
        ).all()


@EXAMPLES
@given(**worlds, policy=policies)
def test_each_job_runs_for_its_time_and_never_before_it_arrived(**drawn: Any) -> None:
    run = new_run(**drawn)
    jobs, ran, run_segments = run.world.jobs, run.schedule, run.schedule.run_segments
    assert (ran.node >= 0).all()
    assert set(run_segments.job) == set(range(jobs.arrival_s.size))
    done = done_s(run.world, run.schedule)
    for job in range(jobs.arrival_s.size):
        mine = (run_segments.job == job) & (run_segments.worker == 0)
        assert (run_segments.start_s[mine][1:] >= run_segments.end_s[mine][:-1]).all()
        if mine.sum() == 1 and run.policy.cap == "full-speed":
            nodes = run_segments.node[run_segments.job == job]
            full_s = jobs.runtime_s[job] / run.world.nodes.speed[nodes].min()
            assert ran.end_s[job] == ran.start_s[job] + full_s
        for worker in range(1, int(jobs.workers[job])):
            other = (run_segments.job == job) & (run_segments.worker == worker)
            for times_s in (run_segments.placed_s, run_segments.start_s, run_segments.end_s):
                assert (times_s[other] == times_s[mine]).all()
        assert done[mine][-1] == pytest.approx(
            left_s(run, job, done[mine][:-1]), rel=1e-9, abs=1e-5
        )
    ready_s = ready_from_s(run.world, ran)
    assert (jobs.arrival_s <= ready_s).all()
    assert (ready_s <= ran.planned_s).all()
    assert (ran.planned_s <= ran.start_s).all()


def left_s(run: Run, job: int, run_segments_s: Floats) -> float:
    """Return what is left of a job after it was suspended so often, on the reference core."""
    jobs = run.world.jobs
    startup_s, every_s, save_s = jobs.startup_s[job], jobs.save_every_s[job], jobs.save_s[job]
    work_s = jobs.runtime_s[job] - startup_s
    for run_segment_s in run_segments_s.tolist():
        assert run.policy.pause != "run-through"
        did_s = max(run_segment_s - startup_s, 0.0)
        if every_s > 0:  # it stopped at a checkpoint, or as it had resumed
            cycles = did_s / (every_s + save_s)
            assert cycles == pytest.approx(round(cycles), abs=1e-6)
        elif did_s > 1e-6:
            did_s -= save_s
        work_s -= did_s
    return float(startup_s + work_s)


@EXAMPLES
@given(**worlds, policy=policies, queue=st.sampled_from(WHOEVER_FITS))
def test_a_job_waits_only_while_no_node_has_room_for_it(
    policy: Policy, queue: str, **drawn: Any
) -> None:
    drawn |= {"s_per_gb": None}
    run = new_run(**drawn, policy=replace(policy, queue=queue, sleep="stay-awake"))
    jobs, ran = run.world.jobs, run.schedule
    asked = np.stack([jobs.cpu_cores, jobs.memory_bytes, jobs.gpus])
    # Of GPUs in parts no sum tells whether one has room.
    told = (jobs.workers == 1.0) & ((jobs.gpus == 0.0) | (jobs.gpus == np.floor(jobs.gpus)).all())
    for job in np.flatnonzero((ran.planned_s < ran.start_s) & told):
        for at_s in moments(run):
            if ran.planned_s[job] <= at_s < ran.start_s[job]:
                room = free_room(run.world, run.schedule, at_s)
                has_room = (room >= asked[:, [job]] * (1 + EPSILON) + EPSILON).all(axis=0)
                assert not has_room.any()


@EXAMPLES
@given(**worlds, policy=policies)
def test_no_start_is_planned_too_late_for_the_deadline(**drawn: Any) -> None:
    run = new_run(**drawn)
    jobs, ran = run.world.jobs, run.schedule
    is_put_off = ran.planned_s > ready_from_s(run.world, ran)
    machines = run.world.nodes
    wake_s = machines.wake_s * (run.policy.sleep != "stay-awake")
    for job in np.flatnonzero(is_put_off).tolist():
        takes_s = wake_s + jobs.estimate_s[job] / machines.speed
        if jobs.data_bytes[job] > 0.0 and run.world.links.size:
            latency_s, s_per_byte = run.world.links[:2, 0, 1]
            is_apart = machines.zone != jobs.data_zone[job]
            takes_s += is_apart * (latency_s + jobs.data_bytes[job] * s_per_byte)
        latest_s = takes_s[can_take(run.world, job)].max()
        assert ran.planned_s[job] + latest_s <= jobs.deadline_s[job] + 1e-6


@EXAMPLES
@given(**worlds, policy=policies)
def test_nodes_sleep_only_while_they_are_empty_and_for_as_long_as_they_are_let(
    **drawn: Any,
) -> None:
    run = new_run(**drawn)
    sleeps, ran, machines = run.schedule.sleeps, run.schedule.run_segments, run.world.nodes
    stays_s = SLEEP_RULES[run.policy.sleep](sleep_columns(run.world))[0]
    for node in range(machines.zone.size):
        mine = np.flatnonzero(sleeps.node == node)
        here = ran.node == node
        ends_s = np.append(0.0, ran.end_s[here])
        for asleep_s, woken_s, awake_s in zip(*(each[mine] for each in sleeps[1:4]), strict=True):
            empty_s = ends_s[ends_s <= asleep_s].max()
            assert asleep_s == empty_s + stays_s[node]
            assert asleep_s < woken_s
            assert np.isinf(woken_s) or awake_s == woken_s + machines.wake_s[node]
            assert not ((ran.start_s[here] < awake_s) & (ran.end_s[here] > asleep_s)).any()
            # A job of several workers may wait for another node to wake.
            assert (
                np.isinf(awake_s)
                or (ran.start_s[here & (ran.placed_s == woken_s)] >= awake_s).all()
            )


@EXAMPLES
@given(told=jobs, grids=worlds["grids"], where=st.sampled_from(list(WHERE_RULES)))
def test_jobs_without_slack_start_at_arrival_where_there_is_room(
    told: list[dict[str, float]], grids: Any, where: str
) -> None:
    node = {"cpu_capacity": 999.0, "memory_capacity": 9999 * GIB, "gpu_capacity": 64.0}
    for when in WHEN_RULES:
        tight = [job | {"wait_s": 0.0, "error": 1.0} for job in told]
        run = new_run(tight, [node, node | {"zone": 1}], grids, Policy(when, where))
        assert (run.schedule.start_s == ready_from_s(run.world, run.schedule)).all()


@EXAMPLES
@given(**worlds, policy=policies, sleeps=st.booleans())
def test_energy_is_the_integral_of_power_and_the_sum_over_jobs_and_idle(**drawn: Any) -> None:
    run = new_run(**drawn)
    bill = bill_of(run.world, run.schedule, run.until_s)
    joules = np.zeros((4, run.world.nodes.zone.size))
    for begin_s, end_s in itertools.pairwise(moments(run)):
        joules += drawn_watts(run.world, run.schedule, begin_s) * (end_s - begin_s)
    for billed, integral in zip(astuple(bill)[:4], joules, strict=True):
        np.testing.assert_allclose(billed, integral, rtol=1e-9, atol=1e-3)
    shares = placement_bill(run)
    for name in ("energy_active_j", "cost_active", "carbon_active_g"):
        whole = getattr(bill, name).sum()
        assert getattr(shares, name).sum() == pytest.approx(whole, rel=1e-9, abs=1e-6)


@EXAMPLES
@given(**worlds, policy=policies, sleeps=st.booleans())
def test_carbon_lies_between_the_cleanest_and_the_dirtiest_hour(**drawn: Any) -> None:
    run = new_run(**drawn)
    bill, grids = bill_of(run.world, run.schedule, run.until_s), run.world.grids
    for zone in range(2):
        mine = run.world.nodes.zone == zone
        carbon = grids.carbon_g_per_kwh[grids.starts[zone] : grids.starts[zone + 1]]
        for energy_j, carbon_g in zip(astuple(bill)[:4], astuple(bill)[10:14], strict=True):
            energy_j, carbon_g = energy_j[mine], carbon_g[mine]
            kwh = energy_j / 3.6e6
            assert (carbon_g >= kwh * carbon.min() * (1 - 1e-9)).all()
            assert (carbon_g <= kwh * carbon.max() * (1 + 1e-9)).all()


def columns(values: Any) -> list[bytes]:
    """Return the columns of a schedule or a bill as bytes."""
    return [np.asarray(column).tobytes() for column in values]


@EXAMPLES
@given(**worlds, pair=st.permutations(list(WHERE_RULES)))
def test_equal_decisions_get_equal_bills_to_the_last_digit(
    nodes: Any, pair: list[str], **drawn: Any
) -> None:
    # With a single node all rules decide alike.
    first, second = (
        new_run(**drawn, nodes=nodes[:1], policy=Policy("lowest-window", where))
        for where in pair[:2]
    )
    assert columns(first.schedule) == columns(second.schedule)
    bills = (vars(bill_of(run.world, run.schedule, run.until_s)) for run in (first, second))
    assert columns(next(bills).values()) == columns(next(bills).values())
    assert columns(placement_bill(first)) == columns(placement_bill(second))


BAD = policy_named("reject-all")


@settings(max_examples=20)
@given(**worlds, sleeps=st.booleans(), price_falls_by=st.sampled_from([0.0, 100.0, 400.0]))
def test_rejecting_all_scores_worse_than_every_policy_with_the_same_sleep(
    grids: Any, price_falls_by: float, **drawn: Any
) -> None:
    grids = [[(carbon, price - price_falls_by) for carbon, price in zone] for zone in grids]
    world, policies = new_run(**drawn, grids=grids, policy=BAD).world, policies_named("all")
    schedules = [simulate(world, policy) for policy in policies]
    nothing = {rule: simulate(world, replace(BAD, sleep=rule)) for rule in SLEEP_RULES}
    until_s = billed_until_s(world, *nothing.values(), *schedules)

    def told_of(schedule: Schedule) -> Outcome:
        return outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)

    for policy, schedule in zip(policies, schedules, strict=True):
        outcome, worst = told_of(schedule), told_of(nothing[policy.sleep])
        assert (worst.jobs_done, worst.work_core_h, worst.deadlines_met) == (0, 0.0, 0)
        assert worst.jobs_never_ran == worst.jobs
        assert (outcome.jobs_done, outcome.jobs_never_ran) == (worst.jobs, 0)
        # What takes nothing, without cores and GPUs, or next to nothing, is charged no more.
        if outcome.energy_active_j > 1e-6 * outcome.energy_idle_j:
            assert worst.energy_j > outcome.energy_j
            assert worst.carbon_g > outcome.carbon_g
        # Where prices never rise above zero nothing is charged, and running earns or is free.
        assert worst.cost >= outcome.cost - 1e-9 * abs(outcome.cost)
        if abs(outcome.cost_active) > 1e-6 * abs(outcome.cost_idle):
            assert worst.cost > outcome.cost


@EXAMPLES
@given(told=jobs, grids=worlds["grids"], speed=st.sampled_from([0.5, 1.0, 2.0]))
def test_rejecting_what_is_long_rejects_just_that(told: Any, grids: Any, speed: float) -> None:
    node = {"cpu_capacity": 16.0, "gpu_capacity": 2.0, "speed": speed}
    ran = new_run(alone(told), [node, node | {"zone": 1}], grids, policy_named("reject-long"))
    is_long = ran.world.jobs.estimate_s / speed > HOUR
    assert (np.isnan(ran.schedule.planned_s) == is_long).all()
    assert ((ran.schedule.node < 0) == is_long).all()
    assert (np.isnan(ran.schedule.end_s) == is_long).all()


@EXAMPLES
@given(**worlds)
def test_always_node_0_runs_what_fits_there_and_nothing_else(told: Any, **drawn: Any) -> None:
    run = new_run(alone(told), **drawn, policy=policy_named("node-0"))
    for job in range(run.world.jobs.arrival_s.size):
        fits = can_take(run.world, job)[0]
        assert run.schedule.node[job] == (0 if fits else -1)
        assert np.isfinite(run.schedule.end_s[job]) == fits
    for at_s in moments(run):
        assert (free_room(run.world, run.schedule, at_s)[0] >= -EPSILON * 16.0).all()
