"""The event loop: jobs arrive, wait for their planned start, are placed, run and end.

What the `when` rule rejects is gone on arrival: it never queues, and nothing is kept for it.

Between events nothing changes, so time jumps from one to the next. At one instant ends come before
planned starts and these before arrivals; a queue is served once all of them are through. The loop
only records; energy, money and carbon are reckoned afterwards, by one accounting for all policies.
"""

import heapq

import numpy as np

from greensched_policies.cost import Floats
from greensched_simulator.choices import (
    NOWHERE,
    Cluster,
    Rules,
    Terms,
    choose_node,
    workload_of,
)
from greensched_simulator.compiled import borrowing, fast, inlined
from greensched_simulator.grid_table import GridTable
from greensched_simulator.jobs import Jobs
from greensched_simulator.pacing import Changes, pace
from greensched_simulator.prospects import Prospects
from greensched_simulator.queueing import OLDEST_FIT, Queue, join, serve
from greensched_simulator.running import (
    CHANGED,
    Heap,
    Recorded,
    finish,
    nothing_recorded,
    place,
)
from greensched_simulator.starts import Plan, choose_start, keep
from greensched_simulator.waiting import Waiting, fill, nobody_waiting, wait


@fast
def run(
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
    steps_s: Floats,
) -> tuple[Recorded, Changes]:
    """Run all jobs to their end and return what happened, and which node was capped when.

    `cluster` and `plan` are left as they then are, the nodes empty. `steps_s` are the times at
    which any grid changes; none if nobody caps.
    """
    count = jobs.arrival_s.size
    recorded, waiting = nothing_recorded(count, cluster.cap.shape[1] > 0), nobody_waiting(count)
    queue = Queue(np.empty(count, np.int64), np.zeros(1, np.int64))
    ends, starts = [(0.0, 0) for _ in range(0)], [(0.0, 0) for _ in range(0)]
    changes, arrived, step = [(0.0, 0, 1.0) for _ in range(0)], 0, 0
    while arrived < count or len(starts) > 0 or len(ends) > 0:
        end_s = ends[0][0] if len(ends) > 0 else np.inf
        start_s = starts[0][0] if len(starts) > 0 else np.inf
        arrival_s = jobs.arrival_s[arrived] if arrived < count else np.inf
        due = -1  # the job that wants to start now
        if step < steps_s.size and steps_s[step] < min(end_s, start_s, arrival_s):
            now_s = steps_s[step]
        elif end_s <= start_s and end_s <= arrival_s:
            now_s, job = heapq.heappop(ends)
            finish(job, now_s, jobs, cluster, recorded, plan, terms)
            if terms.discipline == OLDEST_FIT:
                node = recorded.node[job]
                fill(node, now_s, waiting, jobs, cluster, recorded, ends, plan, terms)
        elif start_s <= arrival_s:
            now_s, due = heapq.heappop(starts)
        else:
            now_s = arrival_s
            planned_s = _plan(arrived, now_s, jobs, prospects, grid, plan, recorded, terms, rules)
            if planned_s > now_s:
                heapq.heappush(starts, (planned_s, arrived))
            elif planned_s == now_s:  # NaN is neither: the job is rejected
                due = arrived
            arrived += 1
        is_last = next_event_s(arrived, jobs.arrival_s, starts, ends) > now_s  # of this instant
        if terms.discipline != OLDEST_FIT:
            if due >= 0:
                join(queue, due)
            if is_last and queue.length[0] > 0:
                serve(now_s, queue, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        elif due >= 0:
            _try(due, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        if is_last and cluster.cap.shape[1] > 0:
            step = step_of(step, now_s, steps_s, cluster)
            pace(now_s, jobs, cluster, recorded, ends, changes, grid, terms, rules)
    return recorded, changes


@inlined
def step_of(step: int, now_s: float, steps_s: Floats, cluster: Cluster) -> int:
    """Return the next step of any grid; all nodes are marked if one has come by now."""
    while step < steps_s.size and steps_s[step] <= now_s:
        cluster.cap[CHANGED, :] = 1.0
        step += 1
    return step


@fast
def next_event_s(arrived: int, arrival_s: Floats, starts: Heap, ends: Heap) -> float:
    """Return when something happens next; infinity if nothing does."""
    next_s = arrival_s[arrived] if arrived < arrival_s.size else np.inf
    if len(starts) > 0:
        next_s = min(next_s, starts[0][0])
    if len(ends) > 0:
        next_s = min(next_s, ends[0][0])
    return next_s


@borrowing
def _plan(
    job: int,
    now_s: float,
    jobs: Jobs,
    prospects: Prospects,
    grid: GridTable,
    plan: Plan,
    recorded: Recorded,
    terms: Terms,
    rules: Rules,
) -> float:
    """Return when a job that has just arrived is to start, and keep room for it in the plan.

    NaN says that it is rejected.
    """
    runtime_s, latest_s = prospects.runtime_s[job], prospects.latest_start_s[job]
    cpu_cores = jobs.cpu_cores[job]
    chosen = choose_start(grid, plan, terms, rules, now_s, runtime_s, latest_s, cpu_cores)
    if chosen.zone == NOWHERE:
        return np.nan
    end_s = chosen.start_s + chosen.runtime_s
    recorded.planned_s[job] = chosen.start_s
    recorded.kept_until_s[job] = end_s
    recorded.planned_zone[job] = chosen.zone
    keep(plan, chosen.zone, terms.slot_s, chosen.start_s, end_s, cpu_cores)
    return chosen.start_s


@fast
def _try(
    job: int,
    now_s: float,
    waiting: Waiting,
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
    end_s = _end_of(job, now_s, waiting, jobs, cluster, recorded, grid, plan, terms, rules)
    if end_s < np.inf:
        heapq.heappush(ends, (end_s, job))


@borrowing
def _end_of(
    job: int,
    now_s: float,
    waiting: Waiting,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> float:
    """Return when a job ends that starts on the best node with room; infinity if it has to wait."""
    workload = workload_of(job, jobs)
    node = choose_node(cluster, grid, terms, rules, workload, now_s)
    if node >= 0:
        return place(job, node, now_s, jobs, cluster, recorded, plan, terms)
    wait(job, waiting, jobs)
    return np.inf
