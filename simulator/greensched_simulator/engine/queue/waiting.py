"""The queue of jobs without room: the oldest job that fits starts first, as in kube-scheduler."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import are_several, node_of
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.run import NO_JOB, Run
from greensched_simulator.engine.state.choices import fits


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
            waiting.behind[ahead] = behind
            waiting.behind[job] = NO_JOB
            if behind == NO_JOB:
                waiting.last[0] = ahead
        else:
            cpu_cores = min(cpu_cores, jobs.cpu_cores[job])
            memory_bytes = min(memory_bytes, jobs.memory_bytes[job])
            ahead = job
        job = behind
    waiting.least[0], waiting.least[1] = cpu_cores, memory_bytes
