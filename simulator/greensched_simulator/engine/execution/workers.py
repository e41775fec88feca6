"""The workers of a job, which run at the same time, each on a node, with the same requests.

Most jobs have one. Their speed is that of the slowest. An elastic job has more or fewer of them
from run segment to run segment.
"""

from typing import Any

import numpy as np

from greensched_policies.costs.cost import CORE_SPEED, WorkloadColumns
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.moving import Data
from greensched_simulator.compiling.compiled import borrowing, inlined
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import fits
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.gpu_shares import how_often
from greensched_simulator.engine.state.observing import Newcomer
from greensched_simulator.engine.state.progress import (
    FULL_SPEED,
    SPEED,
    WANTED,
    expected_left_s,
    speed_of,
)
from greensched_simulator.engine.state.recorded import GPUS, NODE, Recorded
from greensched_simulator.engine.state.terms import RunConfig

_ROUNDING = 1e-9  # share of a request that sums of floats may be off by


@inlined
def workers_of(job: int, recorded: Recorded) -> int:
    """Return how many workers a job has."""
    return int(recorded.workers[job])


@inlined
def all_cores(job: int, jobs: JobArrays, recorded: Recorded) -> float:
    """Return how many cores a job's workers ask for together."""
    return float(jobs.cpu_cores[job] * recorded.workers[job])


@inlined
def scales(job: int, jobs: JobArrays, terms: RunConfig) -> bool:
    """Tell whether a job is elastic, and the policy makes use of it."""
    return bool(terms.scaling.shape[0] > 1 and jobs.scaling[job] > 0.0)


@inlined
def are_several(job: int, jobs: JobArrays, terms: RunConfig) -> bool:
    """Tell whether a job has several workers, or may have."""
    return bool(jobs.workers[job] > 1.0 or scales(job, jobs, terms))


@inlined
def throughput_of(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> float:
    """Return how fast a job's workers make it, relative to one of an elastic job; else 1."""
    if not scales(job, jobs, terms):
        return 1.0
    return float(terms.scaling[int(jobs.scaling[job]), recorded.workers[job] - 1])


@inlined
def workload_of(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> WorkloadColumns:
    """Return what each worker asks for, in numbers, for as long as is expected from now."""
    left: Any = expected_left_s(job, jobs, recorded.progress)
    left_s = left / throughput_of(job, jobs, recorded, terms)
    return WorkloadColumns(jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job], left_s)


@inlined
def newcomer(job: int, now_s: float, run: Run) -> Newcomer:
    """Return a worker of a job as one that is to have a node now."""
    jobs, recorded = run.jobs, run.recorded
    workload = workload_of(job, jobs, recorded, run.terms)
    return Newcomer(workload, data_of(job, jobs, recorded), now_s)


@inlined
def data_of(job: int, jobs: JobArrays, recorded: Recorded) -> Data:
    """Return what each worker reads, and where that lies now."""
    return Data(jobs.data_bytes[job], recorded.data_zone[job])


@inlined
def wanted_workers(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> int:
    """Return how many workers a job that waits is to have."""
    if not scales(job, jobs, terms):
        return workers_of(job, recorded)
    return int(recorded.progress[WANTED, job])


@inlined
def wanted_cores(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> float:
    """Return how many cores a job that waits asks for with all workers that it is to have."""
    return float(jobs.cpu_cores[job] * wanted_workers(job, jobs, recorded, terms))


@borrowing
def room_for(job: int, most: int, jobs: JobArrays, cluster: ClusterState) -> int:
    """Return for how many workers of a job nodes have room, up to so many."""
    cores, memory_bytes, gpus = jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job]
    found = 0
    for node in range(cluster.cpu_free.size):
        if not fits(cluster, node, cores, memory_bytes, gpus):
            continue
        times = cluster.cpu_free[node] / cores if cores > 0.0 else np.inf
        if memory_bytes > 0.0:
            times = min(times, cluster.memory_free[node] / memory_bytes)
        if gpus > 0.0:
            times = min(times, how_often(cluster.gpu_shares, node, gpus, cluster.gpu_free[node]))
        if times >= most - found:
            return most
        found += max(int(times + _ROUNDING), 1)
        if found >= most:
            return most
    return found


@borrowing
def all_fit(job: int, jobs: JobArrays, recorded: Recorded, cluster: ClusterState) -> bool:
    """Tell whether there is room for all workers of a job."""
    workers = workers_of(job, recorded)
    return room_for(job, workers, jobs, cluster) == workers


@inlined
def node_of(job: int, worker: int, recorded: Recorded) -> int:
    """Return the node of one worker of a running job, the first being 0."""
    if worker == 0:
        return int(recorded.node[job])
    return int(recorded.others[NODE, recorded.first_other[job] + worker - 1])


@inlined
def gpus_of(job: int, worker: int, recorded: Recorded) -> int:
    """Return which GPUs one worker of a running job has, a bit for each."""
    if worker == 0:
        return int(recorded.gpus[job])
    return int(recorded.others[GPUS, recorded.first_other[job] + worker - 1])


@inlined
def other_asleep_s(job: int, worker: int, recorded: Recorded) -> float:
    """Return since when the node had slept that a worker but the first woke; NaN: it was awake."""
    return float(recorded.others_asleep_s[recorded.first_other[job] + worker - 1])


@borrowing
def tell_speed(job: int, run: Run) -> None:
    """Bring a running job's speed up to what its workers and nodes have now."""
    jobs, cluster, recorded = run.jobs, run.cluster, run.recorded
    full, now = np.inf, np.inf
    for worker in range(workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        full = min(full, cluster.nodes[CORE_SPEED, node])
        now = min(now, speed_of(job, node, jobs, cluster))
    times = throughput_of(job, jobs, recorded, run.terms)
    recorded.progress[FULL_SPEED, job], recorded.progress[SPEED, job] = full * times, now * times
