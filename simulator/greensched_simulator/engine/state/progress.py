"""How far each job is: what is left of it, how fast it runs, and until when.

Told only where it may change while a job runs, since nodes are capped or jobs suspended, and where
a job may have several workers; else the table has no columns, and each job runs for its runtime.

What is left is told in seconds at full speed on the reference core, and of an elastic job with one
worker. A suspended job starts up again and goes on with the work that is not saved.
"""

import numpy as np

from greensched_policies.costs.cost import CORE_SPEED, Floats
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.compiling.compiled import borrowing, fast, inlined
from greensched_simulator.engine.state.cluster import ClusterState

# Rows of the table, [11,J].
LEFT_S, SINCE_S = 0, 1  # what is left, as it was when
WORK_S = 2  # what was left at the run segment's begin, without startup
PAUSE_AT_S = 3  # when it is to be suspended next, as far as is planned; infinity: never
STOP_S = 4  # what is left when it will stop, if it is being suspended; else 0
RESUME_S = 5  # what is left when it goes on, startup included
RESUME_AT_S = 6  # when it is to
RESTARTS = 7  # how often it was suspended
FULL_SPEED, SPEED = 8, 9  # of its slowest worker: where no cap holds, and now
WANTED = 10  # workers that an elastic job is to have from its next start on
ROWS = 11

# Rows of the cluster's table of caps, [4,N]. The last is 1 where a power cap is to be chosen, and
# MOVED where another one was, and the ends of what runs there are to follow.
POWER_CAP, CPU_SPEED_AT_CAP, GPU_SPEED_AT_CAP, CHANGED = range(4)
MOVED = 2.0

# Who takes longer than was thought is thought to take that much more.
_LEAST_LEFT_S = 60.0
_ROUNDING_S = 1e-6


@fast
def nothing_done(jobs: JobArrays, is_told: bool) -> Floats:
    """Return the table as it is at the start."""
    progress = np.zeros((ROWS, jobs.runtime_s.size if is_told else 0))
    if is_told:
        progress[LEFT_S] = jobs.runtime_s
        progress[PAUSE_AT_S] = np.inf
        progress[WANTED] = jobs.workers
    return progress


@inlined
def speed_of(job: int, node: int, jobs: JobArrays, cluster: ClusterState) -> float:
    """Return how fast a job runs on a node at its power cap, relative to the reference core."""
    speed = cluster.nodes[CORE_SPEED, node]
    if cluster.cap.shape[1] == 0:
        return float(speed)
    return float(
        speed * cluster.cap[GPU_SPEED_AT_CAP if jobs.gpus[job] > 0.0 else CPU_SPEED_AT_CAP, node]
    )


@inlined
def leaves_s(job: int, since_s: float, done_s: float, jobs: JobArrays) -> float:
    """Return when a job leaves that runs since then: its work is done, or its time is over."""
    until_s = jobs.leaves_at_s[job]
    return float(done_s if np.isinf(until_s) else max(since_s, until_s))


@inlined
def expected_left_s(job: int, jobs: JobArrays, progress: Floats) -> float:
    """Return what is left by the estimate, as it was when that was told last."""
    if progress.shape[1] == 0:
        return float(jobs.estimate_s[job])
    done_s = jobs.runtime_s[job] - progress[LEFT_S, job]
    least_s = min(_LEAST_LEFT_S, jobs.estimate_s[job])
    return float(max(jobs.estimate_s[job] - done_s, least_s))


@borrowing
def settle(job: int, now_s: float, done: Floats) -> None:
    """Bring what is left of a running job up to now; before its node is awake it does not run."""
    ran_s = max(now_s - done[SINCE_S, job], 0.0)
    done[LEFT_S, job] = max(done[LEFT_S, job] - ran_s * done[SPEED, job], 0.0)
    done[SINCE_S, job] = max(now_s, done[SINCE_S, job])


@inlined
def end_s(job: int, jobs: JobArrays, progress: Floats) -> float:
    """Return when a running job ends if nothing changes and it is not suspended."""
    since_s = progress[SINCE_S, job]
    return leaves_s(job, since_s, since_s + progress[LEFT_S, job] / progress[SPEED, job], jobs)


@inlined
def until_s(job: int, jobs: JobArrays, progress: Floats) -> float:
    """Return until when a running job needs no look: it ends, stops, or its pause has come."""
    if progress[STOP_S, job] > 0.0:
        to_go = progress[LEFT_S, job] - progress[STOP_S, job]
        return float(progress[SINCE_S, job] + to_go / progress[SPEED, job])
    return min(end_s(job, jobs, progress), float(progress[PAUSE_AT_S, job]))


@inlined
def expected_end_s(job: int, jobs: JobArrays, progress: Floats) -> float:
    """Return when a running job is expected to leave its node, suspended or ended.

    Who has overstayed its estimate is expected to leave at once, whether it has settled or not.
    """
    if progress[STOP_S, job] > 0.0:
        return until_s(job, jobs, progress)
    since_s = progress[SINCE_S, job]
    ran_s = jobs.runtime_s[job] - progress[LEFT_S, job]
    left_s = max(jobs.estimate_s[job] - ran_s, 0.0)
    done_s = since_s + left_s / progress[FULL_SPEED, job]
    return min(leaves_s(job, since_s, done_s, jobs), float(progress[PAUSE_AT_S, job]))


@borrowing
def lose_what_is_not_saved(
    job: int, now_s: float, may_suspend: bool, jobs: JobArrays, progress: Floats
) -> None:
    """Leave of a job that was stopped without notice what its last checkpoint, or begin, left.

    It may be suspended a while after it goes on, if it can be at all.
    """
    settle(job, now_s, progress)
    left, work, every_s = progress[LEFT_S, job], progress[WORK_S, job], jobs.save_every_s[job]
    if left < work and 0.0 < every_s < np.inf:
        cycle_s, whole = every_s + jobs.save_s[job], jobs.runtime_s[job] - jobs.startup_s[job]
        cycles = np.floor((whole - left + _ROUNDING_S) / cycle_s)
        work = min(work, whole - cycles * cycle_s)
    progress[LEFT_S, job], progress[STOP_S, job] = work + jobs.startup_s[job], 0.0
    is_looked_at = may_suspend and every_s < np.inf
    progress[PAUSE_AT_S, job] = 0.0 if is_looked_at else np.inf


@borrowing
def ask_to_stop(job: int, throughput: float, jobs: JobArrays, progress: Floats) -> bool:
    """Have a running job stop where its work is saved next; False if it ends before.

    It has settled. Work is saved by then at checkpoints, or, where it is when it is suspended, now
    and for as long as that takes, however many workers there are, whose throughput is told; who
    still starts up has nothing to save.
    """
    left, saved = progress[LEFT_S, job], progress[WORK_S, job]
    every_s, save_s = jobs.save_every_s[job], jobs.save_s[job]
    stop, work = left, min(left, saved)
    if left < saved and every_s > 0.0:
        cycle_s = every_s + save_s
        whole = jobs.runtime_s[job] - jobs.startup_s[job]
        cycles = np.ceil((whole - left - _ROUNDING_S) / cycle_s)
        stop = work = whole - cycles * cycle_s
    elif left < saved:
        stop = left - save_s * throughput
    if stop <= 0.0:
        return False
    progress[STOP_S, job] = stop
    progress[RESUME_S, job] = work + jobs.startup_s[job]
    return True
