"""Which nodes start for pending work: a group's nodes, as many as the work needs.

A worker without a node is a pending pod. Work that finds room on nodes that are up or start needs
no other node. For the rest, each group says how many of its nodes it takes, and the group that
wastes least is chosen: Cluster Autoscaler's default since its pull request 7631 (--expander
least-waste; before, random). It starts nodes of one group at a scan.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast
from greensched_policies.costs.cost import (
    CPU_CAPACITY,
    MEMORY_CAPACITY,
    Integers,
)
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.execution.workers import wanted_cores, wanted_workers
from greensched_simulator.engine.queue.provisioned import spare_cores
from greensched_simulator.engine.queue.waiting import waiting_jobs
from greensched_simulator.engine.run import PROVISIONED, Run
from greensched_simulator.engine.state.autoscaler import (
    LAST_ADDED_S,
    NEXT_READY_S,
    SPAN,
    UP_FROM_S,
    is_coming,
)
from greensched_simulator.engine.state.choices import NOWHERE, fits
from greensched_simulator.engine.state.cluster import AWAY, ClusterState, with_own_room
from greensched_simulator.engine.state.gpu_shares import take_gpus
from greensched_simulator.engine.state.refused import asks_as_much, nothing_refused, refuse


@fast
def scale_up(now_s: float, run: Run) -> tuple[bool, bool]:
    """Start nodes for pending work.

    Return whether any was started, and whether any pending work fits on nodes that are up or start
    already.
    """
    autoscaler, pending = run.autoscaler, pending_workers(now_s, run)
    if pending.size == 0:
        return False, False
    room = with_own_room(run.cluster)
    _add_coming(room, run)
    left = place_first_fit(pending, room, run.jobs)
    groups = autoscaler.groups
    nodes, waste = np.zeros(groups.min_nodes.size, np.int64), np.full(groups.min_nodes.size, np.inf)
    for group in range(nodes.size):
        nodes[group], waste[group] = needed_of(group, left, room, run)
    has_room, least = left.size < pending.size, waste.min()
    if least == np.inf:
        return False, has_room
    alike = np.flatnonzero(waste == least)
    draw = groups.draws[autoscaler.scale_ups[0] % groups.draws.size]
    chosen = alike[int(draw * alike.size)]
    _start_nodes(chosen, nodes[chosen], now_s, run)
    return True, has_room


@fast
def pending_workers(now_s: float, run: Run) -> Integers:
    """Return the jobs that wait for room, each once for every worker; under a quota, its share.

    The quota lets jobs start in their order, and at least one.
    """
    waiting, jobs, recorded, terms = waiting_jobs(run), run.jobs, run.recorded, run.terms
    spare = np.inf
    if terms.discipline == PROVISIONED:
        spare = spare_cores(now_s, run.cluster, run.grid, run.plan)
        waiting = waiting[:1] if spare == np.inf else waiting
    workers = np.zeros(waiting.size, np.int64)
    for place in range(waiting.size):
        spare -= wanted_cores(waiting[place], jobs, recorded, terms)
        if spare < 0.0:
            break
        workers[place] = wanted_workers(waiting[place], jobs, recorded, terms)
    return np.repeat(waiting, workers)


@borrowing
def _add_coming(room: ClusterState, run: Run) -> None:
    """Add the room of the nodes that start."""
    for node in range(run.autoscaler.nodes.shape[1]):
        if is_coming(node, run.autoscaler):
            room.cpu_free[node] = room.nodes[CPU_CAPACITY, node]


@fast
def place_first_fit(pending: Integers, room: ClusterState, jobs: JobArrays) -> Integers:
    """Take the room of each pending worker on the first node that has it; return the others."""
    left, count, refused = np.empty(pending.size, np.int64), 0, nothing_refused()
    for job in pending:
        if asks_as_much(job, jobs, refused):
            node = NOWHERE
        else:
            node = _take_first(job, room, jobs)
            if node == NOWHERE:
                refuse(job, jobs, refused)
        if node == NOWHERE:
            left[count] = job
            count += 1
    return left[:count]


@borrowing
def _take_first(job: int, room: ClusterState, jobs: JobArrays) -> int:
    """Take a worker's room on the first node that has it; return the node, or NOWHERE."""
    for node in range(room.cpu_free.size):
        if _take(job, node, room, jobs):
            return node
    return NOWHERE


@borrowing
def _take(job: int, node: int, room: ClusterState, jobs: JobArrays) -> bool:
    """Take a worker's room on a node; return False if it has none."""
    if not fits(room, node, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]):
        return False
    room.cpu_free[node] -= jobs.cpu_cores[job]
    room.memory_free[node] -= jobs.memory_bytes[job]
    room.gpu_free[node] -= jobs.gpus[job]
    take_gpus(room.gpu_shares, node, jobs.gpus[job])
    return True


@fast
def needed_of(group: int, left: Integers, room: ClusterState, run: Run) -> tuple[int, float]:
    """Return how many nodes of a group the work needs, and what share of them it would waste.

    First fit, the largest request first (Cluster Autoscaler's --estimator binpacking). The waste is
    the share of cores that stays free plus that of memory (its expander/waste/waste.go); infinity
    if no node helps.
    """
    jobs, autoscaler = run.jobs, run.autoscaler
    is_off = (autoscaler.groups.group == group) & (autoscaler.nodes[UP_FROM_S] == np.inf)
    new, refused = np.flatnonzero(is_off), nothing_refused()
    count, cores, memory_bytes = 0, 0.0, 0.0
    if new.size == 0:
        return 0, np.inf
    all_cores, all_bytes = room.nodes[CPU_CAPACITY, new[0]], room.nodes[MEMORY_CAPACITY, new[0]]
    size = jobs.cpu_cores[left] / all_cores + jobs.memory_bytes[left] / all_bytes
    for job in left[np.argsort(-size, kind="mergesort")]:
        if asks_as_much(job, jobs, refused):
            continue
        place = _take_new(job, new, count, room, jobs)
        if place == NOWHERE:
            refuse(job, jobs, refused)
            continue
        count = max(count, place + 1)
        cores, memory_bytes = cores + jobs.cpu_cores[job], memory_bytes + jobs.memory_bytes[job]
    if count == 0:
        return 0, np.inf
    return count, 2.0 - cores / (count * all_cores) - memory_bytes / (count * all_bytes)


@borrowing
def _take_new(job: int, new: Integers, count: int, room: ClusterState, jobs: JobArrays) -> int:
    """Take a worker's room on one of the first `count` new nodes, or on one more.

    Return the node's place among the new ones, or NOWHERE.
    """
    for place in range(count):
        if _take(job, new[place], room, jobs):
            return place
    if count == new.size:
        return NOWHERE
    node = new[count]
    room.cpu_free[node] = room.nodes[CPU_CAPACITY, node]
    if _take(job, node, room, jobs):
        return count
    room.cpu_free[node] = AWAY
    return NOWHERE


@fast
def _start_nodes(group: int, count: int, now_s: float, run: Run) -> None:
    """Start the first `count` nodes of a group that are off."""
    autoscaler, off = run.autoscaler, run.off
    groups, nodes, times_s = autoscaler.groups, autoscaler.nodes, autoscaler.times_s
    for node in range(nodes.shape[1]):
        if count > 0 and groups.group[node] == group and nodes[UP_FROM_S, node] == np.inf:
            count -= 1
            ready_s = now_s + groups.wake_s[node]
            nodes[UP_FROM_S, node] = ready_s
            times_s[NEXT_READY_S] = min(times_s[NEXT_READY_S], ready_s)
            span = int(nodes[SPAN, node])
            off[span] = (node, off[span][1], now_s)
    times_s[LAST_ADDED_S] = now_s
    autoscaler.scale_ups[0] += 1
