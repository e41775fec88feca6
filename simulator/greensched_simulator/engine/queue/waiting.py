"""Jobs that wait for room, the oldest first, and whichever fits: what kube-scheduler does."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import Heap
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.compiling.compiled import borrowing, fast
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import are_several, node_of
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.state.choices import Rules, Terms, fits
from greensched_simulator.engine.state.cluster import Cluster
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.starts import Plan

NOBODY = -1  # behind the last job


class Waiting(NamedTuple):
    """A queue of jobs whose time has come but that found no room, in the order in which they came.

    A place in `behind` is a job, the one past the last job is the queue's head.
    """

    behind: Integers  # [J+1] who stands behind; NOBODY behind the last one
    last: Integers  # [1] where the next one queues
    least: Floats  # [2] no job in the queue asks for fewer cores, nor for fewer bytes


@fast
def nobody_waiting(jobs: int) -> Waiting:
    """Return an empty queue with room for all jobs."""
    return Waiting(np.full(jobs + 1, NOBODY), np.array([jobs]), np.full(2, np.inf))


@borrowing
def wait(job: int, waiting: Waiting, jobs: Jobs) -> None:
    """Let a job queue behind all others."""
    waiting.behind[waiting.last[0]] = job
    waiting.last[0] = job
    waiting.least[0] = min(waiting.least[0], jobs.cpu_cores[job])
    waiting.least[1] = min(waiting.least[1], jobs.memory_bytes[job])


@borrowing
def fill_all(
    job: int,
    node: int,
    workers: int,
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
    """Start others on all nodes that a job of so many workers has left, `node` the first one's."""
    fill(node, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
    for worker in range(1, workers):
        other = node_of(job, worker, recorded)
        fill(other, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)


@borrowing
def fill(
    node: int,
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
    """Start on `node`, where room came free, whatever waited and fits, the oldest first.

    No other node has room for them, or they would not be waiting; but the other workers of a job
    may find some elsewhere.
    """
    ahead = waiting.behind.size - 1
    job = waiting.behind[ahead]
    cpu_cores, memory_bytes = np.inf, np.inf  # the least that those ask for who stay
    while job != NOBODY:
        if not fits(cluster, node, waiting.least[0], waiting.least[1], 0.0):
            return
        behind = waiting.behind[job]
        starts = fits(cluster, node, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job])
        if starts and are_several(job, jobs, terms):
            starts = start_gang(job, now_s, jobs, cluster, recorded, ends, grid, plan, terms, rules)
        elif starts:
            start(job, node, now_s, jobs, cluster, recorded, ends, plan, terms)
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
