"""Starts and nodes that rules choose for jobs, and what follows from that at once."""

import numpy as np

from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import Heap, push
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.compiling.compiled import borrowing, inlined
from greensched_simulator.engine.execution.running import start
from greensched_simulator.engine.execution.workers import all_cores, data_of
from greensched_simulator.engine.queue.gangs import place_all
from greensched_simulator.engine.queue.waiting import Waiting, wait
from greensched_simulator.engine.state.choices import NOWHERE, Rules, Terms
from greensched_simulator.engine.state.cluster import Cluster
from greensched_simulator.engine.state.job_estimates import Prospects
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.starts import Plan, Start, choose_start, is_kept, keep

# What is asked: a job's start, its node; a node's level; nothing any more; a job's node, its turn
# having come.
WHEN, WHERE, HOW_FAST, OVER, IN_TURN = range(5)


@inlined
def due_or_put_off(job: int, now_s: float, planned_s: float, starts: Heap) -> int:
    """Return a job that is to start now; else it waits for that, or is rejected: NOWHERE."""
    if planned_s > now_s:
        push(starts, planned_s, job)
    return job if planned_s == now_s else NOWHERE


@borrowing
def plan_start(
    job: int,
    now_s: float,
    jobs: Jobs,
    prospects: Prospects,
    grid: GridTable,
    plan: Plan,
    recorded: Recorded,
    terms: Terms,
    rules: Rules,
) -> float:
    """Return when a job that runs in one piece is to start, and keep room for it in the plan.

    NaN says that it is rejected. Where there is no plan all start at once.
    """
    if not is_kept(plan):
        recorded.planned_s[job] = now_s
        return now_s
    runtime_s, latest_s = prospects.runtime_s[job], prospects.latest_start_s[job]
    cores = all_cores(job, jobs, recorded)
    data, run_j = data_of(job, jobs, recorded), prospects.run_j[job]
    chosen = choose_start(grid, plan, terms, rules, now_s, runtime_s, latest_s, cores, data, run_j)
    if chosen.zone == NOWHERE:
        return np.nan
    keep_start(job, chosen, jobs, recorded, plan, terms)
    return chosen.start_s


@borrowing
def keep_start(
    job: int, chosen: Start, jobs: Jobs, recorded: Recorded, plan: Plan, terms: Terms
) -> None:
    """Note when a job is to start, and keep room for it in the plan."""
    end_s = chosen.start_s + chosen.runtime_s
    recorded.planned_s[job] = recorded.kept_from_s[job] = chosen.start_s
    recorded.kept_until_s[job] = end_s
    recorded.planned_zone[job] = chosen.zone
    recorded.kept_cores[job] = all_cores(job, jobs, recorded)
    keep(plan, chosen.zone, terms.slot_s, chosen.start_s, end_s, recorded.kept_cores[job])


@borrowing
def place_by_rule(
    job: int,
    now_s: float,
    waiting: Waiting,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> None:
    """Start a job on the best node with room, or let it wait for one."""
    node = place_all(job, now_s, jobs, cluster, recorded, grid, terms, rules)
    if node != NOWHERE:
        start(job, node, now_s, jobs, cluster, recorded, ends, plan, terms)
    else:
        wait(job, waiting, jobs)
