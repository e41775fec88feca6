"""The event loop: jobs arrive, wait for their planned start, are placed, run and end.

Some are suspended in between, and wait for the start of their next stretch as for their first.

What the `when` rule rejects is gone on arrival: it never queues, and nothing is kept for it.

Between events nothing changes, so time jumps from one to the next. At one instant ends come before
planned starts and these before arrivals; a queue is served once all of them are through. The loop
only records; energy, money and carbon are reckoned afterwards, by one accounting for all policies.
"""

import heapq
from typing import Any

import numpy as np

from greensched_policies.cost import Floats
from greensched_simulator.choices import (
    NOWHERE,
    Cluster,
    Rules,
    Terms,
    choose_node,
)
from greensched_simulator.compiled import borrowing, fast, inlined
from greensched_simulator.grid_table import GridTable
from greensched_simulator.jobs import Jobs
from greensched_simulator.pacing import Changes, pace
from greensched_simulator.progress import CHANGED, STOP_S, workload_of
from greensched_simulator.prospects import Prospects
from greensched_simulator.queueing import OLDEST_FIT, join, nobody_queueing, serve
from greensched_simulator.running import (
    Heap,
    Recorded,
    free_plan,
    leave_node,
    nothing_recorded,
    place,
)
from greensched_simulator.runs import (
    Agenda,
    Suspended,
    choose_runs,
    clear_agenda,
    empty_agenda,
    nothing_chosen,
    put_on_agenda,
)
from greensched_simulator.starts import Plan, choose_start, keep
from greensched_simulator.suspending import goes_on, suspend
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
) -> tuple[Recorded, Changes, Suspended]:
    """Run all jobs to their end and return what happened.

    That is of each job in its only or last stretch, which node was capped when, and the stretches
    after which jobs were suspended.

    `cluster` and `plan` are left as they then are, the nodes empty. `steps_s` are the times at
    which any grid changes, if nodes are capped or the queue looks at them.
    """
    count, is_capped = jobs.arrival_s.size, cluster.cap.shape[1] > 0
    recorded = nothing_recorded(jobs, is_capped or terms.may_suspend)
    agenda = empty_agenda(count if terms.may_suspend else 0)
    waiting, queue = nobody_waiting(count), nobody_queueing(count)
    ends, starts = [(0.0, 0) for _ in range(0)], [(0.0, 0) for _ in range(0)]
    changes, arrived, step = [(0.0, 0, 1.0) for _ in range(0)], 0, 0
    while arrived < count or len(starts) > 0 or len(ends) > 0:
        end_s, start_s, arrival_s = next_times_s(arrived, jobs.arrival_s, starts, ends)
        due = NOWHERE  # the job that wants to start now
        if step < steps_s.size and steps_s[step] < min(end_s, start_s, arrival_s):
            now_s = steps_s[step]
        elif end_s <= start_s and end_s <= arrival_s:
            now_s, job = heapq.heappop(ends)
            _look_at(
                job, now_s, waiting, jobs, prospects, cluster, recorded, ends, starts, grid, plan,
                agenda, terms, rules,
            )  # fmt: skip
        elif start_s <= arrival_s:
            now_s, due = heapq.heappop(starts)
        else:
            now_s = arrival_s
            if terms.may_suspend:
                at_s = _plan_slots(
                    arrived, now_s, jobs, prospects, grid, plan, agenda, recorded, terms, rules
                )
            else:
                at_s = _plan(arrived, now_s, jobs, prospects, grid, plan, recorded, terms, rules)
            due = _due_or_put_off(arrived, now_s, at_s, starts)
            arrived += 1
        is_last = now_s < min(next_times_s(arrived, jobs.arrival_s, starts, ends))  # of this time
        if due >= 0 and terms.discipline != OLDEST_FIT:
            join(queue, due)
        elif due >= 0:
            _try(due, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        if is_last and queue.length[0] > 0:
            serve(now_s, queue, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        step = step_of(step, now_s, steps_s, cluster)
        if is_last and is_capped:
            pace(now_s, jobs, cluster, recorded, ends, changes, grid, terms, rules)
    return recorded, changes, agenda.suspended


@inlined
def step_of(step: int, now_s: float, steps_s: Floats, cluster: Cluster) -> int:
    """Return the next step of any grid; all nodes are marked if one has come by now."""
    while step < steps_s.size and steps_s[step] <= now_s:
        cluster.cap[CHANGED, :] = 1.0
        step += 1
    return step


@fast
def next_times_s(
    arrived: int, arrival_s: Floats, starts: Heap, ends: Heap
) -> tuple[float, float, float]:
    """Return when a job is to be looked at, to start and to arrive next; infinity: none is."""
    return (
        ends[0][0] if len(ends) > 0 else np.inf,
        starts[0][0] if len(starts) > 0 else np.inf,
        arrival_s[arrived] if arrived < arrival_s.size else np.inf,
    )


@fast
def _due_or_put_off(job: int, now_s: float, planned_s: float, starts: Heap) -> int:
    """Return a job that is to start now; else it waits for that, or is rejected: NOWHERE."""
    if planned_s > now_s:
        heapq.heappush(starts, (planned_s, job))
    return job if planned_s == now_s else NOWHERE


@fast
def _plan_slots(
    job: int,
    now_s: float,
    jobs: Jobs,
    prospects: Prospects,
    grid: GridTable,
    plan: Plan,
    agenda: Agenda,
    recorded: Recorded,
    terms: Terms,
    rules: Rules,
) -> float:
    """Return as `_plan` when a job is to start; if it can be suspended, it is planned by slots."""
    runs = nothing_chosen()
    if jobs.save_every_s[job] < np.inf and not terms.may_reject:
        zone: Any = np.int64(NOWHERE)  # the constant itself would be a type of its own
        runs = choose_runs(job, now_s, zone, jobs, prospects, grid, plan, recorded, terms, rules)
    if runs.zone == NOWHERE:
        return _plan(job, now_s, jobs, prospects, grid, plan, recorded, terms, rules)
    put_on_agenda(job, now_s, runs, jobs, agenda, recorded, plan, terms)
    recorded.planned_s[job] = recorded.kept_from_s[job]
    return float(recorded.planned_s[job])


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
    recorded.planned_s[job] = recorded.kept_from_s[job] = chosen.start_s
    recorded.kept_until_s[job] = end_s
    recorded.planned_zone[job] = chosen.zone
    keep(plan, chosen.zone, terms.slot_s, chosen.start_s, end_s, cpu_cores)
    return chosen.start_s


@fast
def _look_at(
    job: int,
    now_s: float,
    waiting: Waiting,
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    starts: Heap,
    grid: GridTable,
    plan: Plan,
    agenda: Agenda,
    terms: Terms,
    rules: Rules,
) -> None:
    """See to a running job: it goes on, or leaves its room to others, ended or suspended."""
    if terms.may_suspend and goes_on(
        job, now_s, jobs, prospects, cluster, recorded, ends, grid, plan, agenda, terms, rules
    ):
        return
    node = recorded.node[job]
    leave_node(job, now_s, jobs, cluster, recorded, terms)
    if terms.may_suspend and recorded.progress[STOP_S, job] > 0.0:
        suspend(job, node, now_s, recorded, starts, agenda)
    else:
        free_plan(job, now_s, jobs, cluster, recorded, plan, terms)
        if terms.may_suspend:
            clear_agenda(job, jobs, agenda, plan, terms)
    if terms.discipline == OLDEST_FIT:
        fill(node, now_s, waiting, jobs, cluster, recorded, ends, plan, terms)


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
    look_s = _look_of(job, now_s, waiting, jobs, cluster, recorded, grid, plan, terms, rules)
    if look_s < np.inf:
        heapq.heappush(ends, (look_s, job))


@borrowing
def _look_of(
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
    """Return until when a job needs no look that starts on the best node; infinity: it waits."""
    workload = workload_of(job, jobs, recorded.progress)
    node = choose_node(cluster, grid, terms, rules, workload, now_s)
    if node >= 0:
        return place(job, node, now_s, jobs, cluster, recorded, plan, terms)
    wait(job, waiting, jobs)
    return np.inf
