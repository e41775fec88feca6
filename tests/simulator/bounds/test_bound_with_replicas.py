"""What a bound takes of services, of nodes that fail and of rejected work, reckoned by hand."""

from typing import Any

import numpy as np
import pytest

from greensched_policies.billing.accounting import total_bill
from greensched_simulator.bounds.bound import Bound, least_bill
from greensched_simulator.bounds.inputs import SignalName
from greensched_simulator.bounds.limits import Lives, freedom_of, limits_of, lives_of
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.charges import charge_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import (
    Fields,
    in_one_piece,
    make_world,
    with_outages,
)
from greensched_simulator.world.world import World
from tests.simulator.runs.small_services import world_of

HOUR = 3600.0
# Eight of ten cores draw 80 W above the 100 W of an empty node.
BIG: Fields = {"cpu_cores": 8.0, "runtime_s": 2 * HOUR}
SAVES: Fields = {**BIG, "save_every_s": 900.0}
REPLICA: Fields = {"arrival_s": HOUR, "runtime_s": 2 * HOUR, "leaves_at_s": 3 * HOUR}
DIRTY, CLEAN = [(0.0, 500.0, 50.0)], [(0.0, 100.0, 50.0)]
CLEAN_DIRTY_CLEAN = [(0.0, 100.0, 50.0), (HOUR, 500.0, 50.0), (2 * HOUR, 100.0, 50.0),
                     (3 * HOUR, 900.0, 50.0)]  # fmt: skip


def ran(world: World, policy: str = "first-fit") -> Schedule:
    return simulate(world, policy_named(policy))


def bound(world: World, signal: SignalName, hours: float, *schedules: Schedule) -> Bound:
    return least_bill(world, signal, hours * HOUR, limits_of(world, *schedules))


def above_idle(found: Bound) -> float:
    return found.total - found.idle


def joules(world: World, schedule: Schedule, hours: float) -> float:
    """Return what a schedule takes, and what is charged for it."""
    charged_j = charge_of(world, schedule, hours * HOUR).energy_j
    return charged_j + total_bill(bill_of(world, schedule, hours * HOUR)).energy_j


def placed(*runs: tuple[float, float, int]) -> Schedule:
    """Return the schedule of jobs, each told by begin and end in hours and its node."""
    start, end, node = (np.array(column) for column in zip(*runs, strict=True))
    return in_one_piece(start * HOUR, end * HOUR, node)


def hours_of(lives: Lives) -> list[tuple[int, float, float]]:
    """Return the job, begin and end in hours of each part of a life."""
    columns = (lives.job, lives.begin_s / HOUR, lives.end_s / HOUR)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_node_that_is_away_draws_nothing_and_the_bound_can_be_reached() -> None:
    world = with_outages(make_world([BIG], [{}, {}]), (1, 1.0, 3.0), (1, 3.5, 9.0))
    found = bound(world, "energy", 4, ran(world))
    assert found.idle == pytest.approx(100 * (4 + 1.5) * HOUR)
    assert found.total == pytest.approx(joules(world, ran(world), 4))


def test_work_that_a_node_loses_is_in_no_bound() -> None:
    """After an hour the job begins again on the other node."""
    world = with_outages(make_world([BIG], [{}, {}]), (0, 1.0, 5.0))
    taken_j = joules(world, ran(world), 4)
    assert bound(world, "energy", 4, ran(world)).total == pytest.approx(taken_j - 80 * HOUR)


@pytest.mark.parametrize(
    ("job", "grams"),
    [
        pytest.param(BIG, 0.08 * (100 + 500), id="begins-again-and-so-runs-in-one-piece-at-last"),
        pytest.param(SAVES, 0.08 * (100 + 100), id="goes-on-where-it-was-saved"),
    ],
)
def test_a_job_stops_in_the_bound_only_if_it_can_go_on_elsewhere(job: Fields, grams: float) -> None:
    """It is clean in the first and in the third hour; a failure lets the job end in the fourth."""
    world = make_world([job], [{}, {}], [CLEAN_DIRTY_CLEAN])
    world = with_outages(world, (0, 1.0 if job is BIG else 0.5, 9.0), (1, 1.75, 2.25))
    limits = limits_of(world, ran(world))._replace(latest_end_s=np.array([4 * HOUR]))
    assert not limits.freedom.suspend
    found = least_bill(world, "carbon", 5 * HOUR, limits)
    assert above_idle(found) == pytest.approx(grams)


def test_a_suspended_job_is_distinguished_from_one_that_a_failure_stopped() -> None:
    stopped = with_outages(make_world([SAVES], [{}, {}]), (0, 1.0, 5.0))
    waits = {**SAVES, "deadline_s": 5 * HOUR}
    suspended = make_world([waits], [{}, {}], [CLEAN_DIRTY_CLEAN])
    assert not freedom_of(stopped, [ran(stopped)]).suspend
    assert freedom_of(suspended, [ran(suspended, "wait-awhile")]).suspend


def test_a_node_that_may_sleep_draws_what_it_takes_asleep_unless_it_may_be_away() -> None:
    """Awake it fails and draws nothing for two hours of four; asleep it does not and draws 20 W."""
    node = {"sleep_w": 20.0, "wake_s": 0.0}
    world = with_outages(make_world([BIG], [{}, node]), (1, 1.0, 3.0))
    schedules = [ran(world), ran(world, "first-fit+sleep-at-once")]
    assert [each.outages.node.size for each in schedules] == [1, 0]
    found = bound(world, "energy", 4, *schedules)
    assert found.idle == pytest.approx((100 * 4 + 20 * 2) * HOUR)
    assert found.total <= min(joules(world, each, 4) for each in schedules)


def test_while_prices_are_negative_a_failure_lets_a_job_do_its_work_once_more() -> None:
    grid = [(0.0, 100.0, -100.0)]
    world = with_outages(make_world([BIG], [{}, {}], [grid]), (0, 1.5, 1.75))
    schedule = ran(world)
    bill = bill_of(world, schedule, 4 * HOUR)
    found = bound(world, "cost", 4, schedule)
    assert found.total <= bill.cost_active.sum() + bill.cost_idle.sum()
    assert above_idle(found) == pytest.approx(2 * 2 * 80e-6 * -100)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_replica_takes_the_cleaner_node_for_all_of_its_life(speed: float) -> None:
    """Its core draws 10 W; however fast its node, it runs for two hours."""
    world = make_world([REPLICA], [{}, {"zone": 1, "speed": speed}], [DIRTY, CLEAN])
    found = bound(world, "carbon", 4, ran(world))
    assert above_idle(found) == pytest.approx(0.01 * 2 * 100)


def test_replicas_that_do_not_fit_together_cannot_all_have_the_cleaner_node() -> None:
    replicas = [{**REPLICA, "cpu_cores": 10.0}, {**REPLICA, "cpu_cores": 5.0}]
    world = make_world(replicas, [{}, {"zone": 1}], [DIRTY, CLEAN])
    found = bound(world, "carbon", 4, ran(world))
    assert above_idle(found) == pytest.approx(0.1 * 2 * 100 + 0.05 * 2 * 500)


def test_a_replica_cannot_wait_for_a_cleaner_hour_while_a_job_can() -> None:
    grid = [(0.0, 900.0, 50.0), (3 * HOUR, 100.0, 50.0)]
    job = {"arrival_s": HOUR, "runtime_s": 2 * HOUR, "deadline_s": 6 * HOUR}
    told = (make_world([row], grids=[grid]) for row in (REPLICA, job))
    found = [above_idle(bound(world, "carbon", 6, ran(world))) for world in told]
    assert found == pytest.approx([0.01 * 2 * 900, 0.01 * 2 * 100])


def test_a_replica_runs_in_the_bound_when_it_does_under_all_policies() -> None:
    world = make_world([REPLICA], [{}, {}])
    late, soon = placed((1.5, 3.0, 0)), placed((1.25, 3.0, 1))
    never, too_late = placed((np.nan, np.nan, -1)), placed((3.25, 3.25, 0))
    assert hours_of(lives_of(world)) == [(0, 1.0, 3.0)]
    assert hours_of(lives_of(world, soon)) == [(0, 1.25, 3.0)]
    assert hours_of(lives_of(world, late, soon, never)) == [(0, 1.5, 3.0)]
    assert hours_of(lives_of(world, never)) == [(0, 1.0, 3.0)]
    assert hours_of(lives_of(world, soon, too_late)) == []
    assert above_idle(bound(world, "energy", 4, late, soon)) == pytest.approx(10 * 1.5 * HOUR)
    assert above_idle(bound(world, "energy", 4, soon, too_late)) == 0.0


def test_a_replicas_life_is_cut_where_a_failure_moves_it() -> None:
    """Its node fails after half an hour; while the other one is away, nobody runs it."""
    world = with_outages(make_world([REPLICA], [{}, {}]), (0, 1.5, 9.0), (1, 2.0, 2.25))
    assert hours_of(lives_of(world, ran(world))) == [(0, 1.0, 1.5), (0, 1.5, 2.0), (0, 2.25, 3.0)]
    found = bound(world, "energy", 4, ran(world))
    assert found.total == pytest.approx(joules(world, ran(world), 4))


def test_while_prices_are_negative_a_replica_may_run_for_all_of_its_life() -> None:
    world = make_world([REPLICA], grids=[[(0.0, 100.0, -100.0)]])
    found = bound(world, "cost", 4, placed((1.5, 3.0, 0)))
    assert above_idle(found) == pytest.approx(2 * 10e-6 * -100)


def test_a_capped_replica_draws_less_for_as_long() -> None:
    """At half of the frequency it draws 3.96 of its 10 W, and its life is no longer."""
    world = make_world([REPLICA], [{"speed": 0.5}])
    schedule = ran(world, "first-fit+cap-60")
    found = bound(world, "energy", 4, schedule)
    assert above_idle(found) == pytest.approx(3.96 * 2 * HOUR)
    assert found.total <= joules(world, schedule, 4)


@pytest.mark.parametrize("row", [REPLICA, {**BIG, "deadline_s": HOUR}], ids=["replica", "job"])
def test_what_one_policy_never_ran_may_be_left_undone_for_its_charge(row: Fields) -> None:
    """A replica draws less than it is charged; the job could not have ended by its deadline."""
    world = make_world([row])
    never = ran(world, "reject-all")
    found = bound(world, "energy", 4, never)
    charged_j = joules(world, never, 4) - found.idle
    drawn_j = 10 * 2 * HOUR if row is REPLICA else charged_j
    assert above_idle(found) == pytest.approx(drawn_j)
    assert found.total <= joules(world, never, 4) + 1e-6


def test_of_a_rejected_replica_only_the_part_that_others_run_is_charged() -> None:
    """Two that fill a node: all run in time but one, which one policy rejects."""
    rows: list[Any] = [{**REPLICA, "cpu_cores": 10.0}] * 2
    world = make_world(rows)
    one, other = placed((1.0, 3.0, 0), (3.0, 3.0, 0)), placed((1.0, 3.0, 0), (np.nan, np.nan, -1))
    assert hours_of(lives_of(world, one, other)) == [(0, 1.0, 3.0)]
    assert above_idle(bound(world, "energy", 4, one, other)) == pytest.approx(100 * 2 * HOUR)


def test_the_bound_of_a_service_follows_its_requests() -> None:
    """Of its four cores a quarter is used in the first hour, all in the second: 20 and 80 W."""
    world = world_of([0.5, 2.0], [(0.0, 2 * HOUR)], replica={"cpu_cores": 4.0})
    found = bound(world, "energy", 2, placed((0.0, 2.0, 0)))
    assert above_idle(found) == pytest.approx((20 + 80) * HOUR)
    assert found.total == pytest.approx(joules(world, placed((0.0, 2.0, 0)), 2))


def test_while_a_replica_may_start_up_it_draws_no_more_than_a_job_in_the_bound() -> None:
    world = world_of([0.0, 2.0], [(HOUR, 2 * HOUR)], startup_s=900.0, replica={"cpu_cores": 4.0})
    found = bound(world, "energy", 2, placed((1.0, 2.0, 0)))
    assert above_idle(found) == pytest.approx((0.25 * 40 + 0.75 * 80) * HOUR)
    assert found.total == pytest.approx(joules(world, placed((1.0, 2.0, 0)), 2))


def test_a_replica_that_one_policy_runs_late_is_as_busy_in_the_bound_as_if_it_always_ran() -> None:
    """With both replicas each is half busy, with one it is fully busy."""
    world = world_of([2.0], [(0.0, HOUR)] * 2, replica={"cpu_cores": 4.0})
    late = placed((0.0, 1.0, 0), (0.5, 1.0, 0))
    found = bound(world, "energy", 1, late)
    assert above_idle(found) == pytest.approx((40 + 0.5 * 40) * HOUR)
    assert found.total < joules(world, late, 1)
