"""EASY backfilling: room is reserved for a queue's first job, and others start if they spare it.

Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995, node by node. For a job of several workers
the whole cluster is reserved: others start only if they are expected to end before.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import CORE_SPEED
from greensched_simulator.arrays.heaps import job_at, size_of
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.execution.running import ready_s
from greensched_simulator.engine.execution.workers import (
    all_fit,
    gpus_of,
    new_worker,
    node_of,
    throughput_of,
    wanted_workers,
    workers_of,
)
from greensched_simulator.engine.queue.gangs import place_all
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE, best_of, fits, search
from greensched_simulator.engine.state.cluster import ClusterState, with_own_room
from greensched_simulator.engine.state.gpu_shares import give_gpus
from greensched_simulator.engine.state.progress import expected_end_s, expected_left_s, leaves_s

HELD_BACK = -2  # there is room, but it is reserved
EVERYWHERE = -3  # the whole cluster is reserved
_TOGETHER_S = 1e-6  # closer ends count as equal: jobs that settled midway round differently


class Reservation(NamedTuple):
    """Where and when the first job of the queue is expected to find room."""

    node: int  # or EVERYWHERE; NOWHERE if nothing is reserved
    at_s: float
    cpu_cores: float  # free on the node then, besides those of the first job
    memory_bytes: float
    gpus: float  # 0 where GPUs are shared, since the free parts may lie on several GPUs


@fast
def nothing_reserved() -> Reservation:
    """Return an empty reservation."""
    return Reservation(NOWHERE, np.inf, 0.0, 0.0, 0.0)


@borrowing
def admitted(job: int, now_s: float, reserved: Reservation, run: Run) -> int:
    """Return the node that a job may start on now; NOWHERE or HELD_BACK if there is none.

    The job may take reserved room only if it is expected to end before, or leaves enough. The rule
    chooses among the allowed nodes. For several workers it first chooses all nodes.
    """
    recorded, terms = run.recorded, run.terms
    if reserved.node != NOWHERE and wanted_workers(job, run.jobs, recorded, terms) == 1:
        count = search_allowed(job, now_s, reserved, terms.nodes_to_score, run)
        if count <= 0:
            return HELD_BACK if count == HELD_BACK else NOWHERE
        cluster, worker = run.cluster, new_worker(job, now_s, run)
        rows, memory = cluster.found[:count], run.nodes_memory
        return best_of(cluster, rows, run.grid, terms, run.rules, worker, memory)
    node = place_all(job, now_s, run)
    if node == NOWHERE or reserved.node == NOWHERE:
        return node
    if workers_of(job, recorded) == 1:
        is_allowed = may_take(node, job, now_s, reserved, run)
    else:
        is_allowed = expected_until_s(job, node, now_s, run) <= reserved.at_s + _TOGETHER_S
    return node if is_allowed else HELD_BACK


@fast
def search_allowed(job: int, now_s: float, reserved: Reservation, most: int, run: Run) -> int:
    """Find up to `most` nodes that a job of one worker may take now, as `search`; return how many.

    Return HELD_BACK if all nodes with room are reserved.
    """
    jobs, cluster = run.jobs, run.cluster
    cores, memory_bytes, gpus = jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]
    free, is_held_back = cluster.cpu_free.copy(), False
    for node in range(free.size):
        if reserved.node not in (node, EVERYWHERE):
            continue
        if fits(cluster, node, cores, memory_bytes, gpus) and not may_take(
            node, job, now_s, reserved, run
        ):
            cluster.cpu_free[node], is_held_back = -1.0, True  # hide the node from the search
    count = search(cluster, cores, memory_bytes, gpus, most, run.terms.goes_on)
    cluster.cpu_free[:] = free
    return HELD_BACK if count == 0 and is_held_back else count


@borrowing
def may_take(node: int, job: int, now_s: float, reserved: Reservation, run: Run) -> bool:
    """Return whether a job of one worker may take a node on which it fits."""
    if reserved.node not in (node, EVERYWHERE):
        return True
    if expected_until_s(job, node, now_s, run) <= reserved.at_s + _TOGETHER_S:
        return True
    jobs = run.jobs
    return (
        node == reserved.node
        and jobs.cpu_cores[job] <= reserved.cpu_cores
        and jobs.memory_bytes[job] <= reserved.memory_bytes
        and jobs.gpus[job] <= reserved.gpus
    )


@borrowing
def expected_until_s(job: int, first: int, now_s: float, run: Run) -> float:
    """Return the expected end of a job placed now with its first worker on node `first`."""
    jobs, cluster, recorded = run.jobs, run.cluster, run.recorded
    speed = cluster.nodes[CORE_SPEED, first]
    begin_s = ready_s(job, first, now_s, run)
    for worker in range(1, workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        begin_s = max(begin_s, ready_s(job, node, now_s, run))
        speed = min(speed, cluster.nodes[CORE_SPEED, node])
    speed *= throughput_of(job, jobs, recorded, run.terms)
    done_s = begin_s + expected_left_s(job, jobs, recorded.progress) / speed
    return leaves_s(job, begin_s, done_s, jobs)


@fast
def reservation(job: int, now_s: float, run: Run) -> Reservation:
    """Return where the first job will fit at the earliest, if all jobs end as expected."""
    jobs, recorded, ends = run.jobs, run.recorded, run.events.ends
    running = np.empty(size_of(ends), np.int64)
    expected_s = np.empty(running.size)
    for place in range(running.size):
        running[place] = job_at(ends, place)
        ends_s = _expected_end_s(running[place], run)
        expected_s[place] = max(np.floor(ends_s / _TOGETHER_S + 0.5) * _TOGETHER_S, now_s)
    free = with_own_room(run.cluster)
    for place in np.argsort(expected_s, kind="mergesort"):
        other = running[place]
        for worker in range(workers_of(other, recorded)):
            node = node_of(other, worker, recorded)
            _give(other, node, gpus_of(other, worker, recorded), jobs, free)
            if workers_of(job, recorded) == 1 and fits(
                free, node, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]
            ):
                return _room_on(job, node, expected_s[place], jobs, free)
        if workers_of(job, recorded) > 1 and all_fit(job, jobs, recorded, free):
            return Reservation(EVERYWHERE, expected_s[place], 0.0, 0.0, 0.0)
    return nothing_reserved()


@inlined
def _expected_end_s(job: int, run: Run) -> float:
    """Return when a running job is expected to leave its node."""
    jobs, recorded = run.jobs, run.recorded
    if recorded.progress.shape[1] > 0:
        return expected_end_s(job, jobs, recorded.progress)
    speed, start_s = run.cluster.nodes[CORE_SPEED, recorded.node[job]], recorded.start_s[job]
    return leaves_s(job, start_s, start_s + jobs.estimate_s[job] / speed, jobs)


@borrowing
def _give(job: int, node: int, gpus: int, jobs: JobArrays, free: ClusterState) -> None:
    free.cpu_free[node] += jobs.cpu_cores[job]
    free.memory_free[node] += jobs.memory_bytes[job]
    free.gpu_free[node] += jobs.gpus[job]
    give_gpus(free.gpu_shares, node, gpus, jobs.gpus[job])


@fast
def _room_on(job: int, node: int, at_s: float, jobs: JobArrays, free: ClusterState) -> Reservation:
    are_shared = free.gpu_shares.shape[1] > 0
    return Reservation(
        node,
        at_s,
        free.cpu_free[node] - jobs.cpu_cores[job],
        free.memory_free[node] - jobs.memory_bytes[job],
        0.0 if are_shared else free.gpu_free[node] - jobs.gpus[job],
    )
