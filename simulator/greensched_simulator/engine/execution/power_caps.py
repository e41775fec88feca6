"""Power caps of nodes, chosen again whenever a node's jobs or any grid change.

A node's CPUs and its GPUs are two domains, each with a power cap. A job runs at the speed of its
slowest node at that node's power caps. A new power cap moves the ends of all jobs on the node.
Without caps the tables have no columns.
"""

from typing import Any

import numpy as np

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs.capping import (
    CPU,
    EXPECTED_SENSITIVITY,
    GPU,
    HIGHEST_SENSITIVITY,
    POWER_CAPS,
    CapColumns,
    cpu_power,
    cpu_speed,
    frequency_within,
    gpu_speed,
    gpu_watts,
)
from greensched_policies.costs.cost import (
    CORE_SPEED,
    CURVE_CLASS,
    CURVE_POINTS,
    GPU_CAPACITY,
    GPU_IDLE_W,
    GPU_PEAK_W,
    Floats,
    WorkloadColumns,
    watts_at,
)
from greensched_policies.encoding.timing import relative_to_day
from greensched_policies.kernel.grid_means import means_over
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable
from greensched_simulator.arrays.heaps import job_at, restore, size_of
from greensched_simulator.engine.execution.workers import (
    node_of,
    throughput_of,
    update_speed,
    workers_of,
    workload_columns_of,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.cluster import ClusterState, columns_of
from greensched_simulator.engine.state.power_states import SAVED_W
from greensched_simulator.engine.state.progress import (
    CHANGED,
    GPU_SPEED_AT_CAP,
    LEFT_S,
    MOVED,
    SINCE_S,
    end_s,
    settle,
    until_s,
)
from greensched_simulator.engine.state.recorded import Recorded

_MOMENT_S = 1.0  # length of "now": its mean carbon intensity is the one now
_ROUNDING = 1e-9  # share of a speed by which a deadline may be missed

_cpu_speed, _cpu_power = compiled(cpu_speed), compiled(cpu_power)
_frequency_within = compiled(frequency_within)
_gpu_speed, _gpu_watts = compiled(gpu_speed), compiled(gpu_watts)
_watts_at = compiled(watts_at)
_relative_to_day = compiled(relative_to_day)


@fast
def cap_nodes(now_s: float, run: Run) -> None:
    """Choose the power caps of each node that is marked as changed, and move its jobs' ends."""
    cluster = run.cluster
    needed, dirtiness = needed_speeds(now_s, run), dirtiness_of(run.grid, now_s)
    for node in range(cluster.cpu_free.size):
        for domain in (CPU, GPU):
            if not is_to_cap(domain, node, cluster):
                cluster.cap[CHANGED + domain, node] = 0.0
                continue
            dirty = dirtiness[cluster.zone[node]]
            seen = power_caps_seen(domain, node, needed[:, node], dirty, run)
            place = int(np.argmin(run.rules.cap[0](seen)[0]))
            set_power_cap(now_s, domain, node, place, run)
    move_ends(run)


@inlined
def is_to_cap(domain: int, node: int, cluster: ClusterState) -> bool:
    """Return whether a domain's power cap must be chosen: it is marked, and jobs run on it."""
    if cluster.cap[CHANGED + domain, node] != 1.0 or cluster.pods[node] == 0:
        return False
    busy = cluster.nodes[GPU_CAPACITY, node] - cluster.gpu_free[node]
    return bool(domain == CPU or busy > _ROUNDING)


@inlined
def next_to_cap(cluster: ClusterState) -> int:
    """Return 2 · node + domain of the first power cap that must be chosen; NOWHERE if none must."""
    for node in range(cluster.cpu_free.size):
        for domain in (CPU, GPU):
            if is_to_cap(domain, node, cluster):
                return 2 * node + domain
    return NOWHERE


@fast
def needed_speeds(now_s: float, run: Run) -> Floats:
    """Return the least CPU and GPU speed at which all jobs on changed nodes end in time, [2,N].

    Jobs with GPUs need both. The remaining work is the estimate's. The speed is -1 where no job
    needs the domain, and infinite where one is late at any speed. Service replicas need full speed.
    Settles the jobs.
    """
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    needed = np.full((2, cluster.cpu_free.size), -1.0)
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if not is_on_marked(job, 1.0, cluster, recorded):
            continue
        settle(job, now_s, recorded.progress)
        done_s = jobs.runtime_s[job] - recorded.progress[LEFT_S, job]
        time_s = jobs.deadline_s[job] - recorded.progress[SINCE_S, job]
        left_s = max(jobs.estimate_s[job] - done_s, 0.0)
        left_s /= throughput_of(job, jobs, recorded, run.terms)
        for worker in range(workers_of(job, recorded)):
            node = node_of(job, worker, recorded)
            expected_s = left_s / cluster.nodes[CORE_SPEED, node]
            speed = expected_s / time_s if time_s > 0.0 else np.inf
            if np.isfinite(jobs.leaves_at_s[job]):  # what a service does cannot wait
                speed = 1.0
            needed[CPU, node] = max(needed[CPU, node], speed)
            if jobs.gpus[job] > 0.0:
                needed[GPU, node] = max(needed[GPU, node], speed)
    return needed


@inlined
def is_on_marked(job: int, least: float, cluster: ClusterState, recorded: Recorded) -> bool:
    """Return whether a domain of a running job's nodes is marked with at least `least`."""
    for worker in range(workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        if cluster.cap[CHANGED + CPU, node] >= least or cluster.cap[CHANGED + GPU, node] >= least:
            return True
    return False


@fast
def dirtiness_of(grid: GridTable, now_s: float) -> Floats:
    """Return each zone's carbon intensity now, relative to its forecast mean over the next day."""
    now, day = _now_and_day(grid, now_s)
    found = np.ones(now.shape[1])
    for zone in range(found.size):
        if day[CARBON, zone] > 0.0 and not np.isnan(now[CARBON, zone]):
            found[zone] = now[CARBON, zone] / day[CARBON, zone]
    return found


@fast
def dearness_of(grid: GridTable, now_s: float) -> Floats:
    """Return each zone's price now, relative to its forecast mean over the next day."""
    now, day = _now_and_day(grid, now_s)
    found = np.ones(now.shape[1])
    for zone in range(found.size):
        found[zone] = _relative_to_day(now[PRICE, zone], day[PRICE, zone])
    return found


@fast
def _now_and_day(grid: GridTable, now_s: float) -> tuple[Floats, Floats]:
    """Return the zones' carbon and price now, and their forecast means over the next day, [2,Z]."""
    now = means_over(grid, now_s, now_s + _MOMENT_S)
    return now, means_over(grid, now_s, now_s + SECONDS_PER_DAY)


@fast
def power_caps_seen(
    domain: int, node: int, needed: Floats, dirtiness: float, run: Run
) -> CapColumns:
    """Return what a cap rule sees of a node's domain, each column [1,L]."""
    seen = np.empty((6, 1, POWER_CAPS.size))
    cluster, model = run.cluster, run.terms.model
    now, saved_w = columns_of(cluster, node), _kept_awake_w(node, run)
    idle_w, peak_w, cpu_w = now.gpu_idle_w, now.gpu_peak_w, _cpu_watts(node, run)
    busy = now.gpu_capacity - now.gpu_free if needed[GPU] >= 0.0 else 0.0
    for place in range(POWER_CAPS.size):
        frequency, gpu_cap = cluster.cap[CPU, node], cluster.cap[GPU, node]
        if domain == CPU:
            frequency = _frequency_at(POWER_CAPS[place], cpu_w, node, run)
        else:
            gpu_cap = POWER_CAPS[place]
        gpu = _gpu_speed(gpu_cap, idle_w, peak_w, model.gpu_ratio) if busy > 0.0 else 1.0
        gpu_w = busy * _gpu_watts(gpu_cap, idle_w, peak_w, model.gpu_ratio)
        surely = _cpu_speed(frequency, HIGHEST_SENSITIVITY) if domain == CPU else gpu
        seen[0, 0, place] = POWER_CAPS[place]
        seen[1, 0, place] = min(_cpu_speed(frequency, EXPECTED_SENSITIVITY), gpu)
        seen[2, 0, place] = (cpu_w * _cpu_power(frequency) + gpu_w) * now.pue
        seen[3, 0, place] = saved_w * now.pue
        seen[4, 0, place] = 1.0 if surely * (1.0 + _ROUNDING) >= needed[domain] else 0.0
        seen[5, 0, place] = dirtiness
    return CapColumns(seen[0], seen[1], seen[2], seen[3], seen[4], seen[5])


@fast
def _cpu_watts(node: int, run: Run) -> float:
    """Return the watts above idle that a node's CPUs draw now at their highest frequency."""
    curve_watts, cluster = run.terms.model.curve_watts, run.cluster
    start = int(cluster.nodes[CURVE_CLASS, node]) * CURVE_POINTS
    return float(_watts_at(curve_watts, start, cluster.busy[node]) - curve_watts[start])


@fast
def _kept_awake_w(node: int, run: Run) -> float:
    """Return the idle watts of a node that end with its work, because the node then sleeps."""
    cluster, model, nodes = run.cluster, run.terms.model, run.cluster.nodes
    if model.empty_nodes_sleep:
        start = int(nodes[CURVE_CLASS, node]) * CURVE_POINTS
        gpus_w = nodes[GPU_CAPACITY, node] * nodes[GPU_IDLE_W, node]
        return float(model.curve_watts[start] + gpus_w)
    return float(cluster.sleep[SAVED_W, node]) if cluster.sleep.shape[1] > 0 else 0.0


@fast
def _frequency_at(power_cap: float, cpu_w: float, node: int, run: Run) -> float:
    """Return the share of the highest frequency at which a node's CPUs run under a power cap.

    It is the power cap itself, unless that limits the watts of CPU packages: then CPUs that draw
    `cpu_w` at their highest frequency run as fast as these watts allow.
    """
    if not run.terms.caps_package_power or cpu_w <= 0.0:
        return power_cap
    curve_watts = run.terms.model.curve_watts
    start = int(run.cluster.nodes[CURVE_CLASS, node]) * CURVE_POINTS
    full_w = curve_watts[start + CURVE_POINTS - 1] - curve_watts[start]
    return float(_frequency_within(power_cap * full_w / cpu_w))


@fast
def set_power_cap(now_s: float, domain: int, node: int, place: int, run: Run) -> None:
    """Set a domain's power cap to the one at `place`; the caller then calls `move_ends`."""
    cluster, power_cap = run.cluster, POWER_CAPS[place]
    if domain == CPU:
        power_cap = _frequency_at(power_cap, _cpu_watts(node, run), node, run)
    if power_cap == cluster.cap[domain, node]:
        cluster.cap[CHANGED + domain, node] = 0.0
        return
    cluster.cap[domain, node] = power_cap
    if domain == GPU:
        idle_w, peak_w = cluster.nodes[GPU_IDLE_W, node], cluster.nodes[GPU_PEAK_W, node]
        cluster.cap[GPU_SPEED_AT_CAP, node] = _gpu_speed(
            power_cap, idle_w, peak_w, run.terms.model.gpu_ratio
        )
    run.changes.append((now_s, node, cluster.cap[CPU, node], cluster.cap[GPU, node]))
    cluster.cap[CHANGED + domain, node] = MOVED


@fast
def move_ends(run: Run) -> None:
    """Move the ends of the settled jobs on nodes whose power cap changed; unmark all nodes."""
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    if (cluster.cap[CHANGED:, :] == MOVED).any():
        for place in range(size_of(ends)):
            job = job_at(ends, place)
            if is_on_marked(job, MOVED, cluster, recorded):
                update_speed(job, run)
                recorded.end_s[job] = end_s(job, jobs, recorded.progress)
                ends[place + 1, 0] = until_s(job, jobs, recorded.progress)
        restore(ends)
    cluster.cap[CHANGED:, :] = 0.0


@fast
def running_on(node: int, run: Run) -> WorkloadColumns:
    """Return the summed requests of a node's jobs, for the longest of their remaining runtimes."""
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    longest_s: Any = 0.0
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        for worker in range(workers_of(job, recorded)):
            if node_of(job, worker, recorded) == node:
                longest_s = max(
                    longest_s, workload_columns_of(job, jobs, recorded, run.terms).runtime_s
                )
    now, free_cores = columns_of(cluster, node), cluster.cpu_free[node]
    return WorkloadColumns(
        now.cpu_capacity - free_cores, now.memory_capacity - now.memory_free,
        now.gpu_capacity - now.gpu_free, longest_s,
    )  # fmt: skip
