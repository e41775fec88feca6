"""Jobs that wait for room, the oldest first, and whichever fits: what kube-scheduler does."""

import numpy as np

from greensched_simulator.compiling.compiled import borrowing
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import are_several, node_of
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.run import NOBODY, Run
from greensched_simulator.engine.state.choices import fits


@borrowing
def wait(job: int, run: Run) -> None:
    """Let a job queue behind all others."""
    waiting, jobs = run.waiting, run.jobs
    waiting.behind[waiting.last[0]] = job
    waiting.last[0] = job
    waiting.least[0] = min(waiting.least[0], jobs.cpu_cores[job])
    waiting.least[1] = min(waiting.least[1], jobs.memory_bytes[job])


@borrowing
def fill_all(job: int, node: int, workers: int, now_s: float, run: Run) -> None:
    """Start others on all nodes that a job of so many workers has left, `node` the first one's."""
    fill(node, now_s, run)
    for worker in range(1, workers):
        fill(node_of(job, worker, run.recorded), now_s, run)


@borrowing
def fill(node: int, now_s: float, run: Run) -> None:
    """Start on `node`, where room came free, whatever waited and fits, the oldest first.

    No other node has room for them, or they would not be waiting; but the other workers of a job
    may find some elsewhere.
    """
    waiting, jobs, cluster = run.waiting, run.jobs, run.cluster
    ahead = waiting.behind.size - 1
    job = waiting.behind[ahead]
    cpu_cores, memory_bytes = np.inf, np.inf  # the least that those ask for who stay
    while job != NOBODY:
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
            waiting.behind[job] = NOBODY
            if behind == NOBODY:
                waiting.last[0] = ahead
        else:
            cpu_cores = min(cpu_cores, jobs.cpu_cores[job])
            memory_bytes = min(memory_bytes, jobs.memory_bytes[job])
            ahead = job
        job = behind
    waiting.least[0], waiting.least[1] = cpu_cores, memory_bytes
