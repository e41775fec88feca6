"""The record of a run as arrays: when and where jobs ran, and when nodes slept or were capped."""

from typing import NamedTuple

import numpy as np

from greensched_policies.billing.timelines import NO_CAPS, NO_SLEEPS, Caps, Sleeps
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.nodes import NodeArrays
from greensched_simulator.engine.run import Broken, CapChanges, Suspended
from greensched_simulator.engine.state.autoscaler import OffSpans
from greensched_simulator.engine.state.power_states import ASLEEP_FROM_S
from greensched_simulator.engine.state.recorded import NODE, Recorded
from greensched_simulator.world.world import World


class RunSegments(NamedTuple):
    """Run segments, [P], ordered by job, then worker, then time.

    Each worker has its own. A job with one worker that is never suspended has one.
    """

    job: Integers  # index in the world's jobs
    node: Integers  # index in the world's nodes
    placed_s: Floats
    node_asleep_s: Floats  # since when the node, woken for the job, had slept; NaN: awake
    start_s: Floats  # when the job ran: all its nodes were awake and its data was there
    end_s: Floats
    worker: Integers  # index among the job's workers
    data_zone: Integers  # where the job's data lay; meaningless for a job without data
    ready_s: Floats  # `start_s`, or when it would have run if it was stopped before

    @property
    def of_jobs(self) -> "RunSegments":
        """Return the run segments of first workers: when each job ran."""
        return RunSegments._make(column[self.worker == 0] for column in self)


class Schedule(NamedTuple):
    """When and where each job of a world ran, [J]; times since the scenario's start."""

    planned_s: Floats  # planned start; NaN if it was rejected
    start_s: Floats  # first start, with all its nodes awake; NaN if it never ran
    end_s: Floats
    node: Integers  # index of the node where its first worker ended; -1: it never ran
    run_segments: RunSegments
    sleeps: Sleeps = NO_SLEEPS  # of nodes; autoscaled ones are off then
    caps: Caps = NO_CAPS  # of nodes
    outages: Sleeps = NO_SLEEPS  # of nodes, which then draw nothing

    @property
    def off(self) -> Sleeps:
        """Return when nodes slept, woke or had failed."""
        return _together(self.sleeps, self.outages)


def schedule_of(
    world: World,
    recorded: Recorded,
    changes: CapChanges,
    suspended: Suspended,
    broken: Broken,
    sleep: Floats,
    off: OffSpans,
) -> Schedule:
    """Return the schedule that a run recorded; `sleep` is the table at the run's end."""
    run_segments = _run_segments(recorded, suspended)
    return Schedule(
        recorded.planned_s,
        _first_starts(recorded.start_s, run_segments),
        recorded.end_s,
        recorded.node,
        run_segments,
        _together(_sleeps(world.nodes, run_segments, sleep), _off(world.nodes, off)),
        _caps(changes),
        _outages(broken),
    )


def _run_segments(recorded: Recorded, suspended: Suspended) -> RunSegments:
    """Return all run segments, including those that a suspension ended."""
    ran = np.flatnonzero(recorded.node >= 0)
    parts = [
        RunSegments(
            ran, recorded.node[ran], recorded.placed_s[ran], recorded.node_asleep_s[ran],
            recorded.start_s[ran], recorded.end_s[ran], np.zeros(ran.size, np.int64),
            recorded.data_zone[ran], recorded.start_s[ran],
        )
    ]  # fmt: skip
    if recorded.others.shape[1]:
        parts.append(_of_later_workers(recorded, ran))
    if suspended:
        columns = [np.array(column) for column in zip(*suspended, strict=True)]
        parts.insert(0, RunSegments(*columns))
    if len(parts) == 1:
        return parts[0]
    every = RunSegments._make(np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((every.start_s, every.worker, every.job))
    return RunSegments._make(column[order] for column in every)


def _of_later_workers(recorded: Recorded, ran: Integers) -> RunSegments:
    """Return the last run segments of all workers except the first of each job."""
    count = recorded.workers[ran] - 1
    job = np.repeat(ran, count)
    worker = np.arange(job.size) - np.repeat(np.cumsum(count) - count, count) + 1
    place = recorded.first_other[job] + worker - 1
    return RunSegments(
        job, recorded.others[NODE, place], recorded.placed_s[job],
        recorded.others_asleep_s[place], recorded.start_s[job], recorded.end_s[job], worker,
        recorded.data_zone[job], recorded.start_s[job],
    )  # fmt: skip


def _first_starts(last_start_s: Floats, run_segments: RunSegments) -> Floats:
    """Return when each job first ran, [J]; the segments are ordered by job."""
    at = np.flatnonzero(np.diff(run_segments.job, prepend=-1))
    start_s = last_start_s.copy()
    start_s[run_segments.job[at]] = run_segments.start_s[at]
    return start_s


def _sleeps(nodes: NodeArrays, run_segments: RunSegments, sleep: Floats) -> Sleeps:
    """Return when nodes slept: until a job woke them, or until the end."""
    if sleep.shape[1] == 0:
        return NO_SLEEPS
    woke = np.flatnonzero(np.isfinite(run_segments.node_asleep_s))
    left = np.flatnonzero(np.isfinite(sleep[ASLEEP_FROM_S]))
    never_s = np.full(left.size, np.inf)
    node, woken_s = np.concatenate([run_segments.node[woke], left]), run_segments.placed_s[woke]
    return Sleeps(
        node,
        np.concatenate([run_segments.node_asleep_s[woke], sleep[ASLEEP_FROM_S, left]]),
        np.concatenate([woken_s, never_s]),
        np.concatenate([woken_s + nodes.wake_s[run_segments.node[woke]], never_s]),
        nodes.sleep_w[node],
        nodes.wake_w[node],
    )


def _off(nodes: NodeArrays, off: OffSpans) -> Sleeps:
    """Return when autoscaled nodes were off and then started, as sleeps."""
    if not off:
        return NO_SLEEPS
    node, from_s, until_s = (np.array(column) for column in zip(*off, strict=True))
    ready_s = until_s + nodes.wake_s[node]
    return Sleeps(node, from_s, until_s, ready_s, nodes.sleep_w[node], nodes.wake_w[node])


def _together(some: Sleeps, others: Sleeps) -> Sleeps:
    return Sleeps._make(np.concatenate(pair) for pair in zip(some, others, strict=True))


def _outages(broken: Broken) -> Sleeps:
    """Return when nodes had failed, as sleeps that draw nothing."""
    if not broken:
        return NO_SLEEPS
    node, from_s, until_s = (np.array(column) for column in zip(*broken, strict=True))
    return Sleeps(node, from_s, until_s, until_s, np.zeros(node.size), np.zeros(node.size))


def _caps(changes: CapChanges) -> Caps:
    """Return when nodes were capped, in order of time."""
    if not changes:
        return NO_CAPS
    times_s, nodes, *power_caps = (np.array(column) for column in zip(*changes, strict=True))
    return Caps(nodes, times_s, *power_caps)
