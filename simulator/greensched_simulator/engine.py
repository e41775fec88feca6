"""The event loop: jobs arrive, wait for their planned start, are placed, run and end.

Between events nothing changes, so time jumps from one to the next. At one instant ends come before
planned starts and these before arrivals. The loop only records; energy, money and carbon are
reckoned afterwards, by one accounting for all policies.
"""

import heapq
from typing import NamedTuple

import numpy as np

from greensched_policies.cost import Floats, WorkloadColumns
from greensched_simulator.choices import (
    Cluster,
    Integers,
    Rules,
    Terms,
    choose_node,
    fits,
)
from greensched_simulator.compiled import fast
from greensched_simulator.grid_table import GridTable
from greensched_simulator.jobs import Jobs
from greensched_simulator.starts import Plan, choose_start, keep

NOWHERE = -1  # the node of a job that never ran
NOBODY = -1  # behind the last job of a queue

Heap = list[tuple[float, int]]  # time in seconds, job


class Recorded(NamedTuple):
    """What happened to each job, [J]."""

    planned_s: Floats  # when it was to start
    planned_zone: Integers  # where it then seemed best
    start_s: Floats  # when it did; NaN if never
    end_s: Floats
    node: Integers  # NOWHERE if it never ran


class _Waiting(NamedTuple):
    """A queue of jobs whose time has come but that found no room, in the order in which they came.

    A place in `behind` is a job, the one past the last job is the queue's head.
    """

    behind: Integers  # [J+1] who stands behind; NOBODY behind the last one
    last: Integers  # [1] where the next one queues
    least: Floats  # [2] no job in the queue asks for fewer cores, nor for fewer bytes


@fast
def run(
    jobs: Jobs, cluster: Cluster, grid: GridTable, plan: Plan, terms: Terms, rules: Rules
) -> Recorded:
    """Run all jobs to their end and return what happened.

    `cluster` and `plan` are left as they then are.
    """
    count = jobs.arrival_s.size
    recorded = Recorded(
        np.full(count, np.nan),
        np.full(count, NOWHERE, np.int64),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, NOWHERE, np.int64),
    )
    waiting = _Waiting(np.full(count + 1, NOBODY), np.array([count]), np.full(2, np.inf))
    ends = [(0.0, 0) for _ in range(0)]
    starts = [(0.0, 0) for _ in range(0)]
    arrived = 0
    while arrived < count or len(starts) > 0 or len(ends) > 0:
        end_s = ends[0][0] if len(ends) > 0 else np.inf
        start_s = starts[0][0] if len(starts) > 0 else np.inf
        arrival_s = jobs.arrival_s[arrived] if arrived < count else np.inf
        if end_s <= start_s and end_s <= arrival_s:
            now_s, job = heapq.heappop(ends)
            _finish(job, now_s, jobs, cluster, recorded, plan, terms)
            _fill(recorded.node[job], now_s, waiting, jobs, cluster, recorded, ends, plan, terms)
        elif start_s <= arrival_s:
            now_s, job = heapq.heappop(starts)
            _try(job, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        else:
            job, now_s = arrived, arrival_s
            arrived += 1
            planned_s = _plan(job, now_s, jobs, grid, plan, recorded, terms, rules)
            if planned_s > now_s:
                heapq.heappush(starts, (planned_s, job))
            else:
                _try(job, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
    return recorded


@fast
def _plan(
    job: int,
    now_s: float,
    jobs: Jobs,
    grid: GridTable,
    plan: Plan,
    recorded: Recorded,
    terms: Terms,
    rules: Rules,
) -> float:
    """Return when a job that has just arrived is to start, and keep room for it in the plan."""
    runtime_s, cpu_cores = jobs.estimate_s[job], jobs.cpu_cores[job]
    latest_s = jobs.deadline_s[job] - runtime_s / terms.slowest_speed  # wherever it will run
    if np.isinf(latest_s):  # nobody said how long it may wait
        latest_s = now_s
    chosen = choose_start(grid, plan, terms, rules, now_s, runtime_s, latest_s, cpu_cores)
    recorded.planned_s[job] = chosen.start_s
    recorded.planned_zone[job] = chosen.zone
    keep(plan, chosen.zone, terms.slot_s, chosen.start_s, chosen.start_s + runtime_s, cpu_cores)
    return chosen.start_s


@fast
def _try(
    job: int,
    now_s: float,
    waiting: _Waiting,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> None:
    """Start a job on the best node with room, or let it wait for one."""
    workload = WorkloadColumns(
        jobs.cpu_cores[job : job + 1],
        jobs.memory_bytes[job : job + 1],
        jobs.gpus[job : job + 1],
        jobs.estimate_s[job : job + 1],
    )
    node = choose_node(cluster, grid, terms, rules, workload, now_s)
    if node >= 0:
        _start(job, node, now_s, jobs, cluster, recorded, ends, plan, terms)
    else:
        waiting.behind[waiting.last[0]] = job
        waiting.last[0] = job
        waiting.least[0] = min(waiting.least[0], jobs.cpu_cores[job])
        waiting.least[1] = min(waiting.least[1], jobs.memory_bytes[job])


@fast
def _fill(
    node: int,
    now_s: float,
    waiting: _Waiting,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    plan: Plan,
    terms: Terms,
) -> None:
    """Start on `node`, where room came free, whatever waited and fits, the oldest first.

    No other node has room for them, or they would not be waiting.
    """
    ahead = waiting.behind.size - 1
    job = waiting.behind[ahead]
    cpu_cores, memory_bytes = np.inf, np.inf  # the least that those ask for who stay
    while job != NOBODY:
        if not fits(cluster, node, waiting.least[0], waiting.least[1], 0.0):
            return
        behind = waiting.behind[job]
        if fits(cluster, node, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]):
            _start(job, node, now_s, jobs, cluster, recorded, ends, plan, terms)
            waiting.behind[ahead] = behind
            waiting.behind[job] = NOBODY
            if behind == NOBODY:
                waiting.last[0] = ahead
        else:
            cpu_cores = min(cpu_cores, jobs.cpu_cores[job])
            memory_bytes = min(memory_bytes, jobs.memory_bytes[job])
            ahead = job
        job = behind
    waiting.least[0], waiting.least[1] = cpu_cores, memory_bytes


@fast
def _start(
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
    end_s = now_s + jobs.runtime_s[job] / cluster.columns[9, node]
    recorded.start_s[job] = now_s
    recorded.end_s[job] = end_s
    recorded.node[job] = node
    _move_plan(job, now_s, cluster.zone[node], jobs, recorded, plan, terms)
    cluster.pods[node] += 1
    cluster.cpu_free[node] -= jobs.cpu_cores[job]
    cluster.memory_free[node] -= jobs.memory_bytes[job]
    cluster.gpu_free[node] -= jobs.gpus[job]
    _refresh(node, cluster, terms)
    heapq.heappush(ends, (end_s, job))


@fast
def _move_plan(
    job: int,
    now_s: float,
    zone: int,
    jobs: Jobs,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Let the plan follow what happens: the job runs from now on, maybe in another zone."""
    planned_s, runtime_s, cores = recorded.planned_s[job], jobs.estimate_s[job], jobs.cpu_cores[job]
    if planned_s == now_s and recorded.planned_zone[job] == zone:
        return
    keep(plan, recorded.planned_zone[job], terms.slot_s, planned_s, planned_s + runtime_s, -cores)
    keep(plan, zone, terms.slot_s, now_s, now_s + runtime_s, cores)


@fast
def _finish(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    expected_s = recorded.start_s[job] + jobs.estimate_s[job]
    if expected_s > now_s + terms.slot_s:  # over sooner than thought: the rest is free again
        begin_s = np.ceil(now_s / terms.slot_s) * terms.slot_s
        zone = cluster.zone[recorded.node[job]]
        keep(plan, zone, terms.slot_s, begin_s, expected_s, -jobs.cpu_cores[job])
    node = recorded.node[job]
    cluster.pods[node] -= 1
    if cluster.pods[node] == 0:  # sums of floats never quite cancel
        cluster.cpu_free[node] = cluster.columns[0, node]
        cluster.memory_free[node] = cluster.columns[2, node]
        cluster.gpu_free[node] = cluster.columns[4, node]
    else:
        cluster.cpu_free[node] += jobs.cpu_cores[job]
        cluster.memory_free[node] += jobs.memory_bytes[job]
        cluster.gpu_free[node] += jobs.gpus[job]
    _refresh(node, cluster, terms)


@fast
def _refresh(node: int, cluster: Cluster, terms: Terms) -> None:
    """Bring the columns that decisions see up to what is free now."""
    capacity = cluster.columns[0, node]
    busy = (capacity - cluster.cpu_free[node]) * terms.model.utilisation_ratio / capacity
    cluster.columns[1, node] = min(max(busy, 0.0), 1.0)
    cluster.columns[3, node] = max(cluster.memory_free[node], 0.0)
    cluster.columns[5, node] = max(cluster.gpu_free[node], 0.0)
    cluster.columns[11, node] = 1.0 if cluster.pods[node] == 0 else 0.0
