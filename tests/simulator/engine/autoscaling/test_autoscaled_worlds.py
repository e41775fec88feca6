"""Whatever is autoscaled: all work runs, on nodes that are up, and all energy is reported."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import billed_until_s, simulate
from greensched_simulator.testing.small_worlds import (
    Fields,
    bytes_of,
    make_world,
    with_autoscaling,
    with_outages,
)
from greensched_simulator.world.world import World
from tests.simulator.energy_told import assert_all_energy_is_told, moments

pytestmark = pytest.mark.engine

POLICIES = (
    "run-now+spread",
    "carbon-time+sleep-at-once",
    "wait-awhile",
    "planned-window+cap-frugal+easy",
    "lowest-window+scale-freely+sjf",
    "run-now+cap-fifo",
    "lowest-slot+round-robin+fcfs",
    "ecsched",
    "node-0",
)


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from(POLICIES))
def test_all_work_runs_where_there_is_room_and_all_energy_is_reported(
    seed: int, policy: str
) -> None:
    world = random_world(np.random.default_rng(seed), alone=policy == "node-0")
    schedule = simulate(world, policy_named(policy))
    assert np.isfinite(schedule.end_s).all()
    assert bytes_of(schedule) == bytes_of(simulate(world, policy_named(policy)))
    until_s = billed_until_s(world, schedule) + 2000.0
    assert_all_energy_is_told(world, schedule, until_s)
    if policy != "node-0":
        for at_s in moments(schedule, until_s):
            assert_sizes(world, schedule, at_s)


def assert_sizes(world: World, schedule: Schedule, at_s: float) -> None:
    """Assert that no group is smaller than its minimum, and that nothing runs on a node off."""
    told, groups = schedule.sleeps, world.autoscaled
    off = told.node[(told.asleep_s <= at_s) & (at_s < told.woken_s)]
    off = off[groups.group[off] >= 0]
    assert np.unique(off).size == off.size
    for group, least in enumerate(groups.min_nodes):
        members = groups.group == group
        assert members.sum() - members[off].sum() >= least
    ran = schedule.run_segments
    placed = (ran.placed_s <= at_s) & (at_s < ran.end_s)
    assert not np.isin(ran.node[placed], off).any()


def random_world(dice: np.random.Generator, *, alone: bool) -> World:
    """Return up to seven jobs for two autoscaled groups, and sometimes a node that stays on."""
    jobs = []
    for arrival_s in np.sort(dice.integers(0, 40, 7)) * 100.0:
        runtime_s = float(dice.integers(1, 30)) * 100.0
        jobs.append({
            "arrival_s": float(arrival_s), "runtime_s": runtime_s,
            "deadline_s": float(arrival_s) + runtime_s + float(dice.choice([0.0, 7200.0, np.inf])),
            "cpu_cores": float(dice.integers(1, 9)),
            "workers": 1.0 if alone else float(dice.choice([1, 1, 3])),
            "save_every_s": float(dice.choice([0.0, 900.0, np.inf])),
            "startup_s": float(dice.choice([0.0, 60.0])), "save_s": float(dice.choice([0.0, 20.0])),
        })  # fmt: skip
        if jobs[-1]["workers"] == 1.0 and np.isfinite(jobs[-1]["save_every_s"]):
            jobs[-1]["scaling"] = float(dice.integers(0, 2))
    wakes_s = dice.choice([0.0, 60.0, 95.0, 1800.0], 2)
    nodes: list[Fields] = [
        {"cpu_capacity": cores, "sleep_w": 20.0, "wake_s": wake_s, "wake_w": 150.0}
        for cores, wake_s in zip((8.0, 12.0), wakes_s.tolist(), strict=True)
    ]
    group = [0, 0, 0, 1, 1, -1][: int(dice.integers(5, 7))]
    grids = [[(hour * 3600.0, dice.uniform(20, 800), 50.0) for hour in range(9)]]
    scaling = np.array([[1.0, 1.0], [1.0, 1.8]])
    world = make_world(jobs, [nodes[max(each, 0)] for each in group], grids, scaling=scaling)
    world = with_autoscaling(world, group, dice.integers(0, 3, 2).tolist())
    if dice.random() < 0.5:
        return world
    spans = []
    for node in range(len(group)):
        ends = np.sort(dice.uniform(0.0, 3.0, 2 * int(dice.integers(1, 4)))).tolist()
        spans += [(node, *each) for each in zip(ends[::2], ends[1::2], strict=True)]
    return with_outages(world, *spans)
