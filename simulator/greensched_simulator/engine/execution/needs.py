"""What the jobs on nodes need of them: the speed at which all end in time, and the GPUs' watts."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs.capping import CPU, GPU, POWER_CAPS, gpu_speed, gpu_watts
from greensched_policies.costs.cost import CORE_SPEED, GPU_IDLE_W, GPU_PEAK_W, Floats
from greensched_simulator.arrays.heaps import job_at, size_of
from greensched_simulator.engine.execution.workers import (
    node_of,
    throughput_of,
    workers_of,
    workload_columns_of,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.progress import CHANGED, LEFT_S, SINCE_S, settle
from greensched_simulator.engine.state.recorded import Recorded

SPEED_ROUNDING = 1e-9  # share of a speed by which a deadline may be missed

_gpu_speed, _gpu_watts = compiled(gpu_speed), compiled(gpu_watts)


class NodeNeeds(NamedTuple):
    """What the jobs on changed nodes need of them, and what their GPUs draw at each power cap."""

    # [2,N] least CPU and GPU speed at which all of them end in time: -1 where no job needs the
    # domain, infinite where one is late at any speed. Jobs with GPUs need both.
    speed: Floats
    gpu_w: Floats  # [L,N] watts above idle of all GPUs in use
    gpu_speed: Floats  # [L,N] of the GPUs' slowest job, relative to no cap; 1 without jobs
    is_late: Floats  # [L,N] 1 if some job with GPUs does not end in time at its speed, else 0
    longest_s: Floats  # [N] expected time left of the job that runs longest on the reference core


@fast
def needs_on_nodes(now_s: float, run: Run) -> NodeNeeds:
    """Return what jobs on changed nodes need. Settles the jobs.

    The remaining work is the estimate's. Service replicas need full speed.
    """
    nodes, caps = run.cluster.cpu_free.size, POWER_CAPS.size
    needs = NodeNeeds(
        np.full((2, nodes), -1.0), np.zeros((caps, nodes)), np.ones((caps, nodes)),
        np.zeros((caps, nodes)), np.zeros(nodes),
    )  # fmt: skip
    _fill_needs(now_s, run, needs)
    return needs


@fast
def _fill_needs(now_s: float, run: Run, needs: NodeNeeds) -> None:
    jobs, cluster, recorded, ends = run.jobs, run.cluster, run.recorded, run.events.ends
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if not is_on_marked(job, 1.0, cluster, recorded):
            continue
        settle(job, now_s, recorded.progress)
        done_s = jobs.runtime_s[job] - recorded.progress[LEFT_S, job]
        time_s = jobs.deadline_s[job] - recorded.progress[SINCE_S, job]
        left_s = max(jobs.estimate_s[job] - done_s, 0.0)
        left_s /= throughput_of(job, jobs, recorded, run.terms)
        longest_s = float(workload_columns_of(job, jobs, recorded, run.terms).runtime_s)
        for worker in range(workers_of(job, recorded)):
            node = node_of(job, worker, recorded)
            needs.longest_s[node] = max(needs.longest_s[node], longest_s)
            expected_s = left_s / cluster.nodes[CORE_SPEED, node]
            speed = expected_s / time_s if time_s > 0.0 else np.inf
            if np.isfinite(jobs.leaves_at_s[job]):  # what a service does cannot wait
                speed = 1.0
            needs.speed[CPU, node] = max(needs.speed[CPU, node], speed)
            if jobs.gpus[job] > 0.0:
                _add_gpus(job, node, speed, run, needs)


@fast
def _add_gpus(job: int, node: int, speed: float, run: Run, needs: NodeNeeds) -> None:
    """Add the GPUs of a job that needs a speed to a node's needs: each job draws its own watts."""
    jobs, nodes = run.jobs, run.cluster.nodes
    idle_w, peak_w, gpu_ratio = (
        nodes[GPU_IDLE_W, node],
        nodes[GPU_PEAK_W, node],
        jobs.gpu_ratio[job],
    )
    needs.speed[GPU, node] = max(needs.speed[GPU, node], speed)
    wanted_w = _gpu_watts(POWER_CAPS[0], idle_w, peak_w, gpu_ratio)
    for place in range(POWER_CAPS.size):
        of_gpu = _gpu_watts(POWER_CAPS[place], idle_w, peak_w, gpu_ratio)
        capped = 1.0
        if of_gpu < wanted_w:
            capped = _gpu_speed(POWER_CAPS[place], idle_w, peak_w, gpu_ratio)
        needs.gpu_w[place, node] += jobs.gpus[job] * of_gpu
        needs.gpu_speed[place, node] = min(needs.gpu_speed[place, node], capped)
        if capped * (1.0 + SPEED_ROUNDING) < speed:
            needs.is_late[place, node] = 1.0


@inlined
def is_on_marked(job: int, least: float, cluster: ClusterState, recorded: Recorded) -> bool:
    """Return whether a domain of a running job's nodes is marked with at least `least`."""
    for worker in range(workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        if cluster.cap[CHANGED + CPU, node] >= least or cluster.cap[CHANGED + GPU, node] >= least:
            return True
    return False
