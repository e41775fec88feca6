"""The progress of each job: the work left, its speed, and its next end or pause.

The table has columns only if progress may change during a run (power caps, suspensions, node
failures), or if a job may have several workers. Else each job runs for its runtime.

Work left is in seconds at full speed on the reference core; for an elastic job, with one worker. A
suspended job starts up again and goes on with the unsaved work.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.capping import CPU, GPU, cpu_speed, gpu_speed
from greensched_policies.costs.cost import CORE_SPEED, GPU_IDLE_W, GPU_PEAK_W, Floats
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.state.cluster import ClusterState

# Rows of the table, [12,J].
LEFT_S, SINCE_S = 0, 1  # work left, and the time for which it holds
WORK_S = 2  # work left at the run segment's begin, without startup
PAUSE_AT_S = 3  # next planned suspension; infinity: none
STOP_S = 4  # work left when a job that is being suspended stops; else 0
RESUME_LEFT_S = 5  # work left when it resumes, startup included
RESUME_AT_S = 6  # planned time of that
RESTARTS = 7  # number of suspensions
FULL_SPEED, SPEED = 8, 9  # of its slowest worker: without power caps, and now
WANTED = 10  # workers that an elastic job should have from its next start on
KNOWN_S = 11  # work of its estimate that is done, as known at its last pause by a GreenPolicy
ROWS = 12

# Rows of the cluster's table of caps, [4,N]. CPU is the share of the highest frequency at which the
# CPUs run, and GPU the cap of the GPUs. CHANGED + CPU and CHANGED + GPU are 1 where the domain's
# power cap must be chosen, and MOVED where it changed and the ends of the node's jobs must be
# updated.
CHANGED = 2
MOVED = 2.0

# A job that outlasts its estimate is expected to take this much longer.
_LEAST_LEFT_S = 60.0
_ROUNDING_S = 1e-6

_cpu_speed, _gpu_speed = compiled(cpu_speed, inlined), compiled(gpu_speed)


@fast
def nothing_done(jobs: JobArrays, is_tracked: bool) -> Floats:
    """Return the table at the start of a run."""
    progress = np.zeros((ROWS, jobs.runtime_s.size if is_tracked else 0))
    if is_tracked:
        progress[LEFT_S] = jobs.runtime_s
        progress[PAUSE_AT_S] = np.inf
        progress[WANTED] = jobs.workers
    return progress


@inlined
def speed_of(job: int, node: int, jobs: JobArrays, cluster: ClusterState) -> float:
    """Return how fast a job runs on a node at its power caps, relative to the reference core.

    The slower of CPUs and GPUs holds up a job that uses both.
    """
    speed = cluster.nodes[CORE_SPEED, node]
    if cluster.cap.shape[1] == 0:
        return float(speed)
    capped = _cpu_speed(cluster.cap[CPU, node], jobs.frequency_sensitivity[job])
    if jobs.gpus[job] > 0.0 and cluster.cap[GPU, node] < 1.0:
        idle_w, peak_w = cluster.nodes[GPU_IDLE_W, node], cluster.nodes[GPU_PEAK_W, node]
        gpu_ratio = jobs.gpu_ratio[job]
        capped = min(capped, _gpu_speed(cluster.cap[GPU, node], idle_w, peak_w, gpu_ratio))
    return float(speed * capped)


@inlined
def mark_changed(node: int, cluster: ClusterState) -> None:
    """Mark a node, where nodes are capped, as one whose power caps must be chosen."""
    if cluster.cap.shape[1] > 0:
        cluster.cap[CHANGED + CPU, node] = 1.0
        cluster.cap[CHANGED + GPU, node] = 1.0


@inlined
def leaves_s(job: int, since_s: float, done_s: float, jobs: JobArrays) -> float:
    """Return when a job that runs since `since_s` leaves: at `done_s`, or at its fixed time."""
    until_s = jobs.leaves_at_s[job]
    return float(done_s if np.isinf(until_s) else max(since_s, until_s))


@inlined
def expected_left_s(job: int, jobs: JobArrays, progress: Floats) -> float:
    """Return the work left by the estimate, as of the job's last update."""
    if progress.shape[1] == 0:
        return float(jobs.estimate_s[job])
    done_s = jobs.runtime_s[job] - progress[LEFT_S, job]
    least_s = min(_LEAST_LEFT_S, jobs.estimate_s[job])
    return float(max(jobs.estimate_s[job] - done_s, least_s))


@borrowing
def settle(job: int, now_s: float, done: Floats) -> None:
    """Update the work left of a running job to now; it runs only once its node is awake."""
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
    """Return the next time at which a running job ends, stops, or is due for its pause."""
    if progress[STOP_S, job] > 0.0:
        to_go = progress[LEFT_S, job] - progress[STOP_S, job]
        return float(progress[SINCE_S, job] + to_go / progress[SPEED, job])
    return min(end_s(job, jobs, progress), float(progress[PAUSE_AT_S, job]))


@inlined
def expected_end_s(job: int, jobs: JobArrays, progress: Floats) -> float:
    """Return when a running job is expected to leave its node, suspended or ended.

    A job that has outlasted its estimate is expected to leave at once, settled or not.
    """
    if progress[STOP_S, job] > 0.0:
        return until_s(job, jobs, progress)
    since_s = progress[SINCE_S, job]
    ran_s = jobs.runtime_s[job] - progress[LEFT_S, job]
    left_s = max(jobs.estimate_s[job] - ran_s, 0.0)
    done_s = since_s + left_s / progress[FULL_SPEED, job]
    return min(leaves_s(job, since_s, done_s, jobs), float(progress[PAUSE_AT_S, job]))


@borrowing
def lose_unsaved_work(
    job: int, now_s: float, may_suspend: bool, jobs: JobArrays, progress: Floats
) -> None:
    """Reset a job that was stopped without notice to its last checkpoint, or to its begin.

    If the job can be suspended, it is reconsidered a slot after it resumes.
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
    """Set when a settled, running job stops: when its work is next saved; False if it ends before.

    Work is saved at checkpoints or, for jobs that save on suspension, from now on for `save_s`,
    with any number of workers. A job that still starts up has nothing to save.
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
    progress[RESUME_LEFT_S, job] = work + jobs.startup_s[job]
    return True
