"""The event loop of most worlds, where jobs only arrive, start where there is room, and end.

It does the same as the engine's loop. It touches no list, so it need not count references
(`compiled.borrowing`).
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing
from greensched_simulator.arrays.heaps import pop
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
from greensched_simulator.engine.queue.waiting import fill_all
from greensched_simulator.engine.run import ARRIVED, Run, next_times_s
from greensched_simulator.engine.state.choices import NOWHERE


@borrowing
def run_plainly(run: Run) -> None:
    """Run all jobs to their end, by rules."""
    while True:
        head, job = next_plain(run)
        if head == OVER:
            return
        now_s = run.events.now_s[0]
        if head == WHEN:
            job = due_or_put_off(job, now_s, plan_start(job, now_s, run), run.events.starts)
        if job >= 0:
            place_by_rule(job, now_s, run)


@borrowing
def next_plain(run: Run) -> tuple[int, int]:
    """Advance to the next job that needs a start or a node; return the head and the job."""
    events, recorded = run.events, run.recorded
    while True:
        end_s, start_s, arrival_s, _ = next_times_s(run)
        now_s = min(end_s, start_s, arrival_s)
        if now_s == np.inf:
            return OVER, NOWHERE
        events.now_s[0] = now_s
        if end_s <= start_s and end_s <= arrival_s:
            _, job = pop(events.ends)
            node, workers = recorded.node[job], workers_of(job, recorded)
            leave_nodes(job, now_s, run)
            free_plan(job, now_s, run)
            fill_all(job, node, workers, now_s, run)
        elif start_s <= arrival_s:
            _, job = pop(events.starts)
            return WHERE, job
        else:
            events.counts[ARRIVED] += 1
            return WHEN, events.counts[ARRIVED] - 1
