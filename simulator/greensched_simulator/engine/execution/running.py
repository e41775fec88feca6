"""What happens to a job on its node: it starts, it leaves, and both are recorded."""

import numpy as np

from greensched_policies.costs.cost import (
    CORE_SPEED,
    CPU_CAPACITY,
    GPU_CAPACITY,
    MEMORY_CAPACITY,
    Floats,
)
from greensched_simulator.arrays.heaps import Heap, push
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.arrays.moving import moving_s
from greensched_simulator.compiling.compiled import borrowing, inlined
from greensched_simulator.engine.execution.workers import (
    all_cores,
    boards_of,
    data_of,
    node_of,
    tell_speed,
    throughput_of,
    workers_of,
)
from greensched_simulator.engine.state.boards import give_boards, take_boards
from greensched_simulator.engine.state.choices import Terms
from greensched_simulator.engine.state.cluster import Cluster, is_empty
from greensched_simulator.engine.state.power_states import awake_from_s, fall_empty, wake
from greensched_simulator.engine.state.progress import (
    CHANGED,
    FULL_SPEED,
    LEFT_S,
    PAUSE_AT_S,
    SINCE_S,
    STOP_S,
    WANTED,
    WORK_S,
    expected_left_s,
    leaves_s,
    speed_of,
    until_s,
)
from greensched_simulator.engine.state.progress import end_s as end_s_of
from greensched_simulator.engine.state.recorded import BOARDS, Recorded
from greensched_simulator.engine.state.starts import Plan, is_kept, keep


@borrowing
def start(
    job: int,
    node: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    plan: Plan,
    terms: Terms,
) -> None:
    """Place a job on a node now, where it runs, or goes on, once that is awake and has its data.

    The nodes of its other workers are told of before, and all run once all can.
    """
    _note_placing(job, cluster.busy[node], recorded.placings)
    recorded.node[job], recorded.placed_s[job] = node, now_s
    recorded.node_asleep_s[job] = _wake_for(node, now_s, cluster)
    recorded.boards[job] = take_room(job, node, jobs, cluster, terms)
    begin_s = ready_s(job, node, now_s, jobs, cluster, recorded, terms)
    if workers_of(job, recorded) > 1:
        begin_s = max(begin_s, _start_others(job, now_s, jobs, cluster, recorded, terms))
    if recorded.progress.shape[1] == 0:
        expected_left = expected_left_s(job, jobs, recorded.progress)
        done_s = begin_s + jobs.runtime_s[job] / speed_of(job, node, jobs, cluster)
        look_s = end_s = leaves_s(job, begin_s, done_s, jobs)
        ends_s = begin_s + expected_left / cluster.nodes[CORE_SPEED, node]
        expected_s = leaves_s(job, begin_s, ends_s, jobs)
    else:
        done = recorded.progress
        tell_speed(job, jobs, cluster, recorded, terms)
        done[SINCE_S, job], done[STOP_S, job] = begin_s, 0.0
        done[WORK_S, job] = done[LEFT_S, job] - jobs.startup_s[job]
        # However many workers it has, starting up takes as long.
        startup_s = jobs.startup_s[job] * throughput_of(job, jobs, recorded, terms)
        done[LEFT_S, job] = done[WORK_S, job] + startup_s
        expected_left = expected_left_s(job, jobs, done)
        # Who had to queue runs for a while, whatever was planned.
        done[PAUSE_AT_S, job] = max(done[PAUSE_AT_S, job], begin_s + terms.slot_s)
        if workers_of(job, recorded) < done[WANTED, job]:  # there may be room for all of them then
            done[PAUSE_AT_S, job] = begin_s + terms.slot_s
        end_s, look_s = end_s_of(job, jobs, done), until_s(job, jobs, done)
        ends_s = leaves_s(job, begin_s, begin_s + expected_left / done[FULL_SPEED, job], jobs)
        expected_s = min(ends_s, done[PAUSE_AT_S, job])
    recorded.start_s[job], recorded.end_s[job] = begin_s, end_s
    _move_plan(job, begin_s, expected_s, cluster.zone[node], jobs, recorded, plan, terms)
    push(ends, look_s, job)


@borrowing
def _start_others(
    job: int, now_s: float, jobs: Jobs, cluster: Cluster, recorded: Recorded, terms: Terms
) -> float:
    """Place a job's other workers on their nodes; return when the last of these can run."""
    first, begin_s = recorded.first_other[job], now_s
    for worker in range(1, workers_of(job, recorded)):
        node, place = node_of(job, worker, recorded), first + worker - 1
        _note_placing(job, cluster.busy[node], recorded.placings)
        recorded.others_asleep_s[place] = _wake_for(node, now_s, cluster)
        recorded.others[BOARDS, place] = take_room(job, node, jobs, cluster, terms)
        begin_s = max(begin_s, ready_s(job, node, now_s, jobs, cluster, recorded, terms))
    return begin_s


@inlined
def ready_s(
    job: int,
    node: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    terms: Terms,
) -> float:
    """Return when a worker that is placed now can run: its node is awake and has its data."""
    data = data_of(job, jobs, recorded)
    awake_s = awake_from_s(cluster.sleep, node, now_s)
    return awake_s + moving_s(terms.links, data, cluster.zone[node])


@inlined
def _wake_for(node: int, now_s: float, cluster: Cluster) -> float:
    """Wake a node for what is about to be placed, and return since when it slept; NaN: awake."""
    if cluster.cap.shape[1] > 0:
        cluster.cap[CHANGED, node] = 1.0
    return wake(cluster.sleep, node, is_empty(cluster, node), now_s)


@borrowing
def take_room(job: int, node: int, jobs: Jobs, cluster: Cluster, terms: Terms) -> int:
    """Take the room of one worker on a node; return which boards it has, a bit for each."""
    cluster.pods[node] += 1
    cluster.cpu_free[node] -= jobs.cpu_cores[job]
    cluster.memory_free[node] -= jobs.memory_bytes[job]
    cluster.gpu_free[node] -= jobs.gpus[job]
    refresh(node, cluster, terms)
    return take_boards(cluster.boards, node, jobs.gpus[job])


@borrowing
def give_room(job: int, node: int, boards: int, jobs: Jobs, cluster: Cluster, terms: Terms) -> None:
    """Give back the room of one worker on a node."""
    cluster.pods[node] -= 1
    if cluster.pods[node] == 0:  # sums of floats never quite cancel
        cluster.cpu_free[node] = cluster.nodes[CPU_CAPACITY, node]
        cluster.memory_free[node] = cluster.nodes[MEMORY_CAPACITY, node]
        cluster.gpu_free[node] = cluster.nodes[GPU_CAPACITY, node]
    else:
        cluster.cpu_free[node] += jobs.cpu_cores[job]
        cluster.memory_free[node] += jobs.memory_bytes[job]
        cluster.gpu_free[node] += jobs.gpus[job]
    give_boards(cluster.boards, node, boards, jobs.gpus[job])
    refresh(node, cluster, terms)


@borrowing
def free_plan(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Free what the plan keeps for a running job from now on: it stops sooner than thought."""
    expected_s = recorded.kept_until_s[job]
    if expected_s > now_s + terms.slot_s:
        begin_s = np.ceil(now_s / terms.slot_s) * terms.slot_s
        zone = cluster.zone[recorded.node[job]]
        keep(plan, zone, terms.slot_s, begin_s, expected_s, -recorded.kept_cores[job])
        recorded.kept_until_s[job] = begin_s


@borrowing
def leave_nodes(
    job: int, now_s: float, jobs: Jobs, cluster: Cluster, recorded: Recorded, terms: Terms
) -> None:
    """Free what a job that has just stopped held of its nodes."""
    for worker in range(workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        if cluster.cap.shape[1] > 0:
            cluster.cap[CHANGED, node] = 1.0
        give_room(job, node, boards_of(job, worker, recorded), jobs, cluster, terms)
        if cluster.pods[node] == 0:
            fall_empty(cluster.sleep, node, now_s)


@borrowing
def _move_plan(
    job: int,
    runs_from_s: float,
    expected_s: float,
    zone: int,
    jobs: Jobs,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Let the plan follow what happens: the job runs from then on, maybe elsewhere, as expected."""
    if not is_kept(plan):
        return
    begin_s, end_s = recorded.kept_from_s[job], recorded.kept_until_s[job]
    cores, kept = all_cores(job, jobs, recorded), recorded.kept_cores[job]
    is_elsewhere = recorded.planned_zone[job] != zone or kept != cores
    if begin_s == runs_from_s and end_s == expected_s and not is_elsewhere:
        return
    keep(plan, recorded.planned_zone[job], terms.slot_s, begin_s, end_s, -kept)
    keep(plan, zone, terms.slot_s, runs_from_s, expected_s, cores)
    recorded.kept_from_s[job], recorded.kept_until_s[job] = runs_from_s, expected_s
    recorded.kept_cores[job], recorded.planned_zone[job] = cores, zone


@inlined
def _note_placing(job: int, busy_before: float, placings: Floats) -> None:
    """Note a worker's placing for who looks at it; what finds no more room is not noted.

    There is none where nobody looks, and for as many as there are workers where somebody does.
    """
    rows = placings.shape[0]
    if rows > 0 and int(placings[0, 0]) + 1 < rows:
        placings[0, 0] += 1.0
        placings[int(placings[0, 0]), 0] = job
        placings[int(placings[0, 0]), 1] = busy_before


@borrowing
def refresh(node: int, cluster: Cluster, terms: Terms) -> None:
    """Bring the utilisation that decisions see up to what is free now."""
    capacity = cluster.nodes[CPU_CAPACITY, node]
    busy = (capacity - cluster.cpu_free[node]) * terms.model.utilisation_ratio / capacity
    cluster.busy[node] = min(max(busy, 0.0), 1.0)
