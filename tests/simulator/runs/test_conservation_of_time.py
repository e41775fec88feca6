"""No second of a job or of a node is lost, or told twice, in the rows that a run leaves."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_policies.costs.cost import Floats
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.results.recorded_rows import decision_rows, job_rows, node_hour_rows
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import billed_until_s, simulate
from greensched_simulator.testing.random_worlds import random_world
from greensched_simulator.world.world import World, idle_watts

HOUR = 3600.0
KINDS = ["", "data", "data graphs gangs pauses", "elastic pauses", "failures pauses",
         "data elastic failures graphs panels pauses", "autoscaled data gangs pauses",
         "autoscaled failures graphs"]  # fmt: skip
POLICIES = ["run-now+spread", "planned-window+least-cost+sleep-at-once", "wait-awhile",
            "cheapest-window+bin-pack+cap-60+pause-freely+sleep-at-break-even",
            "carbon-scaler", "reject-long+sleep-at-once"]  # fmt: skip


class Run(NamedTuple):
    """A random world and what a policy did with it."""

    world: World
    policy: Policy
    schedule: Schedule
    until_s: float


def new_run(seed: int, kind: str, name: str) -> Run:
    world, policy = random_world(seed, kind, sleeps=False), policy_named(name)
    schedule = simulate(world, policy)
    return Run(world, policy, schedule, billed_until_s(world, schedule))


runs = st.builds(new_run, st.integers(0, 10_000), st.sampled_from(KINDS), st.sampled_from(POLICIES))


def rows_of(tables: Iterator[Any]) -> list[dict[str, Any]]:
    return [row for table in tables for row in table.to_pylist()]


def decisions_by_job(run: Run) -> dict[str, dict[str, list[float]]]:
    """Return when each kind of decision was made on each job, each time once, in order."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(decision_rows(run.world, run.policy, run.schedule, np.inf)):
        times_s = found[row["job"]][row["decision"]]
        if row["at_s"] not in times_s:
            times_s.append(row["at_s"])
    return found


@settings(max_examples=60)
@given(runs)
def test_from_its_arrival_to_its_end_a_job_waits_or_is_paused_or_gets_its_data_or_runs(
    run: Run,
) -> None:
    decisions = decisions_by_job(run)
    for row in rows_of(job_rows(run.world, run.policy, run.schedule)):
        if row["end_s"] is None:
            assert row["wait_s"] is None
            continue
        made = decisions[row["job"]]
        begins_s = sorted({*made["place"], *made["resume"]})
        ends_s = [*made["suspend"], row["end_s"]]
        assert len(begins_s) == len(ends_s)
        running_s = np.subtract(ends_s, begins_s)
        apart_s = np.subtract(begins_s, [row["ready_s"], *ends_s[:-1]])  # before each run segment
        moving_s = moved_s(begins_s, made["move"])
        waiting_s, *paused_s = apart_s - moving_s
        assert min(*running_s, waiting_s, *paused_s, row["ready_s"] - row["arrival_s"]) >= -1e-6
        parts_s = (row["ready_s"] - row["arrival_s"]) + waiting_s + sum(paused_s)
        parts_s += moving_s.sum() + running_s.sum()
        assert row["end_s"] - row["arrival_s"] == pytest.approx(parts_s, abs=1e-6)
        assert row["wait_s"] == pytest.approx(apart_s.sum(), abs=1e-6)


def moved_s(begins_s: list[float], moves_s: list[float]) -> Floats:
    """Return for how long data was brought before each run segment, [S]: from the move to its
    begin.
    """
    found = np.zeros(len(begins_s))
    for at_s in moves_s:
        run_segment = int(np.searchsorted(begins_s, at_s))
        found[run_segment] = max(found[run_segment], begins_s[run_segment] - at_s)
    return found


@settings(max_examples=60)
@given(runs)
def test_each_second_of_a_node_is_awake_asleep_waking_or_away(run: Run) -> None:
    """Seconds are told by the joules of each state and what the node draws in it."""
    node = {name: place for place, name in enumerate(run.world.node_names)}
    billed_s = np.zeros(len(node))
    for row in rows_of(node_hour_rows(run.world, run.policy, run.schedule, run.until_s)):
        place, begin_s = node[row["node"]], HOUR * row["hour"]
        end_s = begin_s + row["length_s"]
        awake_s, asleep_s, waking_s = seconds_by_joules(run.world, place, row)
        away_s = seconds_away(run.schedule, place, begin_s, end_s)
        told_s = awake_s + asleep_s + waking_s + away_s
        assert told_s == pytest.approx(row["length_s"], abs=1e-5)
        active_s = seconds_active(run.schedule, place, begin_s, end_s)
        assert active_s <= awake_s + 1e-5  # the others it idles
        assert row["cpu_core_s"] <= run.world.nodes.cpu_capacity[place] * active_s * (1 + 1e-9)
        billed_s[place] += told_s
    assert billed_s == pytest.approx(np.full(len(node), run.until_s), rel=1e-9)


def seconds_by_joules(world: World, node: int, row: dict[str, Any]) -> Floats:
    """Return the seconds that a node was awake, asleep and waking within an hour, [3]."""
    machines, grids = world.nodes, world.grids
    pue = machines.pue[node]
    if grids.pue_relative.size:
        first, behind = grids.starts[machines.zone[node] : machines.zone[node] + 2]
        pue *= grids.pue_relative[min(first + row["hour"], behind - 1)]  # a step is an hour
    watts = np.array([idle_watts(world)[node], machines.sleep_w[node], machines.wake_w[node]])
    joules = [row[f"energy_{state}_j"] for state in ("idle", "sleep", "wake")]
    return np.asarray(joules / (watts * pue), np.float64)


def seconds_away(schedule: Schedule, node: int, begin_s: float, end_s: float) -> float:
    away = schedule.outages
    lasts_s = np.minimum(away.awake_s, end_s) - np.maximum(away.asleep_s, begin_s)
    return float(np.maximum(lasts_s[away.node == node], 0.0).sum())


def seconds_active(schedule: Schedule, node: int, begin_s: float, end_s: float) -> float:
    """Return for how long anything ran on a node between two times."""
    ran = schedule.run_segments
    here = ran.node == node
    spans = np.clip(np.stack([ran.start_s, ran.end_s])[:, here], begin_s, end_s)
    active_s, until_s = 0.0, begin_s
    for start_s, stop_s in sorted(spans.T.tolist()):
        active_s += max(stop_s - max(start_s, until_s), 0.0)
        until_s = max(until_s, stop_s)
    return active_s
