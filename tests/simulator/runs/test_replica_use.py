"""The watts of replicas follow their requests; most schedules are written by hand."""

import math
from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.billing.accounting import PARTS, Bill
from greensched_policies.billing.timelines import NO_CAPS, Caps
from greensched_policies.costs.capping import cpu_power, cpu_speed
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.charges import REJECTION_FACTOR, charge_of
from greensched_simulator.runs.node_hours import node_hours
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.testing.drawn_power import drawn_watts
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.testing.small_worlds import in_one_piece
from greensched_simulator.world.world import World
from tests.simulator.runs.small_services import HOUR, world_of

# A used core draws 20 W on a node of ten cores, so a replica in full use 80 W; it answers two
# requests a second. A job uses half of the cores that it requests.
FOUR = {"cpu_cores": 4.0}


def ran(*runs: tuple[float, float, float], caps: Caps = NO_CAPS) -> Schedule:
    """Return the schedule of rows, each told by begin and end in hours and its node."""
    start, end, node = (np.array(column) for column in zip(*runs, strict=True))
    return in_one_piece(start * HOUR, end * HOUR, node.astype(np.int64), caps=caps)


def active_wh(world: World, schedule: Schedule, hours: float = 1.0) -> list[float]:
    """Return the watt hours above idle of each node."""
    joules = bill_of(world, schedule, hours * HOUR).energy_active_j
    return [float(each) for each in joules / HOUR]


@pytest.mark.parametrize(
    ("rate_per_s", "watts"),
    [
        pytest.param(0.0, 0.0, id="no-requests"),
        pytest.param(0.5, 20.0, id="a-quarter"),
        pytest.param(1.0, 40.0, id="half-of-its-capacity"),
        pytest.param(2.0, 80.0, id="all-of-it"),
        pytest.param(7.0, 80.0, id="what-is-turned-away-takes-nothing"),
    ],
)
def test_a_replica_uses_as_much_of_its_cores_as_it_is_busy(rate_per_s: float, watts: float) -> None:
    world = world_of([rate_per_s], [(0.0, HOUR)], replica=FOUR)
    assert active_wh(world, ran((0, 1, 0))) == pytest.approx([watts])


def test_at_noon_a_service_draws_more_than_at_night_with_the_same_replicas() -> None:
    world = world_of([0.2, 1.6], [(0.0, 2 * HOUR)], replica=FOUR)
    night, day = next(node_hours(world, ran((0, 2, 0)), 2 * HOUR)).energy_active_j / HOUR
    assert (night, day) == (pytest.approx(8.0), pytest.approx(64.0))


def test_at_the_ratio_of_jobs_the_bill_is_what_it_is_for_a_job() -> None:
    world = world_of([1.0, 1.0], [(0.0, 2 * HOUR)], replica=FOUR, jobs=[{"cpu_cores": 3.3}])
    schedule = ran((0, 2, 0), (0.5, 1.7, 0))
    as_job = bill_of(world._replace(services=()), schedule, 3 * HOUR)
    for found, usual in zip(
        astuple(bill_of(world, schedule, 3 * HOUR)), astuple(as_job), strict=True
    ):
        assert (found == usual).all()


@pytest.mark.parametrize("job_node", [0, 1])
def test_a_job_beside_a_service_is_billed_as_before(job_node: int) -> None:
    """On a straight curve each adds what it would add alone."""
    world = world_of([1.6], [(0.0, HOUR)], replica=FOUR, nodes=({}, {}), jobs=[{"cpu_cores": 3.0}])
    never = (math.nan, math.nan, -1)
    both, web, job = (
        np.array(active_wh(world, ran(*runs)))
        for runs in (
            [(0, 1, 0), (0, 1, job_node)],
            [(0, 1, 0), never],
            [never, (0, 1, job_node)],
        )
    )
    assert job[job_node] == pytest.approx(30.0)
    assert both == pytest.approx(web + job)


def test_the_curve_is_read_at_the_use_of_all_that_runs_on_a_node() -> None:
    """This curve has risen to its full 70 W at a tenth of the load, which is one used core."""
    world = world_of([0.25], [(0.0, HOUR)], nodes=[{"curve_class": 1.0}], jobs=[{}], replica=FOUR)
    assert active_wh(world, ran((0, 1, 0), (2, 3, 0))) == pytest.approx([35.0])
    assert active_wh(world, ran((0, 1, 0), (0, 1, 0))) == pytest.approx([70.0])


def test_replicas_share_the_requests_and_all_are_equally_busy() -> None:
    """The one on the fast node answers four a second, the other two; they have half of these."""
    fast = {"speed": 2.0}
    world = world_of([3.0], [(0.0, HOUR)] * 2, nodes=({}, fast), replica=FOUR)
    assert active_wh(world, ran((0, 1, 0), (0, 1, 1))) == pytest.approx([40.0, 40.0])


def test_a_replica_more_leaves_the_others_less_to_do() -> None:
    world = world_of([1.6], [(0.0, HOUR)] * 2, nodes=({}, {}), replica=FOUR)
    found = active_wh(world, ran((0, 1, 0), (0.5, 1, 1)))
    assert found == pytest.approx([0.5 * 64 + 0.5 * 32, 0.5 * 32])


def test_a_replica_that_starts_up_draws_what_a_job_does() -> None:
    world = world_of([0.4], [(60.0, HOUR)], startup_s=900.0, replica=FOUR)
    assert active_wh(world, ran((0.25, 1, 0))) == pytest.approx([0.25 * 40 + 0.5 * 16])


def test_a_replica_that_leaves_while_it_starts_up_never_serves() -> None:
    world = world_of([2.0], [(60.0, HOUR)], startup_s=HOUR, replica=FOUR)
    assert active_wh(world, ran((0.5, 1, 0))) == pytest.approx([20.0])


def test_under_a_cap_a_replica_is_busier_and_each_used_core_draws_less() -> None:
    world = world_of([1.0], [(0.0, HOUR)], replica=FOUR)
    caps = Caps(np.array([0]), np.array([HOUR / 2]), np.array([0.6]), np.array([1.0]))
    capped_w = 40.0 / float(cpu_speed(0.6, 0.5)) * float(cpu_power(0.6))
    found = active_wh(world, ran((0, 1, 0), caps=caps))
    assert found == pytest.approx([(40.0 + capped_w) / 2])


def test_gpus_of_replicas_draw_what_those_of_jobs_do() -> None:
    node = {"gpu_capacity": 2.0, "gpu_idle_w": 50.0, "gpu_peak_w": 300.0}
    world = world_of([0.0], [(0.0, HOUR)], nodes=[node], replica={**FOUR, "gpus": 1.0})
    assert active_wh(world, ran((0, 1, 0))) == pytest.approx([250 * 0.8])


def test_an_idle_replica_keeps_its_node_awake() -> None:
    world = world_of([0.0], [(0.0, HOUR)], replica=FOUR)._replace(empty_nodes_sleep=True)
    assert bill_of(world, ran((0, 1, 0)), 2 * HOUR).energy_idle_j == pytest.approx([100 * HOUR])


def test_a_replica_that_never_ran_is_charged_for_the_full_use_of_its_cores() -> None:
    world = world_of([1.0], [(0.0, HOUR)], replica=FOUR)
    charge = charge_of(world, ran((math.nan, math.nan, -1)), HOUR)
    assert charge.energy_j == pytest.approx(REJECTION_FACTOR * 80 * HOUR)


def sums_of_hours(world: World, schedule: Schedule, until_s: float) -> list[np.ndarray]:
    """Return the sums over each node's hours, named as the parts of a bill."""
    (rows,) = node_hours(world, schedule, until_s)
    nodes = world.nodes.zone.size
    return [np.bincount(rows.node, getattr(rows, part), nodes) for part in PARTS]


hours = st.floats(0.0, 3.0)


@settings(max_examples=60)
@given(
    rates=st.lists(st.sampled_from([0.0, 1.0]) | st.floats(0.0, 9.0), min_size=3, max_size=3),
    lives=st.lists(st.tuples(hours, hours, hours, st.integers(0, 1)), min_size=1, max_size=5),
    jobs=st.lists(st.tuples(hours, st.floats(0.1, 3.0), st.integers(0, 1)), max_size=3),
    caps=st.lists(st.tuples(hours, st.integers(0, 1), st.sampled_from([0.6, 1.0])), max_size=4),
    startup_s=st.sampled_from([0.0, 300.0, 5000.0]),
    curve=st.sampled_from([0.0, 1.0]),
)
def test_what_is_billed_is_the_integral_of_what_is_drawn(
    rates: list[float],
    lives: list[tuple[float, float, float, int]],
    jobs: list[tuple[float, float, int]],
    caps: list[tuple[float, int, float]],
    startup_s: float,
    curve: float,
) -> None:
    """A life has the hours at which it begins, starts and ends, in any order, and a node."""
    planned = [(*sorted(life[:3]), life[3]) for life in lives]
    nodes = ({"curve_class": curve, "pue": 1.3}, {"curve_class": curve, "speed": 0.5})
    world = world_of(
        rates, [(begin * HOUR, end * HOUR) for begin, _, end, _ in planned], nodes=nodes,
        startup_s=startup_s, jobs=[{"cpu_cores": 3.0}] * len(jobs),
    )  # fmt: skip
    runs = [(start, end, node) for _, start, end, node in planned]
    runs += [(begin, begin + lasts, node) for begin, lasts, node in jobs]
    at, node, frequency = np.array(sorted(caps)).reshape(-1, 3).T
    held = Caps(node.astype(np.int64), at * HOUR, frequency, np.ones(at.size))
    schedule, until_s = ran(*runs, caps=held), 9 * HOUR
    bill = bill_of(world, schedule, until_s)
    np.testing.assert_allclose(
        bill.energy_active_j, integral_j(world, schedule, until_s), rtol=1e-9, atol=1e-3
    )
    for part, summed in zip(PARTS, sums_of_hours(world, schedule, until_s), strict=True):
        np.testing.assert_allclose(summed, getattr(bill, part), rtol=1e-9, atol=1e-3)
    assert (bill.energy_active_j <= full_use(world, schedule, until_s).energy_active_j + 1e-3).all()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(["services", "services failures", "services gangs pauses panels"]),
    policy=st.sampled_from([
        "run-now+first-fit+cap-60", "carbon-time+spread+easy", "bin-pack+sleep-at-once",
        "wait-awhile", "lowest-window+topsis+cap-when-dirty+sleep-at-once",
    ]),
)  # fmt: skip
def test_what_is_billed_is_the_integral_under_any_policy(seed: int, kind: str, policy: str) -> None:
    world = random_world(seed, kind)._replace(caps_package_power=False)
    schedule = simulate(world, policy_named(policy))
    until_s = billed_until_s(world, schedule)
    bill = bill_of(world, schedule, until_s)
    np.testing.assert_allclose(
        bill.energy_active_j, integral_j(world, schedule, until_s), rtol=1e-9, atol=1e-3
    )
    for part, summed in zip(PARTS, sums_of_hours(world, schedule, until_s), strict=True):
        np.testing.assert_allclose(summed, getattr(bill, part), rtol=1e-9, atol=1e-3)


def full_use(world: World, schedule: Schedule, until_s: float) -> Bill:
    """Return the bill of a world in which all that runs uses all of its cores, without caps."""
    busiest = world._replace(services=(), utilisation_ratio=1.0)
    return bill_of(busiest, schedule._replace(caps=NO_CAPS), until_s)


def integral_j(world: World, schedule: Schedule, until_s: float) -> np.ndarray:
    """Return each node's joules above idle, summed over the times between which nothing changes."""
    ran, (service,) = schedule.run_segments, world.services
    moments_s = np.unique(
        np.concatenate([
            [0.0, until_s], ran.start_s, ran.start_s + service.startup_s, ran.end_s,
            service.curve.begins_s, schedule.caps.from_s, world.grids.times_s,
        ])
    )  # fmt: skip
    drawn_j = np.zeros(world.nodes.zone.size)
    for begin_s, end_s in pairwise(moments_s[moments_s <= until_s].tolist()):
        drawn_j += drawn_watts(world, schedule, begin_s)[0] * (end_s - begin_s)
    return drawn_j
