"""Queues ordered by a rule; the discipline says which jobs may start before earlier ones.

Where agents choose nodes, serving stops at each job whose node they choose.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.queue_columns import QueueColumns
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import (
    all_fit,
    scales,
    wanted_cores,
    wanted_workers,
    workers_of,
)
from greensched_simulator.engine.queue.batch_placement import place_together
from greensched_simulator.engine.queue.provisioned import spare_cores
from greensched_simulator.engine.queue.reservations import admitted, reservation
from greensched_simulator.engine.queue.turns import (
    ARE_AGENTS,
    IN_LINE,
    IS_ASKED,
    PLACE,
    begin,
    reserve,
    reserved_in,
)
from greensched_simulator.engine.run import EASY, PROVISIONED, STRICT_ORDER, TOGETHER, Queue, Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.progress import expected_left_s
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.refused import asks_as_much, refuse
from greensched_simulator.engine.state.terms import RunConfig

_FIRST_SUBMIT_S = 1.0  # submit time of a job that arrives at 0: some rules take its logarithm
_MOVES = 8  # mean moves of a job in a nearly sorted queue, beyond which merge sort takes over


@inlined
def join(queue: Queue, job: int) -> None:
    """Append a job to the waiting jobs."""
    queue.jobs[queue.length[0]] = job
    queue.length[0] += 1


@fast
def serve_queue(now_s: float, run: Run) -> int:
    """Start the jobs that the rule and the discipline let start now; all due jobs have joined.

    Where agents choose nodes, return the next job that may have one. The caller starts it, or not,
    and calls again. Return NOWHERE when all have had their turn.
    """
    queue, turns = run.queue, run.queue.turns
    counts = turns.counts
    if counts[IN_LINE] == 0:
        waiting = queue.jobs[: queue.length[0]]
        seen = queue_columns_of(waiting, now_s, run.jobs, run.recorded, run.terms)
        line_up(queue, run.rules.order[0](seen)[0])
        if run.terms.discipline == TOGETHER:
            place_together(now_s, turns.line[: counts[IN_LINE]], run)
            let_wait(queue, run.recorded)
    while counts[PLACE] < counts[IN_LINE]:
        job = turns.line[counts[PLACE]]
        if counts[IS_ASKED] == 0 and may_try(job, now_s, run):
            if is_for_agents(job, run):
                counts[IS_ASKED] = 1
                return int(job)
            try_to_start(job, now_s, run)
        counts[IS_ASKED] = 0
        counts[PLACE] += 1
        finish_turn(job, now_s, run)
    counts[IN_LINE] = 0
    return NOWHERE


@fast
def line_up(queue: Queue, priority: Floats) -> None:
    """Order all waiting jobs for their turns by priority, the least first."""
    waiting = queue.turns.line[: priority.size]
    waiting[:] = queue.jobs[: priority.size]
    sort(waiting, priority)
    begin(queue.turns, priority.size)
    queue.length[0] = 0


@borrowing
def let_wait(queue: Queue, recorded: Recorded) -> None:
    """Return all jobs whose turn has not come to the queue, in their order, unless they run."""
    counts = queue.turns.counts
    for place in range(counts[PLACE], counts[IN_LINE]):
        job = queue.turns.line[place]
        if recorded.node[job] == NOWHERE:
            join(queue, job)
    counts[PLACE] = counts[IN_LINE]


@inlined
def may_try(job: int, now_s: float, run: Run) -> bool:
    """Return whether a job may look for room in its turn, and might find it."""
    jobs = run.jobs
    if run.terms.discipline == PROVISIONED:
        cores = wanted_cores(job, jobs, run.recorded, run.terms)
        if cores > spare_cores(now_s, run.cluster, run.grid, run.plan):
            return False
    return not asks_as_much(job, jobs, run.queue.turns.refused)


@inlined
def is_for_agents(job: int, run: Run) -> bool:
    """Return whether agents choose the nodes of a job in its turn.

    They do not for several workers without room for all, nor for several workers while room is
    reserved: only with all nodes known is it clear whether such a job may start.
    """
    turns, jobs, recorded, terms = run.queue.turns, run.jobs, run.recorded, run.terms
    if turns.counts[ARE_AGENTS] == 0:
        return False
    if wanted_workers(job, jobs, recorded, terms) == 1:
        return True
    if reserved_in(turns).node != NOWHERE:
        return False
    return scales(job, jobs, terms) or all_fit(job, jobs, recorded, run.cluster)


@inlined
def try_to_start(job: int, now_s: float, run: Run) -> None:
    """Start a job on the best nodes, by the rule, that it may have now, if there are any."""
    turns = run.queue.turns
    node = admitted(job, now_s, reserved_in(turns), run)
    if node >= 0:
        start(job, node, now_s, run)
    # Free room only shrinks while the queue is served.
    elif node == NOWHERE and workers_of(job, run.recorded) == 1:
        refuse(job, run.jobs, turns.refused)


@inlined
def finish_turn(job: int, now_s: float, run: Run) -> None:
    """Return a job that did not start in its turn to the queue; reserve room for the first one."""
    queue, recorded, discipline = run.queue, run.recorded, run.terms.discipline
    if recorded.node[job] == NOWHERE:
        join(queue, job)
        if discipline in (STRICT_ORDER, PROVISIONED):
            let_wait(queue, recorded)
        is_to_reserve = discipline == EASY and queue.length[0] == 1
    else:  # on the reserved node, it may run beyond the time of the reservation
        is_to_reserve = recorded.node[job] == reserved_in(queue.turns).node
    if is_to_reserve:
        reserve(reservation(queue.jobs[0], now_s, run), queue.turns)


@fast
def sort(waiting: Integers, priority: Floats) -> None:
    """Sort jobs by their priorities, the least first; the sort is stable.

    The last serving left them nearly sorted, so that each moves a few places only.
    """
    moves = 0
    for place in range(1, waiting.size):
        job, own_priority, at = waiting[place], priority[place], place
        while at > 0 and priority[at - 1] > own_priority:
            waiting[at], priority[at] = waiting[at - 1], priority[at - 1]
            at -= 1
        waiting[at], priority[at] = job, own_priority
        moves += place - at
        if moves > _MOVES * waiting.size:
            waiting[:] = waiting[np.argsort(priority, kind="mergesort")]
            return


@fast
def queue_columns_of(
    waiting: Integers, now_s: float, jobs: JobArrays, recorded: Recorded, terms: RunConfig
) -> QueueColumns:
    """Return what the order rule sees of the waiting jobs, as one queue."""
    columns = np.empty((4, 1, waiting.size))
    for place in range(waiting.size):
        job = waiting[place]
        columns[0, 0, place] = jobs.arrival_s[job] + _FIRST_SUBMIT_S
        columns[1, 0, place] = now_s - jobs.arrival_s[job]
        columns[2, 0, place] = expected_left_s(job, jobs, recorded.progress)
        columns[3, 0, place] = wanted_cores(job, jobs, recorded, terms)
    return QueueColumns(columns[0], columns[1], columns[2], columns[3])
