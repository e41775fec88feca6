"""Power caps of nodes, chosen again whenever a node's jobs or any grid change.

A job runs at the speed of its slowest node at that node's power cap: the GPUs' speed for jobs with
GPUs, else the CPUs'. A new power cap moves the ends of all jobs on the node. Without caps the
tables have no columns.
"""

from typing import Any

import numpy as np

from greensched_policies.costs.capping import (
    POWER_CAPS,
    CapColumns,
    cpu_power,
    cpu_speed,
    gpu_speed,
    gpu_watts,
)
from greensched_policies.costs.cost import (
    CORE_SPEED,
    CURVE_POINTS,
    GPU_IDLE_W,
    GPU_PEAK_W,
    Floats,
    WorkloadColumns,
    watts_at,
)
from greensched_simulator.arrays.grid_table import CARBON, GridTable, means_over
from greensched_simulator.arrays.heaps import job_at, restore, size_of
from greensched_simulator.compiling.compiled import compiled, fast, inlined
from greensched_simulator.engine.execution.workers import (
    node_of,
    throughput_of,
    update_speed,
    workers_of,
    workload_of,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.cluster import ClusterState, columns_of
from greensched_simulator.engine.state.power_states import SAVED_W
from greensched_simulator.engine.state.progress import (
    CHANGED,
    CPU_SPEED_AT_CAP,
    GPU_SPEED_AT_CAP,
    LEFT_S,
    MOVED,
    POWER_CAP,
    SINCE_S,
    end_s,
    settle,
    until_s,
)
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.terms import RunConfig

DAY_S = 86_400.0
_MOMENT_S = 1.0  # length of "now": its mean carbon intensity is the one now
_ROUNDING = 1e-9  # share of a speed by which a deadline may be missed

_cpu_speed, _cpu_power = compiled(cpu_speed), compiled(cpu_power)
_gpu_speed, _gpu_watts = compiled(gpu_speed), compiled(gpu_watts)
_watts_at = compiled(watts_at)


@fast
def cap_nodes(now_s: float, run: Run) -> None:
    """Choose a power cap for each node that is marked as changed, and move the ends of its jobs."""
    cluster = run.cluster
    needed, dirtiness = needed_speeds(now_s, run), dirtiness_of(run.grid, now_s)
    for node in range(cluster.cpu_free.size):
        if cluster.cap[CHANGED, node] == 0.0 or cluster.pods[node] == 0:
            cluster.cap[CHANGED, node] = 0.0
            continue
        seen = power_caps_seen(
            node, needed[:, node], dirtiness[cluster.zone[node]], cluster, run.terms
        )
        set_power_cap(now_s, node, int(np.argmin(run.rules.cap[0](seen)[0])), run)
    move_ends(run)


@inlined
def next_to_cap(cluster: ClusterState) -> int:
    """Return the first node with jobs whose power cap must be chosen; NOWHERE if there is none."""
    for node in range(cluster.cpu_free.size):
        if cluster.cap[CHANGED, node] == 1.0 and cluster.pods[node] > 0:
            return node
    return NOWHERE


@fast
def needed_speeds(now_s: float, run: Run) -> Floats:
    """Return the least CPU and GPU speed at which all jobs on changed nodes end in time, [2,N].

    The remaining work is the estimate's. The speed is -1 where no job of the kind runs, and
    infinite where one is late at any speed. Service replicas need full speed. Settles the jobs.
    """
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    needed = np.full((2, cluster.cpu_free.size), -1.0)
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if not is_on_changed(job, cluster, recorded):
            continue
        settle(job, now_s, recorded.progress)
        done_s = jobs.runtime_s[job] - recorded.progress[LEFT_S, job]
        time_s = jobs.deadline_s[job] - recorded.progress[SINCE_S, job]
        left_s = max(jobs.estimate_s[job] - done_s, 0.0)
        left_s /= throughput_of(job, jobs, recorded, run.terms)
        kind = 1 if jobs.gpus[job] > 0.0 else 0
        for worker in range(workers_of(job, recorded)):
            node = node_of(job, worker, recorded)
            expected_s = left_s / cluster.nodes[CORE_SPEED, node]
            speed = expected_s / time_s if time_s > 0.0 else np.inf
            if np.isfinite(jobs.leaves_at_s[job]):  # what a service does cannot wait
                speed = 1.0
            needed[kind, node] = max(needed[kind, node], speed)
    return needed


@inlined
def is_on_changed(job: int, cluster: ClusterState, recorded: Recorded) -> bool:
    """Return whether a node of a running job is marked as changed."""
    for worker in range(workers_of(job, recorded)):
        if cluster.cap[CHANGED, node_of(job, worker, recorded)] > 0.0:
            return True
    return False


@fast
def dirtiness_of(grid: GridTable, now_s: float) -> Floats:
    """Return each zone's carbon intensity now, relative to its forecast mean over the next day."""
    now = means_over(grid, now_s, now_s + _MOMENT_S)
    day = means_over(grid, now_s, now_s + DAY_S)
    found = np.ones(now.shape[1])
    for zone in range(found.size):
        if day[CARBON, zone] > 0.0 and not np.isnan(now[CARBON, zone]):
            found[zone] = now[CARBON, zone] / day[CARBON, zone]
    return found


@fast
def power_caps_seen(
    node: int, needed: Floats, dirtiness: float, cluster: ClusterState, terms: RunConfig
) -> CapColumns:
    """Return what a cap rule sees of one node, each column [1,L]."""
    seen = np.empty((6, 1, POWER_CAPS.size))
    now, model = columns_of(cluster, node), terms.model
    idle_w, peak_w, pue = now.gpu_idle_w, now.gpu_peak_w, now.pue
    start = int(now.curve_class) * CURVE_POINTS
    cpu_w = _watts_at(model.curve_watts, start, now.cpu_before) - model.curve_watts[start]
    busy = now.gpu_capacity - now.gpu_free
    saved_w = 0.0
    if model.empty_nodes_sleep:
        saved_w = model.curve_watts[start] + now.gpu_capacity * idle_w
    elif cluster.sleep.shape[1] > 0:
        saved_w = cluster.sleep[SAVED_W, node]
    for place in range(POWER_CAPS.size):
        power_cap = POWER_CAPS[place]
        cpu, gpu = _cpu_speed(power_cap), _gpu_speed(power_cap, idle_w, peak_w, model.gpu_ratio)
        gpu_w = _gpu_watts(power_cap, idle_w, peak_w, model.gpu_ratio)
        in_time = cpu * (1.0 + _ROUNDING) >= needed[0] and gpu * (1.0 + _ROUNDING) >= needed[1]
        seen[0, 0, place] = power_cap
        seen[1, 0, place] = min(cpu if needed[0] >= 0.0 else 1.0, gpu if needed[1] >= 0.0 else 1.0)
        seen[2, 0, place] = (cpu_w * _cpu_power(power_cap) + busy * gpu_w) * pue
        seen[3, 0, place] = saved_w * pue
        seen[4, 0, place] = 1.0 if in_time else 0.0
        seen[5, 0, place] = dirtiness
    return CapColumns(seen[0], seen[1], seen[2], seen[3], seen[4], seen[5])


@fast
def set_power_cap(now_s: float, node: int, place: int, run: Run) -> None:
    """Set a node's power cap to the one at `place`; the caller then calls `move_ends`."""
    cluster, power_cap = run.cluster, POWER_CAPS[place]
    if power_cap == cluster.cap[POWER_CAP, node]:
        cluster.cap[CHANGED, node] = 0.0
        return
    run.changes.append((now_s, node, power_cap))
    idle_w, peak_w = cluster.nodes[GPU_IDLE_W, node], cluster.nodes[GPU_PEAK_W, node]
    cluster.cap[POWER_CAP, node] = power_cap
    cluster.cap[CPU_SPEED_AT_CAP, node] = _cpu_speed(power_cap)
    cluster.cap[GPU_SPEED_AT_CAP, node] = _gpu_speed(
        power_cap, idle_w, peak_w, run.terms.model.gpu_ratio
    )
    cluster.cap[CHANGED, node] = MOVED


@fast
def move_ends(run: Run) -> None:
    """Move the ends of the settled jobs on nodes whose power cap changed; unmark all nodes."""
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    if (cluster.cap[CHANGED, :] == MOVED).any():
        for place in range(size_of(ends)):
            job = job_at(ends, place)
            if is_on_changed(job, cluster, recorded):
                update_speed(job, run)
                recorded.end_s[job] = end_s(job, jobs, recorded.progress)
                ends[place + 1, 0] = until_s(job, jobs, recorded.progress)
        restore(ends)
    cluster.cap[CHANGED, :] = 0.0


@fast
def running_on(node: int, run: Run) -> WorkloadColumns:
    """Return the summed requests of a node's jobs, for the longest of their remaining runtimes."""
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    longest_s: Any = 0.0
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        for worker in range(workers_of(job, recorded)):
            if node_of(job, worker, recorded) == node:
                longest_s = max(longest_s, workload_of(job, jobs, recorded, run.terms).runtime_s)
    now, free_cores = columns_of(cluster, node), cluster.cpu_free[node]
    return WorkloadColumns(
        now.cpu_capacity - free_cores, now.memory_capacity - now.memory_free,
        now.gpu_capacity - now.gpu_free, longest_s,
    )  # fmt: skip
