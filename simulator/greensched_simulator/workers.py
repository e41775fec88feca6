"""The workers of a job, which run at the same time, each on a node, with the same requests.

Most jobs have one. Their pace is that of the slowest.
"""

import numpy as np

from greensched_simulator.choices import Cluster
from greensched_simulator.compiled import borrowing, inlined
from greensched_simulator.jobs import Jobs
from greensched_simulator.progress import FULL_SPEED, SPEED, speed_of
from greensched_simulator.recorded import BOARDS, NODE, Recorded


@inlined
def workers_of(job: int, jobs: Jobs) -> int:
    """Return how many workers a job has."""
    return int(jobs.workers[job])


@inlined
def all_cores(job: int, jobs: Jobs) -> float:
    """Return how many cores a job's workers ask for together."""
    return float(jobs.cpu_cores[job] * jobs.workers[job])


@inlined
def node_of(job: int, worker: int, recorded: Recorded) -> int:
    """Return the node of one worker of a running job, the first being 0."""
    if worker == 0:
        return int(recorded.node[job])
    return int(recorded.others[NODE, recorded.first_other[job] + worker - 1])


@inlined
def boards_of(job: int, worker: int, recorded: Recorded) -> int:
    """Return which boards one worker of a running job has, a bit for each."""
    if worker == 0:
        return int(recorded.boards[job])
    return int(recorded.others[BOARDS, recorded.first_other[job] + worker - 1])


@inlined
def other_asleep_s(job: int, worker: int, recorded: Recorded) -> float:
    """Return since when the node had slept that a worker but the first woke; NaN: it was awake."""
    return float(recorded.others_asleep_s[recorded.first_other[job] + worker - 1])


@borrowing
def tell_speed(job: int, jobs: Jobs, cluster: Cluster, recorded: Recorded) -> None:
    """Bring a running job's pace up to what its nodes have now."""
    full, now = np.inf, np.inf
    for worker in range(workers_of(job, jobs)):
        node = node_of(job, worker, recorded)
        full = min(full, cluster.columns[9, node])
        now = min(now, speed_of(job, node, jobs, cluster))
    recorded.progress[FULL_SPEED, job], recorded.progress[SPEED, job] = full, now
