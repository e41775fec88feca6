"""What the power caps of all nodes are chosen by: the grids now, and how busy the cluster is."""

from typing import NamedTuple

import numpy as np

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.compiling.compiled import compiled, fast
from greensched_policies.costs.cost import CPU_CAPACITY, Floats
from greensched_policies.encoding.timing import relative_to_day
from greensched_policies.kernel.grid_means import means_over
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable
from greensched_simulator.engine.execution.workers import all_cores
from greensched_simulator.engine.run import NO_JOB, OLDEST_FIT, Run
from greensched_simulator.engine.state.cluster import ClusterState, is_away

_MOMENT_S = 1.0  # length of "now": its mean carbon intensity is the one now

_relative_to_day = compiled(relative_to_day)


class CapSignals(NamedTuple):
    """What holds for all nodes at a moment."""

    now_s: float
    dirtiness: Floats  # [Z] carbon intensity now, relative to its forecast mean over the next day
    dearness: Floats  # [Z] price now, relative to its forecast mean over the next day
    busy: float  # share of all nodes' cores that is requested
    waiting: float  # cores requested by jobs that wait for a node, per core of all nodes


@fast
def cap_signals(now_s: float, run: Run, with_load: bool) -> CapSignals:
    """Return the signals now; rules read no load, which is then 0."""
    dirtiness, dearness = _against_day(run.grid, now_s)
    busy = waiting = 0.0
    if with_load:
        cores, free = _cores(run.cluster)
        busy, waiting = 1.0 - free / max(cores, 1.0), _waiting_cores(run) / max(cores, 1.0)
    return CapSignals(now_s, dirtiness, dearness, busy, waiting)


@fast
def _cores(cluster: ClusterState) -> tuple[float, float]:
    """Return the cores of all nodes that are there, and how many of them are free."""
    cores = free = 0.0
    for node in range(cluster.cpu_free.size):
        if not is_away(cluster, node):
            cores += cluster.nodes[CPU_CAPACITY, node]
            free += max(cluster.cpu_free[node], 0.0)
    return cores, free


@fast
def _waiting_cores(run: Run) -> float:
    """Return the cores that the jobs request that are due but have no node."""
    cores = 0.0
    if run.terms.discipline != OLDEST_FIT:
        for place in range(run.queue.length[0]):
            cores += all_cores(run.queue.jobs[place], run.jobs, run.recorded)
        return cores
    behind = run.waiting.behind
    job = behind[behind.size - 1]
    while job != NO_JOB:
        cores += all_cores(job, run.jobs, run.recorded)
        job = behind[job]
    return cores


@fast
def _against_day(grid: GridTable, now_s: float) -> tuple[Floats, Floats]:
    """Return each zone's carbon intensity and price now, relative to their coming day."""
    now = means_over(grid, now_s, now_s + _MOMENT_S)
    day = means_over(grid, now_s, now_s + SECONDS_PER_DAY)
    dirtiness, dearness = np.ones(now.shape[1]), np.ones(now.shape[1])
    for zone in range(dirtiness.size):
        if day[CARBON, zone] > 0.0 and not np.isnan(now[CARBON, zone]):
            dirtiness[zone] = now[CARBON, zone] / day[CARBON, zone]
        dearness[zone] = _relative_to_day(now[PRICE, zone], day[PRICE, zone])
    return dirtiness, dearness
