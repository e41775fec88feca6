"""Nodes that fail: their jobs stop at once, and the nodes are away for a while.

Unsaved work is lost. A job that cannot be suspended begins again. If the node of one worker fails,
all workers of the job stop. A stopped job looks for room at once. A node that sleeps or wakes does
not fail.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.cost import CPU_CAPACITY, Integers
from greensched_simulator.arrays.heaps import Heap, job_at, push, restore, size_of
from greensched_simulator.arrays.nodes import Outages
from greensched_simulator.engine.execution.running import add_part, leave_nodes, parts_of, refresh
from greensched_simulator.engine.execution.runs import clear_agenda
from greensched_simulator.engine.execution.suspending import note_run_segments
from greensched_simulator.engine.execution.workers import (
    keep_until,
    kept_until_of,
    node_of,
    workers_of,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.cluster import (
    AWAY,
    ClusterState,
    is_away,
    is_empty,
)
from greensched_simulator.engine.state.power_states import (
    ASLEEP_FROM_S,
    awake_from_s,
    fall_empty,
    is_asleep,
)
from greensched_simulator.engine.state.progress import STOP_S, lose_unsaved_work
from greensched_simulator.engine.state.recorded import Recorded


@borrowing
def back_s(outages: Outages, come: int, node: int) -> float:
    """Return when a node that has just failed comes back; search from event `come` on."""
    while outages.node[come] != node:
        come += 1
    return float(outages.at_s[come])


@inlined
def can_fail(node: int, now_s: float, cluster: ClusterState) -> bool:
    """Return whether a node can fail: it is awake, and jobs may use it."""
    if is_away(cluster, node):
        return False
    if cluster.sleep.shape[1] == 0:
        return True
    sleeps = is_asleep(cluster.sleep, node, is_empty(cluster, node), now_s)
    return not sleeps and awake_from_s(cluster.sleep, node, now_s) <= now_s


@fast
def fail(node: int, now_s: float, run: Run) -> Integers:
    """Take a node away, and stop all jobs with a worker on it.

    Return the other nodes on which this makes room.
    """
    cluster, recorded, terms = run.cluster, run.recorded, run.terms
    freed = [node for _ in range(0)]
    for job in jobs_on(node, recorded, run.events.ends):
        for worker in range(workers_of(job, recorded)):
            freed.append(node_of(job, worker, recorded))
        # The plan of a job that a GreenPolicy has paused is that of its resumption.
        is_paused = terms.may_pause and recorded.progress[STOP_S, job] > 0.0
        if not is_paused:
            _forget_plan(job, now_s, run)
        if terms.may_suspend:
            clear_agenda(job, run)
        leave_nodes(job, now_s, run)
        if recorded.progress.shape[1] > 0:
            may_suspend = terms.may_suspend and not terms.may_reject
            lose_unsaved_work(job, now_s, may_suspend, run.jobs, recorded.progress)
        note_run_segments(job, now_s, run)
        if not is_paused:
            push(run.events.starts, now_s, job)
    cluster.cpu_free[node] = AWAY
    refresh(node, cluster, terms)
    if cluster.sleep.shape[1] > 0:
        cluster.sleep[ASLEEP_FROM_S, node] = np.inf
    return np.array([other for other in freed if other != node])


@borrowing
def _forget_plan(job: int, now_s: float, run: Run) -> None:
    """Free the room that the plan keeps for a job's current or next run segment."""
    recorded = run.recorded
    for part in range(parts_of(job, run)):
        until_s = kept_until_of(job, part, recorded)
        add_part(job, part, recorded.kept_from_s[job], until_s, -1.0, run)
        keep_until(job, part, now_s, recorded)
    recorded.kept_from_s[job] = now_s
    recorded.kept_cores[job] = recorded.kept_gpus[job] = 0.0


@fast
def come_back(node: int, now_s: float, run: Run) -> None:
    """Return a node to service; it is empty."""
    cluster = run.cluster
    cluster.cpu_free[node] = cluster.nodes[CPU_CAPACITY, node]
    refresh(node, cluster, run.terms)
    fall_empty(cluster.sleep, node, now_s)


@fast
def jobs_on(node: int, recorded: Recorded, ends: Heap) -> Integers:
    """Return the jobs with a worker on a node, and remove them from `ends`."""
    found, kept = np.empty(size_of(ends), np.int64), 0
    count = 0
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if _is_on(job, node, recorded):
            found[count] = job
            count += 1
        else:
            ends[kept + 1] = ends[place + 1]
            kept += 1
    ends[0, 0] = kept
    restore(ends)
    return np.sort(found[:count])


@borrowing
def _is_on(job: int, node: int, recorded: Recorded) -> bool:
    for worker in range(workers_of(job, recorded)):
        if node_of(job, worker, recorded) == node:
            return True
    return False
