"""Starting a job on its nodes and taking it off them; both are recorded."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, inlined
from greensched_policies.costs.cost import (
    CORE_SPEED,
    CPU_CAPACITY,
    GPU_CAPACITY,
    MEMORY_CAPACITY,
    Floats,
    watts_before,
)
from greensched_policies.kernel.plan import is_kept, keep, keep_more
from greensched_simulator.arrays.heaps import push
from greensched_simulator.arrays.moving import moving_s
from greensched_simulator.engine.execution.workers import (
    all_cores,
    all_gpus,
    data_of,
    gpus_of,
    keep_until,
    kept_until_of,
    node_of,
    throughput_of,
    update_speed,
    workers_of,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.cluster import ClusterState, columns_of, is_empty
from greensched_simulator.engine.state.gpu_shares import give_gpus, take_gpus
from greensched_simulator.engine.state.power_states import awake_from_s, fall_empty, wake
from greensched_simulator.engine.state.progress import (
    FULL_SPEED,
    KNOWN_S,
    LEFT_S,
    PAUSE_AT_S,
    SINCE_S,
    STOP_S,
    WANTED,
    WORK_S,
    expected_left_s,
    leaves_s,
    mark_changed,
    speed_of,
    until_s,
)
from greensched_simulator.engine.state.progress import end_s as end_s_of
from greensched_simulator.engine.state.recorded import GPUS
from greensched_simulator.engine.state.terms import RunConfig

_watts_before = compiled(watts_before, inlined)


@borrowing
def start(job: int, node: int, now_s: float, run: Run) -> None:
    """Place a job's first worker on a node now, and its other workers on their recorded nodes.

    All workers run, or go on, once every node is awake and has the data.
    """
    jobs, cluster, recorded = run.jobs, run.cluster, run.recorded
    _note_placing(job, cluster.busy[node], recorded.placings)
    recorded.node[job], recorded.placed_s[job] = node, now_s
    recorded.node_asleep_s[job] = _wake_for(node, now_s, cluster)
    recorded.gpus[job] = take_room(job, node, run)
    begin_s = ready_s(job, node, now_s, run)
    if workers_of(job, recorded) > 1:
        begin_s = max(begin_s, _start_others(job, now_s, run))
    if recorded.progress.shape[1] == 0:
        expected_left = expected_left_s(job, jobs, recorded.progress)
        done_s = begin_s + jobs.runtime_s[job] / speed_of(job, node, jobs, cluster)
        look_s = end_s = leaves_s(job, begin_s, done_s, jobs)
        ends_s = begin_s + expected_left / cluster.nodes[CORE_SPEED, node]
        expected_s = _expected_end_s(job, begin_s, ends_s, run)
    else:
        expected_s = _begin_run_segment(job, begin_s, run)
        end_s = end_s_of(job, jobs, recorded.progress)
        look_s = until_s(job, jobs, recorded.progress)
    recorded.start_s[job], recorded.end_s[job] = begin_s, end_s
    _move_plan(job, begin_s, expected_s, cluster.zone[node], run)
    push(run.events.ends, look_s, job)


@borrowing
def _begin_run_segment(job: int, begin_s: float, run: Run) -> float:
    """Set the progress of a job that runs from `begin_s` on; return its expected end or pause."""
    jobs, recorded, slot_s = run.jobs, run.recorded, run.terms.slot_s
    done = recorded.progress
    update_speed(job, run)
    done[SINCE_S, job], done[STOP_S, job] = begin_s, 0.0
    done[WORK_S, job] = done[LEFT_S, job] - jobs.startup_s[job]
    # The startup takes equally long with any number of workers.
    startup_s = jobs.startup_s[job] * throughput_of(job, jobs, recorded, run.terms)
    done[LEFT_S, job] = done[WORK_S, job] + startup_s
    # A job that had to queue runs for at least a slot, even if its planned pause is due.
    done[PAUSE_AT_S, job] = max(done[PAUSE_AT_S, job], begin_s + slot_s)
    if workers_of(job, recorded) < done[WANTED, job]:  # in a slot there may be room for all
        done[PAUSE_AT_S, job] = begin_s + slot_s
    left_s = expected_left_s(job, jobs, done)
    if run.terms.may_pause:  # as the operator knows it
        left_s = max(jobs.estimate_s[job] - done[KNOWN_S, job], 0.0)
    done_s = begin_s + left_s / done[FULL_SPEED, job]
    return min(_expected_end_s(job, begin_s, done_s, run), float(done[PAUSE_AT_S, job]))


@inlined
def _expected_end_s(job: int, begin_s: float, done_s: float, run: Run) -> float:
    """Return when the plan expects a job to leave that runs from `begin_s` and is done at `done_s`.

    A GreenPolicy's plan has replicas stay to its end: as the operator, it does not know when an
    autoscaler will remove them.
    """
    if run.terms.may_hold and run.jobs.leaves_at_s[job] < np.inf:
        return float(max(begin_s, run.plan.cores.shape[1] * run.terms.slot_s))
    return leaves_s(job, begin_s, done_s, run.jobs)


@borrowing
def _start_others(job: int, now_s: float, run: Run) -> float:
    """Place a job's other workers on their nodes; return when the last of them can run."""
    cluster, recorded = run.cluster, run.recorded
    first, begin_s = recorded.first_other[job], now_s
    for worker in range(1, workers_of(job, recorded)):
        node, place = node_of(job, worker, recorded), first + worker - 1
        _note_placing(job, cluster.busy[node], recorded.placings)
        recorded.others_asleep_s[place] = _wake_for(node, now_s, cluster)
        recorded.others[GPUS, place] = take_room(job, node, run)
        begin_s = max(begin_s, ready_s(job, node, now_s, run))
    return begin_s


@inlined
def ready_s(job: int, node: int, now_s: float, run: Run) -> float:
    """Return when a worker placed now can run: its node is awake and has the data."""
    cluster, data = run.cluster, data_of(job, run.jobs, run.recorded)
    awake_s = awake_from_s(cluster.sleep, node, now_s)
    return awake_s + moving_s(run.terms.links, data, cluster.zone[node])


@inlined
def _wake_for(node: int, now_s: float, cluster: ClusterState) -> float:
    """Wake a node for a new worker; return since when it slept, NaN if it was awake."""
    mark_changed(node, cluster)
    return wake(cluster.sleep, node, is_empty(cluster, node), now_s)


@borrowing
def take_room(job: int, node: int, run: Run) -> int:
    """Take the room of one worker on a node; return a bit mask of its GPUs."""
    jobs, cluster = run.jobs, run.cluster
    cluster.pods[node] += 1
    cluster.cpu_free[node] -= jobs.cpu_cores[job]
    cluster.memory_free[node] -= jobs.memory_bytes[job]
    cluster.gpu_free[node] -= jobs.gpus[job]
    refresh(node, cluster, run.terms)
    return take_gpus(cluster.gpu_shares, node, jobs.gpus[job])


@borrowing
def give_room(job: int, node: int, gpus: int, run: Run) -> None:
    """Give back the room of one worker on a node."""
    jobs, cluster = run.jobs, run.cluster
    cluster.pods[node] -= 1
    if cluster.pods[node] == 0:  # sums of floats do not cancel exactly
        cluster.cpu_free[node] = cluster.nodes[CPU_CAPACITY, node]
        cluster.memory_free[node] = cluster.nodes[MEMORY_CAPACITY, node]
        cluster.gpu_free[node] = cluster.nodes[GPU_CAPACITY, node]
    else:
        cluster.cpu_free[node] += jobs.cpu_cores[job]
        cluster.memory_free[node] += jobs.memory_bytes[job]
        cluster.gpu_free[node] += jobs.gpus[job]
    give_gpus(cluster.gpu_shares, node, gpus, jobs.gpus[job])
    refresh(node, cluster, run.terms)


@borrowing
def free_plan(job: int, now_s: float, run: Run) -> None:
    """Free what the plan still keeps for a job that stops.

    Where a GreenPolicy holds jobs, the plan no longer counts it in the present slot either.
    """
    recorded, slot_s = run.recorded, run.terms.slot_s
    for part in range(parts_of(job, run)):
        until_s = kept_until_of(job, part, recorded)
        if run.terms.may_hold and until_s > now_s // slot_s * slot_s:
            add_part(job, part, now_s // slot_s * slot_s, until_s, -1.0, run)
        elif not run.terms.may_hold and until_s > now_s + slot_s:
            begin_s = np.ceil(now_s / slot_s) * slot_s
            add_part(job, part, begin_s, until_s, -1.0, run)
            keep_until(job, part, begin_s, recorded)
    if run.terms.may_hold:
        recorded.kept_cores[job] = recorded.kept_gpus[job] = 0.0


@inlined
def parts_of(job: int, run: Run) -> int:
    """Return in how many parts the plan counts a running job: each worker by itself.

    Where jobs may be suspended, all workers are one part, on the node of the first.
    """
    return 1 if run.terms.may_suspend else workers_of(job, run.recorded)


@borrowing
def add_part(job: int, part: int, begin_s: float, end_s: float, sign: float, run: Run) -> None:
    """Add the room that the plan keeps for a part of a running job, in its node's zone.

    `sign` is 1, or -1 to remove it.
    """
    recorded, share = run.recorded, sign / parts_of(job, run)
    cores, gpus = share * recorded.kept_cores[job], share * recorded.kept_gpus[job]
    zone = run.cluster.zone[node_of(job, part, recorded)]
    add_room(job, zone, begin_s, end_s, cores, gpus, run)


@borrowing
def add_room(
    job: int, zone: int, begin_s: float, end_s: float, cores: float, gpus: float, run: Run
) -> None:
    """Add a job's room in a zone to the plan from `begin_s` to `end_s`; negative: remove it.

    Its memory is that of as many workers as request these cores.
    """
    keep(run.plan, zone, run.terms.slot_s, begin_s, end_s, cores)
    memory_bytes = run.jobs.memory_bytes[job] * (cores / run.jobs.cpu_cores[job])
    keep_more(run.plan, zone, run.terms.slot_s, begin_s, end_s, gpus, memory_bytes)


@borrowing
def leave_nodes(job: int, now_s: float, run: Run) -> None:
    """Free the room of a job that has just stopped on all its nodes."""
    cluster, recorded = run.cluster, run.recorded
    for worker in range(workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        mark_changed(node, cluster)
        give_room(job, node, gpus_of(job, worker, recorded), run)
        if cluster.pods[node] == 0:
            fall_empty(cluster.sleep, node, now_s)


@borrowing
def _move_plan(job: int, runs_from_s: float, expected_s: float, zone: int, run: Run) -> None:
    """Move a job's room in the plan to its real start, expected end, zones, cores and GPUs.

    `zone` is that of its first node.
    """
    recorded = run.recorded
    if not is_kept(run.plan):
        return
    begin_s, end_s = recorded.kept_from_s[job], recorded.kept_until_s[job]
    cores, kept = all_cores(job, run.jobs, recorded), recorded.kept_cores[job]
    parts = parts_of(job, run)
    is_elsewhere = recorded.planned_zone[job] != zone or kept != cores or parts > 1
    if begin_s == runs_from_s and end_s == expected_s and not is_elsewhere:
        return
    gpus, kept_gpus = all_gpus(job, run.jobs, recorded), recorded.kept_gpus[job]
    if kept + kept_gpus > 0.0:
        add_room(job, recorded.planned_zone[job], begin_s, end_s, -kept, -kept_gpus, run)
    recorded.kept_from_s[job], recorded.kept_cores[job] = runs_from_s, cores
    recorded.kept_gpus[job], recorded.planned_zone[job] = gpus, zone
    for part in range(parts):
        until_s = expected_s
        if parts > 1:  # each as if it ran at the speed of its own node
            speed = run.cluster.nodes[CORE_SPEED, node_of(job, part, recorded)]
            slowest = recorded.progress[FULL_SPEED, job]
            until_s = runs_from_s + (expected_s - runs_from_s) * slowest / speed
        keep_until(job, part, until_s, recorded)
        add_part(job, part, runs_from_s, until_s, 1.0, run)


@inlined
def _note_placing(job: int, busy_before: float, placings: Floats) -> None:
    """Record a worker's placing while `placings` has a free row.

    The table has no rows in runs that need none, and a row for each worker in environments.
    """
    rows = placings.shape[0]
    if rows > 0 and int(placings[0, 0]) + 1 < rows:
        placings[0, 0] += 1.0
        placings[int(placings[0, 0]), 0] = job
        placings[int(placings[0, 0]), 1] = busy_before


@borrowing
def refresh(node: int, cluster: ClusterState, terms: RunConfig) -> None:
    """Update the utilisation and the watts that decisions see from the free cores."""
    capacity = cluster.nodes[CPU_CAPACITY, node]
    busy = (capacity - cluster.cpu_free[node]) * terms.model.utilisation_ratio / capacity
    cluster.busy[node] = min(max(busy, 0.0), 1.0)
    cluster.busy_w[node] = _watts_before(columns_of(cluster, node), terms.model)
