"""What happens to a job on its node: it starts, it ends, and both are recorded."""

import heapq
from typing import NamedTuple

import numpy as np

from greensched_policies.cost import Floats
from greensched_simulator.choices import NOWHERE, Cluster, Integers, Terms
from greensched_simulator.compiled import borrowing, fast, inlined
from greensched_simulator.jobs import Jobs
from greensched_simulator.power_states import awake_from_s, fall_empty, wake
from greensched_simulator.starts import Plan, keep

Heap = list[tuple[float, int]]  # time in seconds, job

# Rows of the cluster's table of caps, [4,N], and of the jobs' progress, [2,J]; where nobody caps,
# both have no columns.
LEVEL, CPU_PACE, GPU_PACE, CHANGED = range(4)
LEFT_S, SINCE_S = range(2)  # at full speed on the reference core; as it was when


class Recorded(NamedTuple):
    """What happened to each job, [J]."""

    planned_s: Floats  # when it was to start; NaN if it was rejected
    planned_zone: Integers  # where it then seemed best
    kept_until_s: Floats  # the plan keeps room for it until then
    placed_s: Floats  # when it got its node; NaN if never
    node_asleep_s: Floats  # since when that node had slept, which it woke; NaN: it was awake
    start_s: Floats  # when it ran, once its node was awake; NaN if never
    end_s: Floats
    node: Integers  # NOWHERE if it never ran
    progress: Floats  # [2,J] see LEFT_S; [2,0] where nobody caps


@fast
def nothing_recorded(jobs: int, capped: bool) -> Recorded:
    """Return the record of jobs of which nothing is known yet; `capped`: nodes may be."""
    return Recorded(
        np.full(jobs, np.nan),
        np.full(jobs, NOWHERE, np.int64),
        np.full(jobs, np.nan),
        np.full(jobs, np.nan),
        np.full(jobs, np.nan),
        np.full(jobs, np.nan),
        np.full(jobs, np.nan),
        np.full(jobs, NOWHERE, np.int64),
        np.full((2, jobs if capped else 0), np.nan),
    )


@inlined
def pace_of(job: int, node: int, jobs: Jobs, cluster: Cluster) -> float:
    """Return how fast a job runs on a node at its level, relative to no cap."""
    if cluster.cap.shape[1] == 0:
        return 1.0
    return float(cluster.cap[GPU_PACE if jobs.gpus[job] > 0.0 else CPU_PACE, node])


@fast
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
    """Place a job on a node now, where it runs as soon as the node is awake."""
    heapq.heappush(ends, (place(job, node, now_s, jobs, cluster, recorded, plan, terms), job))


@borrowing
def place(
    job: int,
    node: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> float:
    """Record that a job is placed on a node now, and return when it ends."""
    recorded.node_asleep_s[job] = wake(cluster.sleep, node, cluster.columns[11, node], now_s)
    begin_s = awake_from_s(cluster.sleep, node, now_s)
    speed = cluster.columns[9, node] * pace_of(job, node, jobs, cluster)
    end_s = begin_s + jobs.runtime_s[job] / speed
    if cluster.cap.shape[1] > 0:
        cluster.cap[CHANGED, node] = 1.0
        recorded.progress[LEFT_S, job] = jobs.runtime_s[job]
        recorded.progress[SINCE_S, job] = begin_s
    recorded.placed_s[job] = now_s
    recorded.start_s[job] = begin_s
    recorded.end_s[job] = end_s
    recorded.node[job] = node
    expected_s = begin_s + jobs.estimate_s[job] / cluster.columns[9, node]
    _move_plan(job, begin_s, expected_s, cluster.zone[node], jobs, recorded, plan, terms)
    cluster.pods[node] += 1
    cluster.cpu_free[node] -= jobs.cpu_cores[job]
    cluster.memory_free[node] -= jobs.memory_bytes[job]
    cluster.gpu_free[node] -= jobs.gpus[job]
    _refresh(node, cluster, terms)
    return float(end_s)


@borrowing
def finish(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Free what a job held that has just ended."""
    expected_s = recorded.kept_until_s[job]
    if expected_s > now_s + terms.slot_s:  # over sooner than thought: the rest is free again
        begin_s = np.ceil(now_s / terms.slot_s) * terms.slot_s
        zone = cluster.zone[recorded.node[job]]
        keep(plan, zone, terms.slot_s, begin_s, expected_s, -jobs.cpu_cores[job])
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
    begin_s, end_s, cores = recorded.planned_s[job], recorded.kept_until_s[job], jobs.cpu_cores[job]
    if begin_s == runs_from_s and end_s == expected_s and recorded.planned_zone[job] == zone:
        return
    keep(plan, recorded.planned_zone[job], terms.slot_s, begin_s, end_s, -cores)
    keep(plan, zone, terms.slot_s, runs_from_s, expected_s, cores)
    recorded.kept_until_s[job] = expected_s


@borrowing
def _refresh(node: int, cluster: Cluster, terms: Terms) -> None:
    """Bring the columns that decisions see up to what is free now."""
    capacity = cluster.columns[0, node]
    busy = (capacity - cluster.cpu_free[node]) * terms.model.utilisation_ratio / capacity
    cluster.columns[1, node] = min(max(busy, 0.0), 1.0)
    cluster.columns[3, node] = max(cluster.memory_free[node], 0.0)
    cluster.columns[5, node] = max(cluster.gpu_free[node], 0.0)
    cluster.columns[11, node] = 1.0 if cluster.pods[node] == 0 else 0.0
