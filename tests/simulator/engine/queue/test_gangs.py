"""Jobs of several workers: all start at once or none does, and they run at one speed."""

from pathlib import Path

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_policies.encoding.weights import Weights
from greensched_simulator.bounds.bound import least_bill
from greensched_simulator.bounds.limits import limits_of
from greensched_simulator.policy import QUEUES, policy_named
from greensched_simulator.runs.job_times import waits_s
from greensched_simulator.runs.outcome import outcome_of
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

HOUR = 3600.0
BIG = {"cpu_cores": 8.0}
GANG = {"cpu_cores": 5.0, "workers": 3.0}


def ran(world: World, policy: str = "run-now") -> Schedule:
    return simulate(world, policy_named(policy))


def hours(schedule: Schedule) -> list[float]:
    """Return when each job started, in hours."""
    told: list[float] = (schedule.start_s / HOUR).round(6).tolist()
    return told


def test_all_workers_start_at_once_each_where_there_is_room() -> None:
    schedule = ran(make_world([GANG], [{}, {}]), "run-now+first-fit")
    told = schedule.run_segments
    assert told.job.tolist() == [0, 0, 0]
    assert told.worker.tolist() == [0, 1, 2]
    assert told.node.tolist() == [0, 0, 1]
    assert told.start_s.tolist() == [0.0] * 3
    assert told.end_s.tolist() == [HOUR] * 3


def test_who_finds_room_for_some_workers_only_holds_none_of_it() -> None:
    """Beside the first job two workers find room; the small job behind them takes it."""
    jobs = [BIG, GANG, {"cpu_cores": 10.0, "runtime_s": HOUR / 2, "arrival_s": 60.0}]
    schedule = ran(make_world(jobs, [{}, {}]))
    assert schedule.start_s.tolist() == [0.0, HOUR, 60.0]
    assert waits_s(make_world(jobs, [{}, {}]), schedule).tolist() == [0.0, HOUR, 0.0]


def test_whoever_waits_is_started_on_every_node_that_a_gang_leaves() -> None:
    pair = {"cpu_cores": 5.0, "workers": 2.0}
    nodes = [{"cpu_capacity": 5.0}, {"cpu_capacity": 10.0}]
    schedule = ran(make_world([pair, {"cpu_cores": 10.0, "arrival_s": 1.0}], nodes))
    assert schedule.start_s.tolist() == [0.0, HOUR]


@pytest.mark.parametrize("queue", QUEUES)
def test_every_queue_starts_a_gang_once_there_is_room_for_all(queue: str) -> None:
    jobs = [BIG, GANG | {"arrival_s": 1.0}, GANG | {"arrival_s": 2.0, "workers": 2.0}]
    schedule = ran(make_world(jobs, [{}, {}]), f"run-now+{queue}")
    told = schedule.run_segments
    assert np.bincount(told.job).tolist() == [1, 3, 2]
    for job in (1, 2):
        assert np.unique(told.start_s[told.job == job]).size == 1
    assert schedule.start_s[1] >= HOUR


def test_the_pace_is_that_of_the_slowest_node() -> None:
    gang = {"cpu_cores": 10.0, "workers": 2.0}
    schedule = ran(make_world([gang, gang], [{"speed": 2.0}, {"speed": 0.5}]))
    assert schedule.run_segments.end_s.tolist() == [2 * HOUR] * 2 + [4 * HOUR] * 2


def test_nobody_runs_before_the_last_node_is_awake() -> None:
    """Node 1 wakes for five minutes; node 0 was never empty."""
    node = {"sleep_w": 1.0, "wake_s": 300.0}
    jobs = [{"cpu_cores": 5.0, "runtime_s": 2 * HOUR},
            {"cpu_cores": 5.0, "workers": 3.0, "arrival_s": HOUR}]  # fmt: skip
    schedule = ran(make_world(jobs, [node, node]), "run-now+first-fit+sleep-at-once")
    told = schedule.run_segments
    assert told.node.tolist() == [0, 0, 1, 1]
    assert told.placed_s[1:].tolist() == [HOUR] * 3
    assert told.start_s[1:].tolist() == [HOUR + 300.0] * 3
    woken = np.isfinite(schedule.sleeps.woken_s)
    assert schedule.sleeps.node[woken].tolist() == [1]
    assert schedule.sleeps.awake_s[woken].tolist() == [HOUR + 300.0]


def test_a_worker_whose_node_was_awake_sooner_keeps_it_idle_until_all_are() -> None:
    nodes = [{"sleep_w": 1.0, "wake_s": 60.0}, {"sleep_w": 1.0, "wake_s": 300.0}]
    gang = {"cpu_cores": 10.0, "workers": 2.0, "arrival_s": 60.0}
    schedule = ran(make_world([gang], nodes), "run-now+sleep-at-once")
    assert schedule.start_s.tolist() == [360.0]
    assert sorted(schedule.sleeps.awake_s[:2].tolist()) == [120.0, 360.0]


def test_the_bill_holds_every_worker() -> None:
    """Half of five of ten cores used: a quarter of 200 W above idle, each for an hour."""
    world = make_world([GANG], [{}, {}, {}])
    schedule = ran(world, "run-now+spread")
    bill = bill_of(world, schedule, 2 * HOUR)
    assert bill.energy_active_j.tolist() == [50.0 * HOUR] * 3
    outcome = outcome_of(world, schedule, bill, 2 * HOUR)
    assert outcome.work_core_h == 15.0
    assert outcome.jobs_done == 1


def test_the_plan_keeps_room_for_all_workers() -> None:
    """The clean hour has room for one of the two gangs, so that the second one starts beside it."""
    grid = [(0.0, 500.0, 50.0), (HOUR, 100.0, 50.0), (2 * HOUR, 300.0, 50.0),
            (3 * HOUR, 500.0, 50.0)]  # fmt: skip
    gang = {"cpu_cores": 5.0, "workers": 2.0, "deadline_s": 4 * HOUR}
    world = make_world([gang] * 2, grids=[grid], weights=Weights(1.0, 1.0, 0.0))
    assert hours(ran(world, "planned-window")) == [1.0, 2.0]


def test_a_gang_that_is_suspended_leaves_all_its_nodes_and_resumes_on_as_many() -> None:
    grid = [(0.0, 100.0, 50.0), (HOUR, 900.0, 50.0), (2 * HOUR, 100.0, 50.0),
            (3 * HOUR, 900.0, 50.0)]  # fmt: skip
    gang = {"cpu_cores": 10.0, "workers": 2.0, "runtime_s": 2 * HOUR, "deadline_s": 4 * HOUR,
            "save_every_s": 0.0}  # fmt: skip
    world = make_world([gang], [{}, {}], [grid])
    schedule = ran(world, "lowest-window+pause-freely")
    told = schedule.run_segments
    assert told.worker.tolist() == [0, 0, 1, 1]
    assert told.start_s.tolist() == [0.0, 2 * HOUR] * 2
    assert told.end_s.tolist() == [HOUR, 3 * HOUR] * 2
    assert waits_s(world, schedule).tolist() == [HOUR]


def test_a_cap_on_one_node_slows_all_workers() -> None:
    gang = {"cpu_cores": 5.0, "workers": 3.0, "deadline_s": 9 * HOUR}
    schedule = ran(make_world([gang], [{}, {}]), "run-now+cap-60")
    assert (schedule.caps.cpu_frequency == 0.6).all()
    assert np.unique(schedule.run_segments.end_s).size == 1
    assert schedule.end_s[0] > HOUR


def test_who_is_expected_to_end_in_time_passes_a_gang_that_waits_and_nobody_else() -> None:
    jobs = [BIG, GANG | {"arrival_s": 1.0},
            {"cpu_cores": 2.0, "runtime_s": 2 * HOUR, "arrival_s": 2.0},
            {"cpu_cores": 2.0, "runtime_s": HOUR / 2, "arrival_s": 3.0}]  # fmt: skip
    schedule = ran(make_world(jobs, [{}, {}]), "run-now+easy")
    assert schedule.start_s.tolist() == [0.0, HOUR, HOUR, 3.0]


def test_rejecting_never_pays_where_a_gang_waits_for_a_node_that_wakes_slowly() -> None:
    nodes = [{"sleep_w": 0.0, "wake_s": wake_s, "wake_w": wake_w}
             for wake_s, wake_w in ((0.0, 0.0), (HOUR, 1.0))]  # fmt: skip
    pair = {"cpu_cores": 10.0, "workers": 2.0, "runtime_s": 60.0, "arrival_s": 600.0}
    world = make_world([pair], nodes)
    both = [ran(world, f"{rule}+sleep-at-once") for rule in ("run-now", "reject-all")]
    until_s = max(2 * HOUR, float(both[0].end_s[0]))
    ran_it, left_it = (outcome_of(world, each, bill_of(world, each, until_s), until_s)
                       for each in both)  # fmt: skip
    assert left_it.energy_j > ran_it.energy_j
    assert left_it.carbon_g > ran_it.carbon_g


def test_a_bound_knows_that_a_capped_node_slows_workers_that_earn_elsewhere() -> None:
    """While prices are negative in zone 0, a cap in zone 1 lets all workers run for longer."""
    earning, dirty = (0.0, 100.0, -100.0), [(0.0, 900.0, 0.0), (2 * HOUR, 10.0, 0.0)]
    gang = {"cpu_cores": 10.0, "workers": 6.0, "deadline_s": 40 * HOUR}
    world = make_world([gang], [{}] * 5 + [{"zone": 1}], [[earning], dirty])
    schedule = ran(world, "run-now+cap-when-dirty")
    until_s = 10 * HOUR
    bill, limits = bill_of(world, schedule, until_s), limits_of(world, schedule)
    assert limits.freedom.cap
    bound = least_bill(world, "cost", until_s, limits._replace(latest_end_s=np.array([until_s])))
    assert bound.total <= bill.cost_active.sum() + bill.cost_idle.sum() + 1e-9


def test_a_bound_knows_that_a_slow_worker_lets_a_fast_one_earn_for_longer() -> None:
    """An hour alone never earns; an hour and a half, at the slow worker's speed, does."""
    prices = [(0.0, -100.0), (0.5, 100.0), (1.0, -100.0), (1.5, 100.0)]
    grid = [(begin * HOUR, 100.0, price) for begin, price in prices]
    gang = {"cpu_cores": 10.0, "workers": 2.0, "deadline_s": 1.5 * HOUR}
    world = make_world([gang], [{}, {"speed": 2 / 3}], [grid])
    schedule = ran(world)
    bill = bill_of(world, schedule, 2 * HOUR)
    bound = least_bill(world, "cost", 2 * HOUR, limits_of(world, schedule))
    assert bound.total <= bill.cost_active.sum() + bill.cost_idle.sum() + 1e-9


def test_no_bound_is_above_a_gang() -> None:
    world = make_world([GANG, GANG], [{}, {"speed": 0.5}, {"curve_class": 1.0}])
    schedule = ran(world)
    until_s = float(schedule.end_s.max())
    bill = bill_of(world, schedule, until_s)
    bound = least_bill(world, "carbon", until_s, limits_of(world, schedule))
    assert bound.total <= bill.carbon_active_g.sum() + bill.carbon_idle_g.sum()


SCENARIO = {
    "name": "gangs", "start": "2023-06-01T00:00:00Z", "length": "1d",
    "cluster": {"nodes": [{"name": "node", "count": 3, "hardware": "epyc-7763-1s", "cpu_cores": 8,
                           "memory": "64Gi", "zone": "A"}]},
    "grids": {"A": {"carbon": {"constant": 1}, "price": {"constant": 1, "unit": "EUR/MWh"}}},
}  # fmt: skip


def drawn(**generator: object) -> World:
    workload = {"generator": {"jobs": 40, "cpu_cores": [4], "memory_per_core": ["1Gi"]} | generator}
    return build_world(parse_scenario(SCENARIO | {"workload": workload}, Path()))


def test_the_seed_draws_how_many_workers_a_job_has() -> None:
    workers = drawn(workers=[1, 2, 6]).jobs.workers
    assert set(workers.tolist()) == {1.0, 2.0, 6.0}


def test_a_gang_that_the_empty_cluster_has_no_room_for_is_refused() -> None:
    with pytest.raises(BadInput, match="fit no node; the largest, job-0, requests 7 times 4 cores"):
        drawn(workers=[7])
