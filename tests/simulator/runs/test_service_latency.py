"""Schedules and requests written by hand, so that no engine is needed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.billing.timelines import NO_CAPS, Caps
from greensched_policies.costs.capping import cpu_speed
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.service_latency import Served, latency_of, served
from greensched_simulator.runs.simulation import bill_of
from greensched_simulator.testing.small_worlds import in_one_piece, make_world
from greensched_simulator.world.world import World
from tests.simulator.runs.small_services import HOUR, world_of


def ran(
    world: World,
    starts_s: list[float],
    ends_s: list[float],
    nodes: list[int],
    caps: Caps = NO_CAPS,
) -> Schedule:
    return in_one_piece(np.array(starts_s), np.array(ends_s), np.array(nodes), caps=caps)


def told(world: World, schedule: Schedule) -> Served:
    return served(world, schedule, world.services[0])


def late_of_one(rate_per_s: float, speed: float = 1.0) -> float:
    """P(T > 1 s) of M/M/1."""
    return math.exp(-(2.0 * speed - rate_per_s)) if rate_per_s < 2.0 * speed else 1.0


def test_one_replica_answers_as_m_m_1_does() -> None:
    world = world_of([1.0], [(0.0, HOUR)])
    found = told(world, ran(world, [0.0], [HOUR], [0]))
    assert found.requests.tolist() == [3600.0]
    assert found.in_time[0] == pytest.approx(3600 * (1 - late_of_one(1.0)), rel=1e-5)
    assert found.p50_s[0] == pytest.approx(math.log(2), rel=0.01)
    assert found.p99_s[0] == pytest.approx(math.log(100), rel=0.01)
    assert (found.turned_away[0], found.ready[0], found.cpu_use[0]) == (0.0, 1.0, 0.5)


def test_on_a_faster_node_requests_take_less() -> None:
    world = world_of([1.0], [(0.0, HOUR)], nodes=({}, {"speed": 2.0}))
    found = told(world, ran(world, [0.0], [HOUR], [1]))
    assert found.in_time[0] == pytest.approx(3600 * (1 - late_of_one(1.0, 2.0)), rel=1e-5)


def test_a_cap_makes_requests_slower_from_when_it_holds() -> None:
    world = world_of([1.0], [(0.0, HOUR)])
    caps = Caps(np.array([0]), np.array([HOUR / 4]), np.array([0.6]), np.array([1.0]))
    found = told(world, ran(world, [0.0], [HOUR], [0], caps))
    slow = float(cpu_speed(0.6, 0.5))
    late = 0.25 * late_of_one(1.0) + 0.75 * late_of_one(1.0, slow)
    assert found.in_time[0] == pytest.approx(3600 * (1 - late), rel=1e-3)


def test_a_replica_that_had_to_queue_answers_nobody_until_it_runs_and_is_ready() -> None:
    world = world_of([0.0, 1.0], [(HOUR, 2 * HOUR)], startup_s=600.0)
    found = told(world, ran(world, [HOUR + 1200.0], [2 * HOUR], [0]))
    # Half an hour nobody is there, then one replica.
    assert found.in_time.tolist() == pytest.approx([0.0, 1800 * (1 - late_of_one(1.0))], rel=1e-4)
    assert found.turned_away.tolist() == pytest.approx([0.0, 1800.0])
    assert found.ready.tolist() == [0.0, 0.5]
    assert math.isnan(found.p99_s[0])
    assert found.p99_s[1] == math.inf


def test_those_of_the_begin_are_ready() -> None:
    world = world_of([1.0], [(0.0, HOUR)], startup_s=600.0)
    assert told(world, ran(world, [0.0], [HOUR], [0])).turned_away.sum() == 0.0


def test_what_comes_beyond_all_places_is_turned_away_and_the_rest_is_late() -> None:
    world = world_of([3.0], [(0.0, HOUR)])
    found = told(world, ran(world, [0.0], [HOUR], [0]))
    assert found.turned_away[0] == pytest.approx(HOUR)
    assert found.in_time[0] == 0.0
    assert found.p50_s[0] == math.inf


def test_nobody_answers_where_no_replica_ever_ran() -> None:
    world = world_of([1.0], [(0.0, HOUR)])
    found = told(world, ran(world, [math.nan], [math.nan], [-1]))
    assert found.turned_away[0] == pytest.approx(3600.0)


def test_replicas_are_no_jobs_in_the_figures() -> None:
    world = world_of([1.0], [(0.0, HOUR)], jobs=[{}])
    schedule = ran(world, [0.0, HOUR], [HOUR, 2 * HOUR], [0, 0])
    bill = bill_of(world, schedule, 2 * HOUR)
    found = outcome_of(world, schedule, bill, 2 * HOUR)
    assert (found.jobs, found.jobs_done, found.deadlines) == (1, 1, 0)
    assert found.work_core_h == pytest.approx(1.0)
    assert found.wait_mean_s == pytest.approx(HOUR)
    assert found.slowdown_mean == pytest.approx(2.0)
    assert found.requests == pytest.approx(3600.0)
    assert found.requests_in_time == pytest.approx(3600 * (1 - late_of_one(1.0)), rel=1e-5)
    assert found.latency_p99_s == pytest.approx(math.log(100), rel=0.01)
    assert found.energy_active_j > 0


def test_without_services_no_request_is_reported() -> None:
    world = make_world([{}])
    assert latency_of(world, ran(world, [0.0], [HOUR], [0])) == (0.0, 0.0, 0.0, 0.0, 0.0)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.0, 6.0), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.floats(0.0, 4.0), st.floats(0.1, 3.0), st.floats(0.0, 1.0)), max_size=5
    ),
)  # fmt: skip
def test_all_requests_are_in_time_late_or_turned_away(
    rates: list[float], lives: list[tuple[float, float, float]]
) -> None:
    """Each life begins, lasts and is kept waiting for so many hours."""
    planned = [(begin * HOUR, (begin + lasts) * HOUR) for begin, lasts, _ in lives]
    world = world_of(rates, planned, nodes=({}, {"speed": 0.5}), jobs=[{}])
    starts_s = [(begin + wait) * HOUR for begin, _, wait in lives]
    ends_s = [max(start, end) for start, (_, end) in zip(starts_s, planned, strict=True)]
    nodes = [number % 2 for number in range(len(lives))]
    found = told(world, ran(world, [*starts_s, 0.0], [*ends_s, HOUR], [*nodes, 0]))
    assert found.requests.sum() == pytest.approx(sum(rates) * HOUR)
    assert (found.in_time >= -1e-6).all()
    assert (found.turned_away >= -1e-6).all()
    assert (found.in_time + found.turned_away <= found.requests * (1 + 1e-9) + 1e-6).all()
    is_told = found.requests > 0
    assert (found.p50_s[is_told] <= found.p99_s[is_told]).all()
