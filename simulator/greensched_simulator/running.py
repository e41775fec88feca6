"""What happens to a job on its node: it starts, it leaves, and both are recorded."""

from typing import NamedTuple

import numpy as np

from greensched_policies.cost import Floats
from greensched_policies.courses import Integers
from greensched_simulator.choices import NOWHERE, Cluster, Terms
from greensched_simulator.compiled import borrowing, fast, inlined
from greensched_simulator.heaps import Heap, push
from greensched_simulator.jobs import Jobs
from greensched_simulator.power_states import awake_from_s, fall_empty, wake
from greensched_simulator.progress import (
    CHANGED,
    LEFT_S,
    PAUSE_AT_S,
    SINCE_S,
    STOP_S,
    WORK_S,
    expected_left_s,
    leaves_s,
    nothing_done,
    speed_of,
    until_s,
)
from greensched_simulator.progress import end_s as end_s_of
from greensched_simulator.starts import Plan, keep


class Recorded(NamedTuple):
    """What happened to each job, [J]; of those that were suspended in their last stretch."""

    planned_s: Floats  # when it was to start; NaN if it was rejected
    planned_zone: Integers  # where it then seemed best
    kept_from_s: Floats  # the plan keeps room for it, or its next stretch, from then
    kept_until_s: Floats  # until then
    placed_s: Floats  # when it got its node; NaN if never
    node_asleep_s: Floats  # since when that node had slept, which it woke; NaN: it was awake
    start_s: Floats  # when it ran, once its node was awake; NaN if never
    end_s: Floats
    node: Integers  # NOWHERE if it does not run, or never did
    progress: Floats  # see `progress`
    # [J+1,2] who was placed one after the other, and how busy the node was without; in the first
    # row how many that were; no rows where nobody asks
    placings: Floats


@fast
def nothing_recorded(jobs: Jobs, progress_changes: bool) -> Recorded:
    """Return the record of jobs of which nothing is known yet."""
    count = jobs.arrival_s.size
    return Recorded(
        np.full(count, np.nan),
        np.full(count, NOWHERE, np.int64),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, NOWHERE, np.int64),
        nothing_done(jobs, progress_changes),
        np.zeros((0, 2)),
    )


@borrowing
def start(
    job: int,
    node: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    plan: Plan,
    terms: Terms,
) -> None:
    """Place a job on a node now, where it runs, or goes on, as soon as the node is awake."""
    recorded.node_asleep_s[job] = wake(cluster.sleep, node, cluster.columns[11, node], now_s)
    begin_s = awake_from_s(cluster.sleep, node, now_s)
    done_s = begin_s + jobs.runtime_s[job] / speed_of(job, node, jobs, cluster)
    look_s = end_s = leaves_s(job, begin_s, done_s, jobs)
    expected_s = begin_s + expected_left_s(job, jobs, recorded.progress) / cluster.columns[9, node]
    if recorded.progress.shape[1] > 0:
        done = recorded.progress
        done[SINCE_S, job], done[STOP_S, job] = begin_s, 0.0
        done[WORK_S, job] = done[LEFT_S, job] - jobs.startup_s[job]
        # Who had to queue runs for a while, whatever was planned.
        done[PAUSE_AT_S, job] = max(done[PAUSE_AT_S, job], begin_s + terms.slot_s)
        end_s = end_s_of(job, node, jobs, cluster, done)
        look_s = until_s(job, node, jobs, cluster, done)
        expected_s = min(expected_s, done[PAUSE_AT_S, job])
    if cluster.cap.shape[1] > 0:
        cluster.cap[CHANGED, node] = 1.0
    if recorded.placings.shape[0] > 0:
        _note_placing(job, cluster.columns[1, node], recorded.placings)
    recorded.placed_s[job] = now_s
    recorded.start_s[job] = begin_s
    recorded.end_s[job] = end_s
    recorded.node[job] = node
    _move_plan(job, begin_s, expected_s, cluster.zone[node], jobs, recorded, plan, terms)
    cluster.pods[node] += 1
    cluster.cpu_free[node] -= jobs.cpu_cores[job]
    cluster.memory_free[node] -= jobs.memory_bytes[job]
    cluster.gpu_free[node] -= jobs.gpus[job]
    _refresh(node, cluster, terms)
    push(ends, look_s, job)


@borrowing
def free_plan(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Free what the plan keeps for a running job from now on: it stops sooner than thought."""
    expected_s = recorded.kept_until_s[job]
    if expected_s > now_s + terms.slot_s:
        begin_s = np.ceil(now_s / terms.slot_s) * terms.slot_s
        zone = cluster.zone[recorded.node[job]]
        keep(plan, zone, terms.slot_s, begin_s, expected_s, -jobs.cpu_cores[job])
        recorded.kept_until_s[job] = begin_s


@borrowing
def leave_node(
    job: int, now_s: float, jobs: Jobs, cluster: Cluster, recorded: Recorded, terms: Terms
) -> None:
    """Free what a job held of its node that has just stopped."""
    node = recorded.node[job]
    if cluster.cap.shape[1] > 0:
        cluster.cap[CHANGED, node] = 1.0
    cluster.pods[node] -= 1
    if cluster.pods[node] == 0:  # sums of floats never quite cancel
        cluster.cpu_free[node] = cluster.columns[0, node]
        cluster.memory_free[node] = cluster.columns[2, node]
        cluster.gpu_free[node] = cluster.columns[4, node]
        fall_empty(cluster.sleep, node, now_s)
    else:
        cluster.cpu_free[node] += jobs.cpu_cores[job]
        cluster.memory_free[node] += jobs.memory_bytes[job]
        cluster.gpu_free[node] += jobs.gpus[job]
    _refresh(node, cluster, terms)


@borrowing
def _move_plan(
    job: int,
    runs_from_s: float,
    expected_s: float,
    zone: int,
    jobs: Jobs,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Let the plan follow what happens: the job runs from then on, maybe elsewhere, as expected."""
    begin_s, end_s = recorded.kept_from_s[job], recorded.kept_until_s[job]
    cores = jobs.cpu_cores[job]
    if begin_s == runs_from_s and end_s == expected_s and recorded.planned_zone[job] == zone:
        return
    keep(plan, recorded.planned_zone[job], terms.slot_s, begin_s, end_s, -cores)
    keep(plan, zone, terms.slot_s, runs_from_s, expected_s, cores)
    recorded.kept_from_s[job], recorded.kept_until_s[job] = runs_from_s, expected_s


@inlined
def _note_placing(job: int, busy_before: float, placings: Floats) -> None:
    placings[0, 0] += 1.0
    placings[int(placings[0, 0]), 0] = job
    placings[int(placings[0, 0]), 1] = busy_before


@borrowing
def _refresh(node: int, cluster: Cluster, terms: Terms) -> None:
    """Bring the columns that decisions see up to what is free now."""
    capacity = cluster.columns[0, node]
    busy = (capacity - cluster.cpu_free[node]) * terms.model.utilisation_ratio / capacity
    cluster.columns[1, node] = min(max(busy, 0.0), 1.0)
    cluster.columns[3, node] = max(cluster.memory_free[node], 0.0)
    cluster.columns[5, node] = max(cluster.gpu_free[node], 0.0)
    cluster.columns[11, node] = 1.0 if cluster.pods[node] == 0 else 0.0
