"""The workers of a job: they run at the same time, each on a node, with equal requests.

Most jobs have one. All run at the speed of the slowest. The number of an elastic job's workers
changes between run segments.
"""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import borrowing, inlined
from greensched_policies.costs.cost import CORE_SPEED, WorkloadColumns
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.moving import Data
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE, fits
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.gpu_shares import how_often
from greensched_simulator.engine.state.observing import NewWorker
from greensched_simulator.engine.state.progress import (
    FULL_SPEED,
    SPEED,
    WANTED,
    expected_left_s,
    speed_of,
)
from greensched_simulator.engine.state.recorded import GPUS, NODE, Recorded
from greensched_simulator.engine.state.terms import RunConfig

_ROUNDING = 1e-9  # rounding error of sums of floats, as a share of a request


@inlined
def workers_of(job: int, recorded: Recorded) -> int:
    """Return how many workers a job has."""
    return int(recorded.workers[job])


@inlined
def all_cores(job: int, jobs: JobArrays, recorded: Recorded) -> float:
    """Return how many cores a job's workers ask for together."""
    return float(jobs.cpu_cores[job] * recorded.workers[job])


@inlined
def all_gpus(job: int, jobs: JobArrays, recorded: Recorded) -> float:
    """Return how many GPUs a job's workers ask for together."""
    return float(jobs.gpus[job] * recorded.workers[job])


@inlined
def scales(job: int, jobs: JobArrays, terms: RunConfig) -> bool:
    """Return whether a job is elastic and the policy changes its number of workers."""
    return bool(terms.scaling.shape[0] > 1 and jobs.scaling[job] > 0.0)


@inlined
def are_several(job: int, jobs: JobArrays, terms: RunConfig) -> bool:
    """Return whether a job has or may have several workers."""
    return bool(jobs.workers[job] > 1.0 or scales(job, jobs, terms))


@inlined
def throughput_of(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> float:
    """Return an elastic job's speed relative to one worker; 1 for other jobs."""
    if not scales(job, jobs, terms):
        return 1.0
    return float(terms.scaling[int(jobs.scaling[job]), recorded.workers[job] - 1])


@inlined
def workload_columns_of(
    job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig
) -> WorkloadColumns:
    """Return the requests of each worker, as numbers, and its expected remaining runtime."""
    left: Any = expected_left_s(job, jobs, recorded.progress)
    left_s = left / throughput_of(job, jobs, recorded, terms)
    return WorkloadColumns(jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job], left_s)


@inlined
def new_worker(job: int, now_s: float, run: Run) -> NewWorker:
    """Return a worker of a job that needs a node now."""
    jobs, recorded = run.jobs, run.recorded
    workload = workload_columns_of(job, jobs, recorded, run.terms)
    zone = planned_zone_of(job, now_s, run) if run.terms.may_hold else NOWHERE
    left_s = jobs.deadline_s[job] - now_s
    data = data_of(job, jobs, recorded)
    return NewWorker(workload, data, now_s, left_s, zone, jobs.gpu_ratio[job])


@inlined
def planned_zone_of(job: int, now_s: float, run: Run) -> int:
    """Return the zone in which a GreenPolicy planned a job that runs now; NOWHERE: it did not.

    A run may begin a slot before its time, and until its planned end, as the extender has it.
    """
    recorded = run.recorded
    if recorded.kept_cores[job] + recorded.kept_gpus[job] == 0.0:
        return NOWHERE
    is_its_time = (
        recorded.kept_from_s[job] - run.terms.slot_s <= now_s <= recorded.kept_until_s[job]
    )
    return recorded.planned_zone[job] if is_its_time else NOWHERE


@inlined
def data_of(job: int, jobs: JobArrays, recorded: Recorded) -> Data:
    """Return the data that each worker reads, and where it lies now."""
    return Data(jobs.data_bytes[job], recorded.data_zone[job])


@inlined
def wanted_workers(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> int:
    """Return how many workers a waiting job should get."""
    if not scales(job, jobs, terms):
        return workers_of(job, recorded)
    return int(recorded.progress[WANTED, job])


@inlined
def wanted_cores(job: int, jobs: JobArrays, recorded: Recorded, terms: RunConfig) -> float:
    """Return the cores that all workers of a waiting job ask for together."""
    return float(jobs.cpu_cores[job] * wanted_workers(job, jobs, recorded, terms))


@borrowing
def room_for(job: int, most: int, jobs: JobArrays, cluster: ClusterState) -> int:
    """Return how many workers of a job find room on the nodes, at most `most`."""
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
    """Return whether there is room for all workers of a job."""
    workers = workers_of(job, recorded)
    return room_for(job, workers, jobs, cluster) == workers


@inlined
def node_of(job: int, worker: int, recorded: Recorded) -> int:
    """Return the node of one worker of a running job; the first worker is 0."""
    if worker == 0:
        return int(recorded.node[job])
    return int(recorded.others[NODE, recorded.first_other[job] + worker - 1])


@inlined
def kept_until_of(job: int, worker: int, recorded: Recorded) -> float:
    """Return until when the plan keeps room for one worker of a running job."""
    if worker == 0:
        return float(recorded.kept_until_s[job])
    return float(recorded.others_until_s[recorded.first_other[job] + worker - 1])


@inlined
def keep_until(job: int, worker: int, until_s: float, recorded: Recorded) -> None:
    """Record until when the plan keeps room for one worker of a running job."""
    if worker == 0:
        recorded.kept_until_s[job] = until_s
    else:
        recorded.others_until_s[recorded.first_other[job] + worker - 1] = until_s


@inlined
def gpus_of(job: int, worker: int, recorded: Recorded) -> int:
    """Return a bit mask of the GPUs that one worker of a running job has."""
    if worker == 0:
        return int(recorded.gpus[job])
    return int(recorded.others[GPUS, recorded.first_other[job] + worker - 1])


@inlined
def other_asleep_s(job: int, worker: int, recorded: Recorded) -> float:
    """Return since when the node of a worker after the first had slept; NaN: it was awake."""
    return float(recorded.others_asleep_s[recorded.first_other[job] + worker - 1])


@borrowing
def update_speed(job: int, run: Run) -> None:
    """Update a running job's speed from its workers and the power caps of their nodes."""
    jobs, cluster, recorded = run.jobs, run.cluster, run.recorded
    full, now = np.inf, np.inf
    for worker in range(workers_of(job, recorded)):
        node = node_of(job, worker, recorded)
        full = min(full, cluster.nodes[CORE_SPEED, node])
        now = min(now, speed_of(job, node, jobs, cluster))
    times = throughput_of(job, jobs, recorded, run.terms)
    recorded.progress[FULL_SPEED, job], recorded.progress[SPEED, job] = full * times, now * times
