"""The queue of jobs without room: the oldest job that fits starts first, as in kube-scheduler."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import Integers
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import are_several, node_of
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.run import NO_JOB, OLDEST_FIT, Run, WaitingQueue
from greensched_simulator.engine.state.choices import fits
from greensched_simulator.engine.state.refused import asks_as_much, nothing_refused, refuse


@borrowing
def wait(job: int, run: Run) -> None:
    """Append a job to the queue."""
    waiting, jobs = run.waiting, run.jobs
    waiting.behind[waiting.last[0]] = job
    waiting.last[0] = job
    waiting.least[0] = min(waiting.least[0], jobs.cpu_cores[job])
    waiting.least[1] = min(waiting.least[1], jobs.memory_bytes[job])


@borrowing
def fill_all(job: int, node: int, workers: int, now_s: float, run: Run) -> None:
    """Start waiting jobs on all nodes that a job has left; `node` is its first worker's."""
    fill(node, now_s, run)
    for worker in range(1, workers):
        fill(node_of(job, worker, run.recorded), now_s, run)


@borrowing
def fill(node: int, now_s: float, run: Run) -> None:
    """Start all waiting jobs that fit on `node`, where room became free, the oldest first.

    No other node has room for them, or they would not be waiting. Only the other workers of a job
    may find room elsewhere.
    """
    waiting, jobs, cluster = run.waiting, run.jobs, run.cluster
    ahead = waiting.behind.size - 1
    job = waiting.behind[ahead]
    cpu_cores, memory_bytes = np.inf, np.inf  # the least requests of the jobs that stay
    while job != NO_JOB:
        if not fits(cluster, node, waiting.least[0], waiting.least[1], 0.0):
            return
        behind = waiting.behind[job]
        starts = fits(cluster, node, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job])
        if starts and are_several(job, jobs, run.terms):
            starts = start_gang(job, now_s, run)
        elif starts:
            start(job, node, now_s, run)
        if starts:
            _take_out(job, ahead, waiting)
        else:
            cpu_cores = min(cpu_cores, jobs.cpu_cores[job])
            memory_bytes = min(memory_bytes, jobs.memory_bytes[job])
            ahead = job
        job = behind
    waiting.least[0], waiting.least[1] = cpu_cores, memory_bytes


@inlined
def _take_out(job: int, ahead: int, waiting: WaitingQueue) -> None:
    """Remove a job from the queue; `ahead` is the index before it."""
    behind = waiting.behind[job]
    waiting.behind[ahead] = behind
    waiting.behind[job] = NO_JOB
    if behind == NO_JOB:
        waiting.last[0] = ahead


@fast
def fill_everywhere(now_s: float, run: Run) -> None:
    """Start all waiting jobs that find room on any node, the oldest first, by the `where` rule."""
    waiting, jobs, refused = run.waiting, run.jobs, nothing_refused()
    ahead = waiting.behind.size - 1
    job = waiting.behind[ahead]
    cpu_cores, memory_bytes = np.inf, np.inf  # the least requests of the jobs that stay
    while job != NO_JOB:
        behind = waiting.behind[job]
        may_fit = not asks_as_much(job, jobs, refused)
        if may_fit and start_gang(job, now_s, run):
            _take_out(job, ahead, waiting)
        else:
            if may_fit and not are_several(job, jobs, run.terms):
                refuse(job, jobs, refused)  # free room only shrinks meanwhile
            cpu_cores = min(cpu_cores, jobs.cpu_cores[job])
            memory_bytes = min(memory_bytes, jobs.memory_bytes[job])
            ahead = job
        job = behind
    waiting.least[0], waiting.least[1] = cpu_cores, memory_bytes


@fast
def waiting_jobs(run: Run) -> Integers:
    """Return the jobs that are due but have no node, in the order in which they came or queue."""
    if run.terms.discipline != OLDEST_FIT:
        return run.queue.jobs[: run.queue.length[0]].copy()
    behind, found, count = run.waiting.behind, np.empty(run.waiting.behind.size, np.int64), 0
    job = behind[behind.size - 1]
    while job != NO_JOB:
        found[count] = job
        count, job = count + 1, behind[job]
    return found[:count].copy()
