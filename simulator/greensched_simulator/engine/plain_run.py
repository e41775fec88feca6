"""The event loop where jobs only arrive, start where there is room and end, which most worlds are.

It does what the engine's loop would do, and hands no lists from function to function: functions
that need not count references to arrays (`compiled.borrowing`) can take none.
"""

import numpy as np

from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import pop
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.compiling.compiled import borrowing, fast
from greensched_simulator.engine.events import ARRIVED, Aside, Events, next_times_s
from greensched_simulator.engine.execution.outages import Outages
from greensched_simulator.engine.execution.running import free_plan, leave_nodes
from greensched_simulator.engine.execution.workers import workers_of
from greensched_simulator.engine.queue.deciding import (
    OVER,
    WHEN,
    WHERE,
    due_or_put_off,
    place_by_rule,
    plan_start,
)
from greensched_simulator.engine.queue.queueing import OLDEST_FIT
from greensched_simulator.engine.queue.waiting import Waiting, fill_all
from greensched_simulator.engine.state.choices import NOWHERE, Rules, Terms
from greensched_simulator.engine.state.cluster import Cluster
from greensched_simulator.engine.state.job_estimates import Prospects
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.starts import Plan


@fast
def is_plain(aside: Aside, cluster: Cluster, terms: Terms) -> bool:
    """Tell whether nothing ever stands aside of jobs that arrive, start and end."""
    is_usual = terms.discipline == OLDEST_FIT and not terms.may_suspend
    is_usual = is_usual and cluster.cap.shape[1] == 0 and aside.steps_s.size == 0
    return bool(is_usual and aside.unmet.size == 0 and aside.outages.at_s.size == 0)


@borrowing
def run_plainly(
    events: Events,
    waiting: Waiting,
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
    outages: Outages,
) -> None:
    """Run all jobs to their end, by rules; `outages` are none."""
    while True:
        head, job = next_plain(
            events, waiting, jobs, cluster, recorded, grid, plan, terms, rules, outages
        )
        if head == OVER:
            return
        now_s = events.now_s[0]
        if head == WHEN:
            planned_s = plan_start(job, now_s, jobs, prospects, grid, plan, recorded, terms, rules)
            job = due_or_put_off(job, now_s, planned_s, events.starts)
        if job >= 0:
            place_by_rule(
                job, now_s, waiting, jobs, cluster, recorded, events.ends, grid, plan, terms, rules
            )


@borrowing
def next_plain(
    events: Events,
    waiting: Waiting,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
    outages: Outages,
) -> tuple[int, int]:
    """Let jobs end until one is to be asked for its start or its node; return what, and which."""
    counts, ends = events.counts, events.ends
    while True:
        end_s, start_s, arrival_s, _ = next_times_s(events, jobs, outages)
        now_s = min(end_s, start_s, arrival_s)
        if now_s == np.inf:
            return OVER, NOWHERE
        events.now_s[0] = now_s
        if end_s <= start_s and end_s <= arrival_s:
            _, job = pop(ends)
            node, workers = recorded.node[job], workers_of(job, recorded)
            leave_nodes(job, now_s, jobs, cluster, recorded, terms)
            free_plan(job, now_s, jobs, cluster, recorded, plan, terms)
            fill_all(
                job, node, workers, now_s, waiting, jobs, cluster, recorded, ends, grid, plan,
                terms, rules,
            )  # fmt: skip
        elif start_s <= arrival_s:
            _, job = pop(events.starts)
            return WHERE, job
        else:
            counts[ARRIVED] += 1
            return WHEN, counts[ARRIVED] - 1
