"""The `where` rule's view of nodes with room: the policies' encoding, with sleep and transfers."""

from typing import Any, NamedTuple

import numpy as np

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.billing.transfers import with_transfer
from greensched_policies.compiling.compiled import borrowing, compiled, inlined
from greensched_policies.costs.capping import CPU
from greensched_policies.costs.cost import (
    Floats,
    Integers,
    WorkloadColumns,
    ZoneColumns,
    cost_above,
)
from greensched_policies.costs.sleeping import with_waking
from greensched_policies.encoding.timing import Timing
from greensched_policies.kernel.grid_means import fill_means
from greensched_policies.kernel.seeing_nodes import (
    NO_CAP,
    NodeKnown,
    NodesShown,
    Scratch,
    complete_observation,
    fill_missing_zones,
    fill_of_day,
    of_gpu_ratio,
    put_learned,
    put_relative,
    put_room,
    put_timing,
)
from greensched_policies.library.grid_table import CARBON, PRICE, GridTable
from greensched_simulator.arrays.moving import Data, moving_seen
from greensched_simulator.engine.state.cluster import ClusterState, columns_of, is_empty
from greensched_simulator.engine.state.power_states import sleep_seen
from greensched_simulator.engine.state.terms import RunConfig

_cost_above = compiled(cost_above, inlined)
_with_waking = compiled(with_waking, inlined)
_with_transfer = compiled(with_transfer, inlined)


class NewWorker(NamedTuple):
    """One worker that needs a node now."""

    workload: WorkloadColumns  # its requests, each a number
    data: Data
    now_s: float
    left_s: float  # until its deadline
    planned_zone: int  # whose nodes are preferred; -1: none
    gpu_ratio: float  # share of their idle-to-peak range that its GPUs draw


@borrowing
def observe(
    cluster: ClusterState,
    rows: Integers,
    worker: NewWorker,
    terms: RunConfig,
    scratch: Scratch,
    shown: NodesShown,
) -> None:
    """Fill in what a rule is shown of some nodes of a cluster.

    The caller has filled in the scratch's zone means.
    """
    describe(cluster, rows, worker, terms, scratch, shown)
    complete_observation(worker.workload, terms.weights, scratch, rows.size, shown)
    if shown.with_all:
        found = timing_at(worker.now_s, worker.left_s, terms)
        put_timing(found, worker.workload, shown.context)


@inlined
def timing_at(now_s: float, left_s: float, terms: RunConfig) -> Timing:
    """Return when a decision on work with so much time until its deadline is made."""
    return Timing(terms.begin_s + now_s, left_s, terms.runtime_error, terms.on_time_target)


@borrowing
def describe(
    cluster: ClusterState,
    rows: Integers,
    worker: NewWorker,
    terms: RunConfig,
    scratch: Scratch,
    shown: NodesShown,
) -> None:
    """Fill in the RELATIVE_FEATURES in `scratch`, and the other features in `shown`."""
    workload, data, links, means = worker.workload, worker.data, terms.links, scratch.means
    model = of_gpu_ratio(terms.model, worker.gpu_ratio)
    is_brought = links.shape[1] > 0 and data.size_bytes > 0.0
    for place in range(rows.size):
        row: Any = np.uintp(rows[place])
        node, zone = columns_of(cluster, row), cluster.zone[row]
        at: Any = np.uintp(zone)
        signals = ZoneColumns(means[CARBON, at], means[PRICE, at])
        cost = _cost_above(cluster.busy_w[row], node, workload, signals, model)
        if cluster.sleep.shape[1] > 0:
            sleep = sleep_seen(cluster.sleep, row, is_empty(cluster, row), worker.now_s)
            cost = _with_waking(cost, node, sleep, signals)
        if is_brought:
            cost = _with_transfer(cost, moving_seen(links, data, zone, means))
        put_relative(node, signals, cost, scratch.values, place)
        if shown.with_room:
            put_room(node, workload, cost, model, shown.features, place)
        if shown.with_all:
            power_cap = cluster.cap[CPU, row] if cluster.cap.shape[1] > 0 else NO_CAP
            known = NodeKnown(power_cap, False, worker.planned_zone)
            put_learned(node, known, zone, scratch.of_day, shown.features, place)


@borrowing
def fill_zone_days(grid: GridTable, now_s: float, scratch: Scratch) -> None:
    """Fill in the zones' means relative to their coming day; the means are filled in before."""
    fill_means(grid, now_s, now_s + SECONDS_PER_DAY, scratch.of_day)
    fill_of_day(scratch.means, scratch.of_day, scratch.of_day)


@borrowing
def fill_zone_means(
    zone: Integers, rows: Integers, grid: GridTable, begin_s: float, end_s: float, means: Floats
) -> None:
    """Fill in the zones' means from `begin_s` to `end_s`, [2,Z]; NaN where all lack data.

    A zone without data gets the mean of the candidates, `rows`, that have data.
    """
    fill_means(grid, begin_s, end_s, means)
    for place in range(grid.per_step.size):
        if np.isnan(means[CARBON, place]) or np.isnan(means[PRICE, place]):
            fill_missing_zones(zone, rows, means)
            return
