"""Starts and nodes that rules choose for jobs, and their immediate effects."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.kernel.later_room import ALL_ROOM
from greensched_policies.kernel.plan import is_kept
from greensched_simulator.arrays.heaps import Heap, push
from greensched_simulator.engine.execution.running import add_room
from greensched_simulator.engine.execution.workers import all_cores, all_gpus, data_of
from greensched_simulator.engine.queue.gangs import start_gang
from greensched_simulator.engine.queue.waiting import wait
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.starts import Start, UnstartedJob, choose_start

# The decisions: a job's start, its node, a node's power cap, none since the run is over, the node
# of a job whose turn in the queue has come, and all starts again.
WHEN, WHERE, HOW_FAST, OVER, IN_TURN, AGAIN = range(6)


@inlined
def due_or_put_off(job: int, now_s: float, planned_s: float, starts: Heap) -> int:
    """Return a job that starts now; else NOWHERE: queue its later start, or drop it if rejected."""
    if planned_s > now_s:
        push(starts, planned_s, job)
    return job if planned_s == now_s else NOWHERE


@borrowing
def plan_start(job: int, now_s: float, run: Run) -> float:
    """Return the planned start of a job that runs in one piece, and keep room for it in the plan.

    NaN: the job is rejected. Without a plan each job starts at once.
    """
    if not is_kept(run.plan):
        run.recorded.planned_s[job] = now_s
        return now_s
    estimates = run.estimates
    work, latest_s = unstarted_job_of(job, now_s, run), estimates.latest_start_s[job]
    chosen = choose_start(
        run.grid, run.plan, run.terms, run.rules, work, latest_s, run.starts_memory
    )
    if chosen.zone == NOWHERE:
        return np.nan
    keep_start(job, chosen, run)
    return chosen.start_s


@fast
def unstarted_job_of(job: int, now_s: float, run: Run) -> UnstartedJob:
    """Return a job that has just arrived as an `UnstartedJob`."""
    jobs, recorded, estimates = run.jobs, run.recorded, run.estimates
    cores, data = all_cores(job, jobs, recorded), data_of(job, jobs, recorded)
    return UnstartedJob(
        now_s, estimates.runtime_s[job], cores, data, estimates.run_j[job], 0.0, 0.0, ALL_ROOM
    )


@borrowing
def keep_start(job: int, chosen: Start, run: Run) -> None:
    """Record when a job is to start, and keep room for it in the plan."""
    recorded, end_s = run.recorded, chosen.start_s + chosen.runtime_s
    recorded.planned_s[job] = recorded.kept_from_s[job] = chosen.start_s
    recorded.kept_until_s[job] = end_s
    recorded.planned_zone[job] = chosen.zone
    cores, gpus = all_cores(job, run.jobs, recorded), all_gpus(job, run.jobs, recorded)
    recorded.kept_cores[job], recorded.kept_gpus[job] = cores, gpus
    add_room(job, chosen.zone, chosen.start_s, end_s, cores, gpus, run)


@borrowing
def place_by_rule(job: int, now_s: float, run: Run) -> None:
    """Start a job on the best node with room, or let it wait for one."""
    if not start_gang(job, now_s, run):
        wait(job, run)
