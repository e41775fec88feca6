"""The cost of one more workload on each candidate: watts, joules, money, grams.

Every array is float64 of shape [B,N] (B decisions, N candidates) or, for the workloads, [B,1].
The functions stay within numba's subset and take numbers as well as arrays: compiled, for the
simulator's engine and for the extender, they look at one candidate at a time.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.units import JOULES_PER_KWH

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# SPECpower reports a server's watts at 0, 10 … 100 % load; every curve has these points.
CURVE_POINTS = 11
# A smaller node is treated as this large, so that a node that lost its capacity counts as full
# instead of dividing by zero.
LEAST_CPU_CORES = 1e-3
JOULES_PER_MWH = 3_600_000_000.0


class NodeColumns(NamedTuple):
    """The candidates, one [B,N] float64 array per column.

    With one table of shape [12, nodes], a single gather gives a decision's columns:
    `NodeColumns(*table.take(rows, axis=1)[:, None, :])`.
    """

    cpu_capacity: Floats  # cores
    cpu_before: Floats  # utilisation 0..1 without the workload
    memory_capacity: Floats  # bytes
    memory_free: Floats  # bytes not yet requested
    gpu_capacity: Floats  # GPUs
    gpu_free: Floats  # GPUs not yet requested
    gpu_idle_w: Floats  # watts per GPU
    gpu_peak_w: Floats  # watts per GPU
    curve_class: Floats  # row of the curve table; whole numbers
    speed: Floats  # throughput of a core relative to the reference core
    pue: Floats  # power usage effectiveness of the site, at least 1
    is_empty: Floats  # 1.0 where nothing runs, else 0.0


# The columns of NodeColumns that never change for a node: their rows in tables of nodes.
(
    CPU_CAPACITY,
    MEMORY_CAPACITY,
    GPU_CAPACITY,
    GPU_IDLE_W,
    GPU_PEAK_W,
    CURVE_CLASS,
    CORE_SPEED,
    PUE,
) = range(8)


class WorkloadColumns(NamedTuple):
    """The workloads to place, one [B,1] float64 array per column."""

    cpu_cores: Floats
    memory_bytes: Floats
    gpus: Floats
    runtime_s: Floats  # expected on the reference core


class ZoneColumns(NamedTuple):
    """The grid behind each candidate, [B,N]: means over the workload's expected run.

    NaN means no data; it is never replaced by a number here.
    """

    carbon_g_per_kwh: Floats
    price_per_mwh: Floats  # may be negative


class CostModel(NamedTuple):
    """Assumptions where nothing is measured; the same for cost and bill."""

    curve_watts: Floats  # flat [classes * 11]: watts at 0, 10 … 100 % CPU load, without GPUs
    utilisation_ratio: float  # CPU used per CPU requested
    gpu_ratio: float  # share of a GPU's idle-to-peak range that a running workload draws
    empty_nodes_sleep: bool  # empty nodes draw nothing and are woken by the first workload


def with_gpu_ratio(model: CostModel, gpu_ratio: float) -> CostModel:
    """Return the model for work, or a node, whose GPUs draw this share of their range."""
    return CostModel(model.curve_watts, model.utilisation_ratio, gpu_ratio, model.empty_nodes_sleep)


class PlacementCost(NamedTuple):
    """The marginal cost of each candidate, [B,N]; money and grams are NaN without data."""

    power_w: Floats  # additional watts at the meter, PUE included
    runtime_s: Floats  # expected on this candidate
    energy_j: Floats
    cost: Floats  # in the currency of the prices
    carbon_g: Floats
    cpu_after: Floats  # utilisation 0..1 with the workload


def curve_table(curves: Sequence[Sequence[float]]) -> Floats:
    """Flatten power curves of 11 watts each into the table that `CostModel` holds.

    Raises ValueError when a curve has another number of points, or a value that is negative or
    not finite.
    """
    table = np.asarray(curves, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != CURVE_POINTS:
        raise ValueError(f"each power curve needs {CURVE_POINTS} watts, got shape {table.shape}")
    if not np.isfinite(table).all() or (table < 0.0).any():
        raise ValueError("watts of a power curve must be finite and not negative")
    return table.ravel()


def as_index(values: Floats) -> npt.NDArray[np.int64]:
    """Return the values, truncated to integers, as indices into a table."""
    return values.astype(np.int64)


def taken(table: Floats, index: npt.NDArray[np.int64]) -> Floats:
    """Return the values of a flat table at the indices, in their shape."""
    return table.take(index)


def curve_starts(curve_class: Floats) -> npt.NDArray[np.int64]:
    """Return the index in the flat table where each class's curve begins, in the input's shape."""
    starts = as_index(curve_class)
    starts *= CURVE_POINTS
    return starts


def watts_at(curve_watts: Floats, starts: npt.NDArray[np.int64], utilisation: Floats) -> Floats:
    """Return the CPU part's watts at a utilisation within 0..1, linear between the points.

    SPECpower's curves are not straight: a straight line from idle to peak understates
    mid-load power by 5 % of peak (SPECpower_ssj2008 results of 2021–22).
    """
    position = utilisation * (CURVE_POINTS - 1.0)
    point = np.minimum(as_index(position), CURVE_POINTS - 2)
    position -= point
    point += starts
    below = taken(curve_watts, point)
    point += 1
    watts: Floats = taken(curve_watts, point)
    watts -= below
    watts *= position
    watts += below
    return watts


def load_watts(
    curve_watts: Floats,
    starts: npt.NDArray[np.int64],
    cores: Floats,
    cpu_capacity: Floats | float,
    utilisation_ratio: float,
) -> Floats:
    """Return the CPU part's watts above idle when `cores` are requested."""
    share = utilisation_ratio / np.maximum(cpu_capacity, LEAST_CPU_CORES)
    utilisation = np.minimum(np.maximum(cores * share, 0.0), 1.0)
    return watts_at(curve_watts, starts, utilisation) - taken(curve_watts, starts)


def utilisation_after(nodes: NodeColumns, cpu_cores: Floats, model: CostModel) -> Floats:
    """Return the utilisation 0..1 of each candidate with `cpu_cores` ([B,1]) more requested."""
    added = cpu_cores * model.utilisation_ratio
    after = added / np.maximum(nodes.cpu_capacity, LEAST_CPU_CORES)
    after += nodes.cpu_before
    return np.minimum(after, 1.0)


def watts_before(nodes: NodeColumns, model: CostModel) -> Floats:
    """Return the watts of each candidate's CPU part without the workload, idle watts included."""
    before = np.minimum(np.maximum(nodes.cpu_before, 0.0), 1.0)
    return watts_at(model.curve_watts, curve_starts(nodes.curve_class), before)


def placement_cost(
    nodes: NodeColumns, workload: WorkloadColumns, zones: ZoneColumns, model: CostModel
) -> PlacementCost:
    """Return what each workload adds to the bill on each of its candidates.

    power = [P(after) − P(before) + gpus · (peak − idle) · gpu_ratio
             + (P(0) + GPUs · idle, if the node is empty and empty nodes sleep)] · PUE
    energy = power · runtime / speed; carbon and money are energy times the zone's means.
    A candidate without carbon or price data has NaN there and finite watts and joules.
    """
    return cost_above(watts_before(nodes, model), nodes, workload, zones, model)


def cost_above(
    before_w: Floats,
    nodes: NodeColumns,
    workload: WorkloadColumns,
    zones: ZoneColumns,
    model: CostModel,
) -> PlacementCost:
    """Return the `placement_cost` of candidates whose `watts_before` are known, [B,N]."""
    starts = curve_starts(nodes.curve_class)
    after = utilisation_after(nodes, workload.cpu_cores, model)
    # Grouped so that few operations wait for the watts after, which are known last.
    others = nodes.gpu_peak_w - nodes.gpu_idle_w
    others *= workload.gpus * model.gpu_ratio
    others -= before_w
    if model.empty_nodes_sleep:
        idle = taken(model.curve_watts, starts)
        idle += nodes.gpu_capacity * nodes.gpu_idle_w
        others += idle * nodes.is_empty
    runtime = workload.runtime_s / nodes.speed
    power = watts_at(model.curve_watts, starts, after)
    power += others
    energy = power * (runtime * nodes.pue)
    return PlacementCost(
        power_w=power * nodes.pue,
        runtime_s=runtime,
        energy_j=energy,
        cost=energy * (zones.price_per_mwh * (1.0 / JOULES_PER_MWH)),
        carbon_g=energy * (zones.carbon_g_per_kwh * (1.0 / JOULES_PER_KWH)),
        cpu_after=after,
    )
