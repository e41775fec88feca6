"""The bill of a run from the engine's own arrays: its totals, and each job's part.

The full bill (`greensched_policies.billing.accounting`) has a part for each node, and takes longer
than many decisions. Both use the same functions for the formulas, and a test compares them.
"""

from typing import Any, NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.capping import gpu_watts
from greensched_policies.costs.cost import (
    CURVE_POINTS,
    JOULES_PER_MWH,
    PUE,
    CostModel,
    Floats,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    load_watts,
    placement_cost,
)
from greensched_policies.kernel.grid_means import integral_between, step_at
from greensched_policies.kernel.seeing_nodes import of_gpu_ratio
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.cluster import ClusterState, columns_of
from greensched_simulator.engine.state.power_states import ASLEEP_FROM_S
from greensched_simulator.environments.episode_parts import Accounts

_placement_cost = compiled(placement_cost, inlined)
_load_watts = compiled(load_watts, inlined)
_gpu_watts = compiled(gpu_watts, inlined)


class Taken(NamedTuple):
    """Money, in the scenario's currency, and grams; NaN where the grid lacks data."""

    cost: float
    carbon_g: float


class WorkerPlacement(NamedTuple):
    """A job's worker on a node until a time, and the node's utilisation before."""

    job: int
    node: int
    end_s: float
    busy_before: Any  # a number, like all inputs of placement_cost


@borrowing
def between(grid: GridTable, zone: int, begin_s: float, end_s: float) -> Taken:
    """Return the cost and carbon of a watt at the meter from `begin_s` to `end_s` in a zone."""
    begin, end = step_at(grid, zone, begin_s), step_at(grid, zone, end_s)
    price = integral_between(grid, PRICE, begin, end, begin_s, end_s)
    carbon = integral_between(grid, CARBON, begin, end, begin_s, end_s)
    return Taken(price / JOULES_PER_MWH, carbon / JOULES_PER_KWH)


@borrowing
def taken_by_job(placing: WorkerPlacement, run: Run, grid: GridTable) -> Taken:
    """Return what a job's worker adds to the active bill from its start to its end.

    This assumes that the node's load stays as it was when the job was placed.
    """
    job, node, end_s, busy_before = placing
    jobs, cluster, begin_s = run.jobs, run.cluster, run.recorded.start_s[job]
    now = columns_of(cluster, node)
    machine = NodeColumns(
        now.cpu_capacity, busy_before, now.memory_capacity, now.memory_free, now.gpu_capacity,
        now.gpu_free, now.gpu_idle_w, now.gpu_peak_w, now.curve_class, now.speed, now.pue,
        busy_before == 0.0,
    )  # fmt: skip
    asked = WorkloadColumns(
        jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job], jobs.runtime_s[job]
    )
    nothing: Any = 0.0
    model = of_gpu_ratio(run.terms.model, jobs.gpu_ratio[job])
    watts = _placement_cost(machine, asked, ZoneColumns(nothing, nothing), model).power_w
    per_watt = between(grid, cluster.zone[node], begin_s, end_s)
    return Taken(watts * per_watt.cost, watts * per_watt.carbon_g)


@fast
def taken_in_all(run: Run, accounts: Accounts, until_s: float) -> Taken:
    """Return what all nodes took from 0 to `until_s`, by when all jobs have ended."""
    taken, cluster = np.zeros(2), run.cluster
    machines, grid = accounts.machines, accounts.grid
    _add_active(taken, run, accounts)
    if not run.terms.model.empty_nodes_sleep:
        for node in range(cluster.zone.size):
            _add(taken, node, machines.idle_w[node], 0.0, until_s, cluster, grid)
        _add_sleep(taken, run, accounts, until_s)
    return Taken(taken[0], taken[1])


@fast
def _add_active(taken: Floats, run: Run, accounts: Accounts) -> None:
    """Add what runs took above idle, plus their nodes' idle watts if empty nodes draw nothing."""
    jobs, recorded, cluster, model = run.jobs, run.recorded, run.cluster, run.terms.model
    machines, grid = accounts.machines, accounts.grid
    nodes, count = cluster.zone.size, jobs.arrival_s.size
    runs, since_s = np.zeros(nodes, np.int64), np.zeros(nodes)
    cores, gpu_w = np.zeros(nodes), np.zeros(nodes)
    # Stable: a job that leaves at its start, such as a late replica, still starts before it leaves.
    for event in np.argsort(np.concatenate((recorded.start_s, recorded.end_s)), kind="mergesort"):
        job = event % count
        sign = 1 if event < count else -1
        node = recorded.node[job]
        now_s = recorded.start_s[job] if sign > 0 else recorded.end_s[job]
        if runs[node] != 0:
            watts = _cpu_watts(node, cores[node], cluster, model) + gpu_w[node]
            if model.empty_nodes_sleep:
                watts += machines.idle_w[node]
            _add(taken, node, watts, since_s[node], now_s, cluster, grid)
        since_s[node] = now_s
        runs[node] += sign
        cores[node] += sign * jobs.cpu_cores[job]
        gpu_w[node] += sign * _gpu_watts_of(job, node, jobs, cluster)
        if runs[node] == 0:  # sums of floats do not cancel exactly
            cores[node] = gpu_w[node] = 0.0


@inlined
def _cpu_watts(node: int, cores: float, cluster: ClusterState, model: CostModel) -> float:
    """Return the watts above idle of a node's CPUs while so many cores are requested."""
    now = columns_of(cluster, node)
    first = int(now.curve_class) * CURVE_POINTS
    ratio = model.utilisation_ratio
    return float(_load_watts(model.curve_watts, first, cores, now.cpu_capacity, ratio))


@inlined
def _gpu_watts_of(job: int, node: int, jobs: JobArrays, cluster: ClusterState) -> float:
    """Return the watts above idle of a job's GPUs on a node, without a GPU cap."""
    now = columns_of(cluster, node)
    of_gpu = _gpu_watts(1.0, now.gpu_idle_w, now.gpu_peak_w, jobs.gpu_ratio[job])
    return float(jobs.gpus[job] * of_gpu)


@fast
def _add_sleep(taken: Floats, run: Run, accounts: Accounts, until_s: float) -> None:
    """Replace the billed idle watts by those asleep and waking."""
    recorded, cluster = run.recorded, run.cluster
    machines, grid = accounts.machines, accounts.grid
    for job in range(recorded.node.size):
        asleep_s = recorded.node_asleep_s[job]
        if not np.isnan(asleep_s):
            node, woken_s = recorded.node[job], recorded.placed_s[job]
            less_w = machines.sleep_w[node] - machines.idle_w[node]
            more_w = machines.wake_w[node] - machines.idle_w[node]
            _add(taken, node, less_w, asleep_s, woken_s, cluster, grid)
            _add(taken, node, more_w, woken_s, recorded.start_s[job], cluster, grid)
    for node in range(cluster.sleep.shape[1]):
        less_w = machines.sleep_w[node] - machines.idle_w[node]
        asleep_s = cluster.sleep[ASLEEP_FROM_S, node]
        _add(taken, node, less_w, min(asleep_s, until_s), until_s, cluster, grid)


@inlined
def _add(
    taken: Floats,
    node: int,
    watts: float,
    begin_s: float,
    end_s: float,
    cluster: ClusterState,
    grid: GridTable,
) -> None:
    """Add the cost and carbon of a node's watts, given without PUE; skip zero watts or time."""
    if watts != 0.0 and end_s > begin_s:
        per_watt = between(grid, cluster.zone[node], begin_s, end_s)
        taken[0] += watts * cluster.nodes[PUE, node] * per_watt.cost
        taken[1] += watts * cluster.nodes[PUE, node] * per_watt.carbon_g
