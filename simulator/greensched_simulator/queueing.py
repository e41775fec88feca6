"""Jobs that wait for room, in the order of a rule; who may pass whom is the queue's discipline."""

from typing import NamedTuple

import numpy as np

from greensched_policies.cost import Floats, Integers
from greensched_policies.queue_columns import QueueColumns
from greensched_simulator.choices import NOWHERE, Cluster, Rules, Terms
from greensched_simulator.compiled import fast
from greensched_simulator.concurrence import place_together
from greensched_simulator.grid_table import GridTable
from greensched_simulator.heaps import Heap
from greensched_simulator.jobs import Jobs
from greensched_simulator.progress import expected_left_s
from greensched_simulator.provisioned import spare_cores
from greensched_simulator.recorded import Recorded
from greensched_simulator.refused import asks_as_much, nothing_refused, refuse
from greensched_simulator.reservations import admitted, nothing_reserved, reservation
from greensched_simulator.running import start
from greensched_simulator.starts import Plan
from greensched_simulator.workers import wanted_cores, workers_of

# Who may start while an earlier job finds no room; see `policy` for what the names mean.
DISCIPLINES = ("oldest-fit", "any-fit", "nobody-passes", "easy", "together", "provisioned")
OLDEST_FIT, ANY_FIT, NOBODY_PASSES, EASY, TOGETHER, PROVISIONED = range(6)
_FIRST_SUBMIT_S = 1.0  # of the rules that take a logarithm of it
_MOVES = 8  # of a job in a queue that is nearly sorted, on average, before it is sorted anew


class Queue(NamedTuple):
    """The jobs that wait, in no order."""

    jobs: Integers  # [J]
    length: Integers  # [1]


@fast
def nobody_queueing(jobs: int) -> Queue:
    """Return an empty queue with room for all jobs."""
    return Queue(np.empty(jobs, np.int64), np.zeros(1, np.int64))


@fast
def join(queue: Queue, job: int) -> None:
    """Let a job wait."""
    queue.jobs[queue.length[0]] = job
    queue.length[0] += 1


@fast
def serve(
    now_s: float,
    queue: Queue,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> None:
    """Start whom the rule and the discipline let start now; all that came by now have joined."""
    waiting = queue.jobs[: queue.length[0]].copy()
    sort(waiting, rules.order[0](columns_of(waiting, now_s, jobs, recorded, terms))[0])
    if terms.discipline == TOGETHER:
        place_together(now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        leave(queue, waiting, recorded)
        return
    kept, reserved = 0, nothing_reserved()
    refused = nothing_refused()
    is_strict = terms.discipline in (NOBODY_PASSES, PROVISIONED)
    for job in waiting:
        node = NOWHERE
        is_hopeless = is_strict and kept > 0
        if terms.discipline == PROVISIONED and not is_hopeless:
            is_hopeless = wanted_cores(job, jobs, recorded, terms) > spare_cores(
                now_s, cluster, grid, plan
            )
        if not is_hopeless and not asks_as_much(job, jobs, refused):
            node = admitted(job, now_s, reserved, jobs, cluster, recorded, grid, terms, rules)
            # Rooms only shrink until all are served.
            if node == NOWHERE and workers_of(job, recorded) == 1:
                refuse(job, jobs, refused)
        if node >= 0:
            start(job, node, now_s, jobs, cluster, recorded, ends, plan, terms)
            if node == reserved.node:  # it may run on beyond the reservation, beside it
                reserved = reservation(queue.jobs[0], now_s, jobs, cluster, recorded, ends)
            continue
        queue.jobs[kept] = job
        kept += 1
        if terms.discipline == EASY and kept == 1:
            reserved = reservation(job, now_s, jobs, cluster, recorded, ends)
    queue.length[0] = kept


@fast
def leave(queue: Queue, waiting: Integers, recorded: Recorded) -> None:
    """Keep in the queue, in their order, those of `waiting` that did not start."""
    kept = 0
    for job in waiting:
        if recorded.node[job] == NOWHERE:
            queue.jobs[kept] = job
            kept += 1
    queue.length[0] = kept


@fast
def sort(waiting: Integers, priority: Floats) -> None:
    """Put jobs in the order of their priorities, the least first; equal ones stay as they stand.

    They stand nearly so after the last time, so that each moves a few places only.
    """
    moves = 0
    for place in range(1, waiting.size):
        job, mine, at = waiting[place], priority[place], place
        while at > 0 and priority[at - 1] > mine:
            waiting[at], priority[at] = waiting[at - 1], priority[at - 1]
            at -= 1
        waiting[at], priority[at] = job, mine
        moves += place - at
        if moves > _MOVES * waiting.size:
            waiting[:] = waiting[np.argsort(priority, kind="mergesort")]
            return


@fast
def columns_of(
    waiting: Integers, now_s: float, jobs: Jobs, recorded: Recorded, terms: Terms
) -> QueueColumns:
    """Return what the rule sees of some jobs, as one queue."""
    columns = np.empty((4, 1, waiting.size))
    for place in range(waiting.size):
        job = waiting[place]
        columns[0, 0, place] = jobs.arrival_s[job] + _FIRST_SUBMIT_S
        columns[1, 0, place] = now_s - jobs.arrival_s[job]
        columns[2, 0, place] = expected_left_s(job, jobs, recorded.progress)
        columns[3, 0, place] = wanted_cores(job, jobs, recorded, terms)
    return QueueColumns(columns[0], columns[1], columns[2], columns[3])
