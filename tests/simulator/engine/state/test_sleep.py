"""Nodes that sleep while they are empty, wake for work, and what all that takes."""

from dataclasses import astuple

import numpy as np
import pytest

from greensched_policies.billing.accounting import Bill
from greensched_policies.rules.catalogue import CAP_RULES
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, simulate
from greensched_simulator.testing.small_worlds import GIB, make_world
from greensched_simulator.world.world import World

HOUR, MINUTE = 3600.0, 60.0
# 100 W idle; waking takes five minutes at 300 W, 87 kJ more than asleep: 967 s of the 90 W saved.
SLEEPER = {"sleep_w": 10.0, "wake_s": 5 * MINUTE, "wake_w": 300.0}
BREAK_EVEN_S = 290.0 * 300.0 / 90.0
LONE = [{"runtime_s": HOUR}, {"arrival_s": 3 * HOUR, "runtime_s": HOUR}]


def ran(world: World, policy: str) -> Schedule:
    return simulate(world, policy_named(policy))


def billed(world: World, schedule: Schedule, until_s: float) -> Bill:
    return bill_of(world, schedule, until_s)


def told(schedule: Schedule) -> list[tuple[float, ...]]:
    """Return node, asleep, woken and awake of each sleep, in the order of time."""
    rows = zip(*(each.tolist() for each in schedule.sleeps[:4]), strict=True)
    return sorted(rows, key=lambda row: row[1])


def test_a_job_waits_until_the_node_that_it_wakes_is_awake() -> None:
    world = make_world(LONE, [SLEEPER])
    schedule = ran(world, "sleep-at-once")
    assert schedule.start_s.tolist() == [0.0, 3 * HOUR + 300.0]
    assert schedule.end_s.tolist() == [HOUR, 4 * HOUR + 300.0]
    assert told(schedule) == [
        (0, HOUR, 3 * HOUR, 3 * HOUR + 300.0),
        (0, 4 * HOUR + 300.0, np.inf, np.inf),
    ]


def test_the_bill_tells_running_idling_sleeping_and_waking_apart() -> None:
    """Two hours at 110 W, 100 of them idle; asleep 2 h, then until 6 h, but for the wake."""
    world = make_world(LONE, [SLEEPER | {"pue": 2.0}], length_s=6 * HOUR)
    bill = billed(world, ran(world, "sleep-at-once"), 6 * HOUR)
    asleep_s = 2 * HOUR + (2 * HOUR - 300.0)
    for found, watts_s in (
        (bill.energy_active_j, 10.0 * 2 * HOUR),
        (bill.energy_idle_j, 100.0 * 2 * HOUR),
        (bill.energy_sleep_j, 10.0 * asleep_s),
        (bill.energy_wake_j, 300.0 * 300.0),
    ):
        assert found.tolist() == [pytest.approx(2.0 * watts_s)]
    assert bill.carbon_wake_g.tolist() == [pytest.approx(2.0 * 90_000.0 / 3.6e6 * 100.0)]
    assert bill.cost_sleep.tolist() == [pytest.approx(2.0 * 10.0 * asleep_s / 3.6e9 * 50.0)]


@pytest.mark.parametrize(("policy", "asleep"), [
    pytest.param("stay-awake", [], id="never"),
    pytest.param("sleep-at-once", [HOUR, 4 * HOUR + 300.0], id="at-once"),
    pytest.param("sleep-after-10m", [HOUR + 600.0, 4 * HOUR + 900.0], id="ten-minutes"),
    pytest.param(
        "sleep-at-break-even",
        [HOUR + BREAK_EVEN_S, 4 * HOUR + 300.0 + BREAK_EVEN_S],
        id="break-even",
    ),
])  # fmt: skip
def test_a_node_falls_asleep_when_its_rule_says(policy: str, asleep: list[float]) -> None:
    sleeps = told(ran(make_world(LONE, [SLEEPER]), policy))
    assert [each[1] for each in sleeps] == pytest.approx(asleep)


def test_a_node_that_gets_work_the_instant_it_falls_empty_never_slept() -> None:
    world = make_world([{"runtime_s": HOUR}, {"arrival_s": HOUR, "runtime_s": HOUR}], [SLEEPER])
    schedule = ran(world, "sleep-at-once")
    assert schedule.start_s.tolist() == [0.0, HOUR]
    assert told(schedule) == [(0, 2 * HOUR, np.inf, np.inf)]


def test_who_comes_while_a_node_wakes_runs_when_it_is_awake() -> None:
    jobs = [{"arrival_s": at_s, "runtime_s": HOUR} for at_s in (HOUR, HOUR + 100.0, HOUR + 400.0)]
    schedule = ran(make_world(jobs, [SLEEPER]), "sleep-at-once")
    assert schedule.start_s.tolist() == [HOUR + 300.0, HOUR + 300.0, HOUR + 400.0]
    assert [each[:3] for each in told(schedule)][0] == (0, 0.0, HOUR)


def test_nodes_that_nobody_needs_sleep_from_the_start() -> None:
    schedule = ran(make_world([{}], [{}, SLEEPER, {}]), "first-fit+sleep-at-once")
    assert told(schedule) == [(1, 0.0, np.inf, np.inf)]


def test_a_start_is_planned_early_enough_to_wake_a_node() -> None:
    """The second hour is clean, and awake the node can wait for it; asleep it would be late."""
    job = {"arrival_s": 1.0, "runtime_s": 10 * MINUTE, "deadline_s": HOUR + 12 * MINUTE}
    world = make_world([job], [SLEEPER], [[(0.0, 900.0, 90.0), (HOUR, 100.0, 10.0)]])
    awake, asleep = ran(world, "lowest-window"), ran(world, "lowest-window+sleep-at-once")
    assert awake.planned_s.tolist() == [1.0 + HOUR]
    assert asleep.planned_s.tolist() == [1.0]
    assert asleep.end_s.tolist() == [1.0 + 15 * MINUTE]


@pytest.mark.parametrize("runtime_s", [
    pytest.param(HOUR, id="waking-for-an-hour-takes-more"),
    pytest.param(60 * HOUR, id="so-does-idling-for-it-alone"),
])  # fmt: skip
def test_work_goes_where_somebody_is_awake_if_waking_takes_more(runtime_s: float) -> None:
    """Awake, the second node takes a tenth less; only the first has memory for the first job."""
    first = {"runtime_s": 99 * HOUR, "memory_bytes": 100 * GIB}
    second = {"arrival_s": HOUR, "runtime_s": runtime_s}
    nodes = [SLEEPER | {"memory_capacity": 200 * GIB, "pue": 1.1}, SLEEPER]
    world = make_world([first, second], nodes)
    assert ran(world, "least-energy").node.tolist() == [0, 1]
    assert ran(world, "least-energy+sleep-at-once").node.tolist() == [0, 0]


def test_with_nothing_saved_all_rules_are_the_same() -> None:
    world = make_world(LONE, [{}, {"zone": 0}])
    awake = ran(world, "stay-awake")
    for rule in ("sleep-at-once", "sleep-after-10m", "sleep-at-break-even"):
        schedule = ran(world, rule)
        assert told(schedule) == []
        assert schedule.start_s.tolist() == awake.start_s.tolist()


def test_sleeping_for_nothing_is_what_empty_nodes_sleep_assumes() -> None:
    """Asleep at no watts and awake in no time: the same starts and the same bill."""
    told_jobs = [{"arrival_s": 700.0 * at, "runtime_s": 900.0, "cpu_cores": 4.0} for at in range(9)]
    nodes = [{"curve_class": 1.0}, {}, {"pue": 1.3}]
    ideal = make_world(told_jobs, nodes, empty_nodes_sleep=True)
    modelled = make_world(told_jobs, [node | {"sleep_w": 0.0} for node in nodes])
    one, other = ran(ideal, "least-energy"), ran(modelled, "least-energy+sleep-at-once")
    assert one.node.tolist() == other.node.tolist()
    assert one.start_s.tolist() == other.start_s.tolist()
    bills = billed(ideal, one, 3 * HOUR), billed(modelled, other, 3 * HOUR)
    for ours, theirs in zip(*(astuple(bill)[:-1] for bill in bills), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-9)


def test_who_is_let_in_before_a_reserved_start_counts_the_time_that_the_node_still_wakes() -> None:
    """The second job gets the whole node when the first has ended; the third would delay it."""
    jobs = [
        {"arrival_s": HOUR, "runtime_s": 1000.0, "cpu_cores": 8.0},
        {"arrival_s": HOUR + 1, "runtime_s": 1000.0, "cpu_cores": 10.0},
        {"arrival_s": HOUR + 2, "runtime_s": 1200.0, "cpu_cores": 2.0},
    ]
    schedule = ran(make_world(jobs, [SLEEPER]), "easy+sleep-at-once")
    assert (schedule.start_s - HOUR).tolist() == [300.0, 1300.0, 2300.0]


@pytest.mark.parametrize("rule", list(CAP_RULES))
def test_sleeping_for_nothing_is_the_same_under_every_cap_rule(rule: str) -> None:
    told_jobs = [{"arrival_s": 700.0 * at, "runtime_s": 900.0, "cpu_cores": 4.0} for at in range(9)]
    nodes: list[dict[str, float]] = [{"curve_class": 1.0}, {}, {"pue": 1.3}]
    ideal = ran(make_world(told_jobs, nodes, empty_nodes_sleep=True), rule)
    modelled = make_world(told_jobs, [node | {"sleep_w": 0.0} for node in nodes])
    other = ran(modelled, f"{rule}+sleep-at-once")
    assert ideal.end_s.tolist() == other.end_s.tolist()
    assert [each.tolist() for each in ideal.caps] == [each.tolist() for each in other.caps]
