"""Power caps of nodes, chosen again whenever a node's jobs or any grid change.

A node's CPUs and its GPUs are two domains, each with a power cap. A job runs at the speed of its
slowest node at that node's power caps. A new power cap moves the ends of all jobs on the node.
Without caps the tables have no columns.
"""

import numpy as np

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
)
from greensched_policies.costs.cost import (
    CURVE_CLASS,
    CURVE_POINTS,
    GPU_CAPACITY,
    GPU_IDLE_W,
    PUE,
    Floats,
)
from greensched_simulator.arrays.heaps import job_at, restore, size_of
from greensched_simulator.engine.execution.cap_signals import CapSignals, cap_signals
from greensched_simulator.engine.execution.learned_caps import learned_cap, show_power_caps
from greensched_simulator.engine.execution.needs import (
    SPEED_ROUNDING,
    NodeNeeds,
    is_on_marked,
    needs_on_nodes,
)
from greensched_simulator.engine.execution.workers import (
    update_speed,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.power_states import SAVED_W
from greensched_simulator.engine.state.progress import (
    CHANGED,
    MOVED,
    end_s,
    until_s,
)

_cpu_speed, _cpu_power = compiled(cpu_speed), compiled(cpu_power)
_frequency_within = compiled(frequency_within)


@fast
def cap_nodes(now_s: float, run: Run) -> None:
    """Choose the power caps of each node that is marked as changed, and move its jobs' ends."""
    cluster, is_learned = run.cluster, run.rules.cap_net.sizes.size > 0
    if not _is_any_marked(1.0, cluster):
        return
    needs, signals = needs_on_nodes(now_s, run), cap_signals(now_s, run, is_learned)
    for node in range(cluster.cpu_free.size):
        for domain in (CPU, GPU):
            if not is_to_cap(domain, node, cluster):
                cluster.cap[CHANGED + domain, node] = 0.0
                continue
            look_at_power_caps(domain, node, signals, needs, run)
            place = NOWHERE
            if is_learned:
                show_power_caps(domain, node, signals, needs, run)
                place = learned_cap(run)
            if place == NOWHERE:
                place = int(np.argmin(run.rules.cap[0](as_columns(run.caps_memory.seen))[0]))
            set_power_cap(now_s, domain, node, place, run)
    move_ends(run)


@inlined
def _is_any_marked(least: float, cluster: ClusterState) -> bool:
    """Return whether a domain is marked with at least `least`; most events change none."""
    for domain in (CHANGED + CPU, CHANGED + GPU):
        for node in range(cluster.cap.shape[1]):
            if cluster.cap[domain, node] >= least:
                return True
    return False


@inlined
def is_to_cap(domain: int, node: int, cluster: ClusterState) -> bool:
    """Return whether a domain's power cap must be chosen: it is marked, and jobs run on it."""
    if cluster.cap[CHANGED + domain, node] != 1.0 or cluster.pods[node] == 0:
        return False
    busy = cluster.nodes[GPU_CAPACITY, node] - cluster.gpu_free[node]
    return bool(domain == CPU or busy > SPEED_ROUNDING)


@inlined
def next_to_cap(cluster: ClusterState) -> int:
    """Return 2 · node + domain of the first power cap that must be chosen; NOWHERE if none must."""
    for node in range(cluster.cpu_free.size):
        for domain in (CPU, GPU):
            if is_to_cap(domain, node, cluster):
                return 2 * node + domain
    return NOWHERE


@fast
def look_at_power_caps(
    domain: int, node: int, signals: CapSignals, needs: NodeNeeds, run: Run
) -> None:
    """Fill in what a cap rule sees of a node's domain."""
    cluster, cpu_w, seen = run.cluster, _cpu_watts(node, run), run.caps_memory.seen
    pue, saved_w = cluster.nodes[PUE, node], _kept_awake_w(node, run)
    for place in range(POWER_CAPS.size):
        frequency, at = cluster.cap[CPU, node], place
        if domain == CPU:
            frequency = _frequency_at(POWER_CAPS[place], cpu_w, node, run)
            at = int(np.argmax(POWER_CAPS == cluster.cap[GPU, node]))
            surely = _cpu_speed(frequency, HIGHEST_SENSITIVITY)
            is_late = surely * (1.0 + SPEED_ROUNDING) < needs.speed[CPU, node]
        else:
            is_late = needs.is_late[place, node] == 1.0
        seen[0, place] = POWER_CAPS[place]
        expected = _cpu_speed(frequency, EXPECTED_SENSITIVITY)
        seen[1, place] = min(expected, needs.gpu_speed[at, node])
        seen[2, place] = (cpu_w * _cpu_power(frequency) + needs.gpu_w[at, node]) * pue
        seen[3, place] = saved_w * pue
        seen[4, place] = 0.0 if is_late else 1.0
        seen[5, place] = signals.dirtiness[cluster.zone[node]]


@fast
def as_columns(seen: Floats) -> CapColumns:
    """Return what a cap rule sees, [6,L], as a rule takes it."""
    return CapColumns(seen[0:1], seen[1:2], seen[2:3], seen[3:4], seen[4:5], seen[5:6])


@fast
def _cpu_watts(node: int, run: Run) -> float:
    """Return the watts above idle that a node's CPUs draw now at their highest frequency."""
    curve_watts, cluster = run.terms.model.curve_watts, run.cluster
    start = int(cluster.nodes[CURVE_CLASS, node]) * CURVE_POINTS
    return float(cluster.busy_w[node] - curve_watts[start])


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
    run.changes.append((now_s, node, cluster.cap[CPU, node], cluster.cap[GPU, node]))
    cluster.cap[CHANGED + domain, node] = MOVED


@fast
def move_ends(run: Run) -> None:
    """Move the ends of the settled jobs on nodes whose power cap changed; unmark all nodes."""
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    if _is_any_marked(MOVED, cluster):
        for place in range(size_of(ends)):
            job = job_at(ends, place)
            if is_on_marked(job, MOVED, cluster, recorded):
                update_speed(job, run)
                recorded.end_s[job] = end_s(job, jobs, recorded.progress)
                ends[place + 1, 0] = until_s(job, jobs, recorded.progress)
        restore(ends)
    cluster.cap[CHANGED:, :] = 0.0
